// SPDX-License-Identifier: Apache-2.0
/* cli_job_template.c: parses the templates of a job, as template-renderer does before it renders
 * them. Runs in: cli. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "common/cleanup.h"
#include "model/engine/text.h"
#include "template/template.h"

DEFINE_CLEANUP(struct template *, template_free);

/* The engine says where by "parse: template: :LINE: ", as Go does. */
static void
add_problem(struct text *list, const json_t *task, const json_t *template, const char *problem)
{
	unsigned line;
	int len = 0;

	text_printf(list, "task \"%s\", template \"%s\"", cli_json_str(task, "Name"),
	    cli_json_str(template, "DestPath"));
	if (sscanf(problem, "parse: template: :%u: %n", &line, &len) == 1 && len > 0)
		text_printf(list, ", line %u", line);
	text_printf(list, ": %s: correct it, or the task cannot start\n", problem + len);
}

static void
check_template(struct text *list, const json_t *task, const json_t *template)
{
	const char *text = cli_json_str(template, "EmbeddedTmpl");
	const struct template_options options = {
		.left = cli_json_str(template, "LeftDelim"),
		.right = cli_json_str(template, "RightDelim"),
	};
	cleanup_free char *problem = NULL;
	cleanup_with(template_free) struct template *t =
	    template_parse(text, strlen(text), &options, &problem);

	if (!t)
		add_problem(list, task, template, problem);
}

char *
cli_job_template_problems(const json_t *request)
{
	const json_t *groups = cli_json_get(request, "Job/TaskGroups");
	json_t *group, *task, *template;
	struct text list = { 0 };
	size_t i, k, n;

	json_array_foreach (groups, i, group)
		json_array_foreach (cli_json_get(group, "Tasks"), k, task)
			json_array_foreach (cli_json_get(task, "Templates"), n, template)
				check_template(&list, task, template);
	return list.text;
}
