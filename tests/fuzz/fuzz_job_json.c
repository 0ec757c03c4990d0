/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_job_json.c: any text as a job, an alloc or a volume: an accepted one must survive being
 * stored. Runs in: a fuzzer. */
#include <stdlib.h>
#include <string.h>

#include "model/alloc.h"
#include "model/volume.h"
#include "supervisor/server/job/job_validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The object must be the same after writing and reading it, and so must its copy. */
static void
check_survives(const struct type *type, const void *obj, enum model_flags flags)
{
	void *back = model_new(type);
	struct text t = { 0 };
	struct err e = { 0 };
	char where[256];

	model_to_text(type, obj, flags, &t);
	if (model_from_text(type, t.text, t.len, back, &e) < 0)
		abort();
	if (model_difference(type, obj, back, where, sizeof(where)))
		abort();
	model_done(type, back);
	model_copy(type, obj, back);
	if (!model_equal(type, obj, back))
		abort();
	model_free(type, back);
	text_done(&t);
}

static void
check_job(struct job *job)
{
	struct problems p = { 0 };
	struct err e = { 0 };
	size_t i;

	job_complete(job);
	job_validate(job, &p);
	job_validate_local(job, &p);
	if (problems_err(&p, &e) != (p.list.n ? -EINVAL : 0))
		abort();
	problems_done(&p);
	for (i = 0; i < job->task_groups.n; i++)
		(void)group_stop_after_ms(&job->task_groups.v[i]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct type *const types[] = { &job_type, &alloc_type, &csi_volume_type };
	struct err e = { 0 };
	size_t i;

	for (i = 0; i < ELEMENTSOF(types); i++) {
		void *obj = model_new(types[i]);

		if (model_from_text(types[i], (const char *)data, size, obj, &e) == 0) {
			check_survives(types[i], obj, MODEL_COMPACT);
			if (types[i] == &job_type)
				check_job(obj);
			check_survives(types[i], obj, 0);
		} else if (!*e.msg) {
			abort();
		}
		model_free(types[i], obj);
	}
	return 0;
}
