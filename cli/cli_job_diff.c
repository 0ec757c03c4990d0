// SPDX-License-Identifier: Apache-2.0
/* cli_job_diff.c: prints the differences between two versions of a job. Runs in: cli. */
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_job.h"
#include "cli/cli_print.h"
#include "model/engine/field.h"

static const char *
mark(const json_t *diff)
{
	const char *type = cli_json_str(diff, "Type");

	return strcmp(type, "Added") == 0     ? "+"
	       : strcmp(type, "Deleted") == 0 ? "-"
	       : strcmp(type, "Edited") == 0  ? "+/-"
					      : " ";
}

static void
print_fields(const json_t *diff, int indent)
{
	const json_t *field;
	size_t i;

	json_array_foreach (cli_json_get(diff, "Fields"), i, field) {
		const char *old = cli_json_str(field, "Old"), *new = cli_json_str(field, "New");

		if (*old && *new)
			cli_line("%*s%-3s %s: \"%s\" => \"%s\"", indent, "", mark(field),
			    cli_json_str(field, "Name"), old, new);
		else
			cli_line("%*s%-3s %s: \"%s\"", indent, "", mark(field),
			    cli_json_str(field, "Name"), *old ? old : new);
	}
}

static void
print_objects(const json_t *diff, int indent)
{
	const json_t *object;
	size_t i;

	json_array_foreach (cli_json_get(diff, "Objects"), i, object) {
		cli_line("%*s%-3s %s {", indent, "", mark(object), cli_json_str(object, "Name"));
		print_fields(object, indent + 4);
		print_objects(object, indent + 4);
		cli_line("%*s    }", indent, "");
	}
}

static void
print_group(const json_t *group)
{
	const char *what, *before = " (";
	struct text line = { 0 };
	const json_t *n;

	text_printf(&line, "%-3s Task Group: \"%s\"", mark(group), cli_json_str(group, "Name"));
	json_object_foreach ((json_t *)cli_json_get(group, "Updates"), what, n) {
		text_printf(&line, "%s%lld %s", before, (long long)json_integer_value(n), what);
		before = ", ";
	}
	cli_line("%s%s", str(line.text), strcmp(before, ", ") == 0 ? ")" : "");
	text_done(&line);
}

void
cli_job_print_diff(const json_t *diff)
{
	const json_t *group, *task;
	size_t i, k;

	cli_line("%-3s Job: \"%s\"", mark(diff), cli_json_str(diff, "ID"));
	print_fields(diff, 0);
	print_objects(diff, 0);
	json_array_foreach (cli_json_get(diff, "TaskGroups"), i, group) {
		print_group(group);
		print_fields(group, 4);
		print_objects(group, 4);
		json_array_foreach (cli_json_get(group, "Tasks"), k, task) {
			cli_line("    %-3s Task: \"%s\"", mark(task), cli_json_str(task, "Name"));
			print_fields(task, 8);
			print_objects(task, 8);
		}
	}
}
