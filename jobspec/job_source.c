// SPDX-License-Identifier: Apache-2.0
/* job_source.c: the source of a job, as servers keep it with the job's version. Runs in: cli,
 * job-parser. */
#include <string.h>

#include "jobspec/job_block.h"
#include "lang/text.h"

const char *
job_source_variables(struct hcl *h, const struct job_input *in, const struct job_given *given)
{
	struct text text = { .arena = hcl_arena(h) };
	const char *before = "";

	for (size_t i = 0; i < in->n_var_files; i++) {
		text_bytes(&text, in->var_files[i].text, in->var_files[i].len);
		text_add(&text, "\n");
	}
	for (; given; given = given->next) {
		if (!given->is_expression)
			continue;
		if (!*before && text.len > 0) {
			while (text.len > 0 && text.text[text.len - 1] == '\n')
				text.len--;
			before = "\n\n";
		}
		text_add(&text, hcl_printf(h, "%s%s = %s", before, given->name, given->text));
		before = "\n";
	}
	return text.len > 0 ? text.text : "";
}

json_t *
job_source(const struct job_input *in, const struct job_given *given, const char *variables)
{
	json_t *flags = json_object();

	for (; given; given = given->next)
		if (!given->is_expression)
			(void)json_object_set_new(flags, given->name, json_string(given->text));
	return json_pack("{s:o, s:s, s:o, s:s}", "Source",
	    json_stringn(in->file.text, in->file.len), "Format", "hcl2", "VariableFlags", flags,
	    "Variables", variables);
}
