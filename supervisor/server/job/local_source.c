// SPDX-License-Identifier: Apache-2.0
/* local_source.c: the sources of versions of jobs, in state.db. Runs in: supervisor. */
#include "supervisor/server/job/local_source.h"

#include <inttypes.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/store.h"

/* Rows are values of the table meta, so an older drover still reads the database. */
static char *
row_key(const struct job *job)
{
	return mem_printf("local_source/%s/%s/%" PRIu64, job->namespace, job->id, job->version);
}

char *
local_source_encode(const struct job_submission *submission)
{
	struct text json = { 0 };

	if (!submission->source)
		return NULL;
	model_to_text(&job_submission_type, submission, MODEL_COMPACT, &json);
	return json.text;
}

int
local_source_write(struct sup *sup, const struct job *job, const char *json, struct err *e)
{
	cleanup_free char *key = row_key(job);

	return json ? store_meta_put(sup->store, key, json, e)
		    : STORE_EXEC(sup->store, STMT_META_DELETE, e, SV_TEXT(key));
}

int
local_source_read(struct sup *sup, const struct job *job, char **ret_json, struct err *e)
{
	cleanup_free char *key = row_key(job);

	return store_meta_get(sup->store, key, ret_json, e);
}
