// SPDX-License-Identifier: Apache-2.0
/* cli_template.c: prints the API's answers with a template (-t, -template). Runs in: cli. */
#include "cli/cli_template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "template/template.h"

DEFINE_CLEANUP(struct template *, template_free);

static const char *used, *flag;

void
cli_template_use(const char *name, const char *text)
{
	flag = name;
	used = text;
}

bool
cli_template_used(void)
{
	return used != NULL;
}

/* Functions for variables, services, files and the environment know nothing here. */
int
cli_template_print(const json_t *value, struct err *e)
{
	const struct template_options options = { .denied = "env file" };
	cleanup_free char *json = mem_need(json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY));
	const struct template_data data = { .dot = json, .now_ns = clock_real_ns() };
	cleanup_free char *problem = NULL;
	cleanup_with(template_free) struct template *t =
	    template_parse(used, strlen(used), &options, &problem);
	const struct template_result *r = t ? template_render(t, &data) : NULL;

	if (!t || r->problem)
		return err_say(e, -EINVAL, "%s: %s", flag, t ? r->problem : problem);
	if (r->n_missing > 0)
		return err_say(e, -EINVAL, "%s: %s cannot be used here", flag, r->needs[0].name);
	if (fwrite(r->output, 1, r->len, stdout) != r->len || putchar('\n') == EOF)
		return err_say(e, -EIO, "print the answer");
	return 0;
}
