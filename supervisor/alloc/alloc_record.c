// SPDX-License-Identifier: Apache-2.0
/* alloc_record.c: what this node keeps beside an alloc in state.db. Runs in: supervisor. */
#include "supervisor/alloc/alloc_record.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "model/engine/table.h"
#include "supervisor/core/journal.h"

#define S tracker_record
static const struct field tracker_record_fields[] = {
	F_INT(count, "count"),
	F_INT(started_ns, "started"),
};
MODEL_TYPE(tracker_record, tracker_record_fields, .name = "task");
#undef S

#define S token_record
static const struct field token_record_fields[] = {
	F_STRING(task, "task"),
	F_STRING(name, "name"),
	F_STRING(sealed, "sealed"),
	F_STRING(token, "token", .flags = FIELD_OMIT_EMPTY),
	F_INT(signed_ns, "signed"),
	F_INT(life_ns, "life"),
	F_BOOL(given, "given"),
};
MODEL_TYPE(token_record, token_record_fields, .name = "identity");
#undef S

#define S artifact_record
static const struct field artifact_record_fields[] = {
	F_STRING(task, "task"),
	F_STRING(hash, "hash"),
};
MODEL_TYPE(artifact_record, artifact_record_fields, .name = "artifact");
#undef S

#define S fetch_record
static const struct field fetch_record_fields[] = {
	F_STRING(task, "task"),
	F_STRING(hash, "hash"),
	F_STRING(staging, "staging"),
	F_STRING(boot, "boot"),
};
MODEL_TYPE(fetch_record, fetch_record_fields, .name = "fetch");
#undef S

#define S template_record
static const struct field template_record_fields[] = {
	F_STRING(task, "task"),
	F_STRING(digest, "digest"),
};
MODEL_TYPE(template_record, template_record_fields, .name = "template");
#undef S

#define S template_env_record
static const struct field template_env_record_fields[] = {
	F_STRING(task, "task"),
	F_STRING(sealed, "sealed"),
};
MODEL_TYPE(template_env_record, template_env_record_fields, .name = "template variables");
#undef S

#define S alloc_record
static const struct field alloc_record_fields[] = {
	F_BOOL(done, "done"),
	F_BOOL(destroy, "destroy"),
	F_INT(kill_after_ns, "kill_after"),
	F_MAP(tasks, "tasks", tracker_record),
	F_LIST(identities, "identities", token_record),
	F_STRUCT(checks, "checks", check_results),
	F_LIST(artifacts, "artifacts", artifact_record),
	F_LIST(fetches, "fetches", fetch_record),
	F_LIST(templates, "templates", template_record),
	F_LIST(template_envs, "template_envs", template_env_record),
};
MODEL_TYPE(alloc_record, alloc_record_fields, .name = "allocation");
#undef S

void
alloc_record_read(const struct sup_alloc *sa, struct alloc_record *ret)
{
	const char *text = str(sa->client_json);

	/* The reason may quote the text, which has tokens. */
	if (*text && model_from_text(&alloc_record_type, text, strlen(text), ret, NULL) < 0)
		journal_error(JOURNAL_STATE, ABOUT_ALLOC(sa),
		    "allocation %.8s: state.db has no readable record of what this node did "
		    "with it; its hooks and restart policies begin anew",
		    sa->a.id);
}

void
alloc_record_write(struct sup *sup, struct sup_alloc *sa, const struct alloc_record *rec)
{
	struct text t = { 0 };

	model_to_text(&alloc_record_type, rec, MODEL_COMPACT, &t);
	free(sa->client_json);
	sa->client_json = mem_resize(t.text, 1, t.len + 1); /* it is kept for long */
	alloc_changed(sup, sa);
}
