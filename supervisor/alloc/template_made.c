// SPDX-License-Identifier: Apache-2.0
/*
 * template_made.c: a template that reads the file of another template of its task, by `file`. That
 * file is not there before all templates are rendered, so the reader gets the output itself. Runs
 * in: supervisor.
 *
 * Only files of earlier templates can be read: no template waits for itself then.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "proto/template_need.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_file_read.h"
#include "supervisor/alloc/task_path.h"
#include "supervisor/alloc/task_templates.h"

/* Returns the path of the template's file below the alloc's directory; "" if it has none. */
static const char *
path_of(struct rendered *one)
{
	char path[TASK_PATH_SIZE];
	struct err e = { 0 };

	if (!one->path)
		one->path = mem_strdup(
		    task_path_make(one->of->tr, str(template_of(one)->dest_path), path, &e) < 0
			? ""
			: path);
	return one->path;
}

/* Returns the template that writes the file which a need names; NULL: the need is no file, or no
 * template writes it. */
static struct rendered *
find_maker(struct task_templates *all, const json_t *need)
{
	const char *name = json_string_value(json_object_get(need, "name"));
	char path[TASK_PATH_SIZE];
	struct err e = { 0 };

	if (json_integer_value(json_object_get(need, "kind")) != TEMPLATE_NEED_FILE || !name ||
	    task_path_make(all->tr, name, path, &e) < 0)
		return NULL;
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(path_of(&all->v[i]), path) == 0)
			return &all->v[i];
	return NULL;
}

const struct rendered *
template_reads_later(const struct rendered *one)
{
	for (size_t i = 0; i < json_array_size(one->needs); i++) {
		const struct rendered *maker = find_maker(one->of, json_array_get(one->needs, i));

		if (maker && maker->index >= one->index)
			return maker;
	}
	return NULL;
}

json_t *
template_made_value(const struct rendered *maker)
{
	json_t *text;

	if (maker->len > TASK_FILE_MAX)
		return json_pack("{s:s}", "problem", "it has more than 2 MiB");
	text = json_stringn(maker->output, maker->len);
	return text ? text : json_pack("{s:s}", "problem", "it is not UTF-8");
}

/* An output that is not kept is rendered again. */
const struct rendered *
template_find_made(struct task_runner *tr, const json_t *need, json_t **ret_value)
{
	struct rendered *maker = find_maker(task_templates_of(tr), need);

	if (maker && maker->output)
		*ret_value = template_made_value(maker);
	else if (maker && maker->rendered[0])
		task_template_render(maker);
	return maker;
}
