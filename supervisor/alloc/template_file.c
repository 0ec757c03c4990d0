// SPDX-License-Identifier: Apache-2.0
/* template_file.c: the file and the environment variables of a template's output. Runs in:
 * supervisor. */
#include "supervisor/alloc/template_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/env_file.h"
#include "supervisor/alloc/alloc_state.h"

/* A file that a template makes replaces what the task has made, but none of these. */
static const char *const directories[] = { "", "local", "secrets", "tmp", "alloc", "alloc/data",
	"alloc/logs", "alloc/tmp" };

static bool
is_directory(const char *path)
{
	for (size_t i = 0; i < ELEMENTSOF(directories); i++)
		if (str_eq(path, directories[i]))
			return true;
	return false;
}

int
template_file_make(
    const struct rendered *one, char path[TASK_PATH_SIZE], struct task_file *ret, struct err *e)
{
	const struct task_template *t = template_of(one);
	const struct task_runner *tr = one->of->tr;
	const char *rest;
	int r = task_path_make(tr, str(t->dest_path), path, e);

	if (r == -EXDEV || r == -EPERM)
		return err_say(e, -EINVAL,
		    "the destination of template %.200s must be in the task's directories",
		    t->dest_path);
	if (r < 0)
		return r;
	if (task_path_begins(path, tr->task->name, &rest) &&
	    !task_path_begins(path, "alloc", &rest))
		memmove(path, rest, strlen(rest) + 1);
	if (is_directory(path))
		return err_say(
		    e, -EINVAL, "the destination of template %.200s is a directory", t->dest_path);
	*ret = (struct task_file){ .at = { .mode = (unsigned)task_template_mode(t),
				       .uid = t->uid == MODEL_UNSET ? -1 : t->uid,
				       .gid = t->gid == MODEL_UNSET ? -1 : t->gid,
				       .path = path },
		.data = one->output,
		.len = one->len };
	return 0;
}

void
template_env_free(struct rendered *one)
{
	string_map_done(&one->env);
}

int
template_env_read(struct rendered *one, struct err *e)
{
	template_env_free(one);
	return env_file_parse(one->output, one->len, &one->env, e);
}
