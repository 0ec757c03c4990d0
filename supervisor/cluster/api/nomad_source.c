// SPDX-License-Identifier: Apache-2.0
/* nomad_source.c: the sources of jobs, toward servers. Their values of variables are
 * percent-encoded there: Nomad's agents (since 1.9.7) encode them before they send a source, and
 * decode them before they show it. Runs in: supervisor. */
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/msgpack.h"
#include "model/engine/percent.h"
#include "model/engine/table.h"
#include "model/job_submission.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/rpc/rpc.h"

json_t *
nomad_source_encode(const json_t *submission)
{
	json_t *copy = json_copy((json_t *)submission), *value;
	json_t *flags = json_copy(json_object_get(submission, "VariableFlags"));
	const char *name;

	json_object_foreach (flags, name, value) {
		struct text encoded = { 0 };

		percent_encode(&encoded, str(json_string_value(value)));
		if (json_is_string(value))
			(void)json_object_set_new(flags, name, json_string(str(encoded.text)));
		text_done(&encoded);
	}
	if (flags)
		(void)json_object_set_new(copy, "VariableFlags", flags);
	return copy;
}

/* Leaves a value that is not encoded as it is: servers may have it from an older agent. */
static void
decode_values(struct job_submission *s)
{
	for (size_t i = 0; i < s->variable_flags.n; i++) {
		cleanup_free char *value = mem_strdup(str(s->variable_flags.v[i].value));

		if (percent_decode(value, true) == 0)
			str_set(&s->variable_flags.v[i].value, value);
	}
}

/* Job.GetJobSubmission. */
struct submission_rep {
	struct job_submission *submission; /* NULL: the version has none */
	struct rpc_meta meta;
};
#define S submission_rep
static const struct field submission_rep_fields[] = {
	F_POINTER(submission, "Submission", job_submission),
	RPC_META,
};
static MODEL_TYPE(submission_rep, submission_rep_fields, .name = "answer");
#undef S

void
reply_submission(struct api_req *req, const void *body, size_t len)
{
	struct submission_rep rep;
	struct err e = { 0 };

	model_init(&submission_rep_type, &rep);
	if (model_from_msgpack(&submission_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &e) < 0) {
		api_reply_error(req, 502, "%s", e.msg);
	} else if (!rep.submission) {
		api_reply_error(req, 404, "job source not found");
	} else {
		api_set_meta(req, &(struct api_meta){ .index = rep.meta.index,
				      .no_leader = !rep.meta.known_leader,
				      .last_contact_ns = rep.meta.last_contact });
		decode_values(rep.submission);
		api_reply_model(req, &job_submission_type, rep.submission);
	}
	model_done(&submission_rep_type, &rep);
}
