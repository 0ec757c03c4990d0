// SPDX-License-Identifier: Apache-2.0
/* job_submission.c: field table of the sources of jobs. Runs in: supervisor. */
#include "model/job_submission.h"

#include <string.h>

#include "model/engine/table.h"

#define S job_submission
static const struct field submission_fields[] = {
	F_STRING(source, "Source"),
	F_STRING(format, "Format"),
	F_STRING_MAP(variable_flags, "VariableFlags"),
	F_STRING(variables, "Variables"),
	F_STRING(namespace, "Namespace"),
	F_STRING(job_id, "JobID"),
	F_UINT(version, "Version"),
	F_UINT(job_modify_index, "JobModifyIndex"),
};
MODEL_TYPE(job_submission, submission_fields, .name = "submission");
#undef S

size_t
job_submission_size(const struct job_submission *s)
{
	size_t size = strlen(str(s->source)) + strlen(str(s->variables));

	for (size_t i = 0; i < s->variable_flags.n; i++)
		size +=
		    strlen(s->variable_flags.v[i].key) + strlen(str(s->variable_flags.v[i].value));
	return size;
}
