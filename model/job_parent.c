// SPDX-License-Identifier: Apache-2.0
/* job_parent.c: periodic and parameterized blocks, and launch times. Runs in: supervisor, cli. */
#include "model/job_parent.h"

#include "model/cron.h"
#include "model/engine/table.h"
#include "model/job.h"

#define S periodic_config
static const struct field periodic_config_fields[] = {
	F_BOOL_DEFAULT(enabled, "Enabled", OPT_TRUE),
	F_STRING(spec, "Spec"),
	F_STRINGS(specs, "Specs"),
	F_STRING_DEFAULT(spec_type, "SpecType", "cron"),
	F_BOOL_DEFAULT(prohibit_overlap, "ProhibitOverlap", OPT_FALSE),
	F_STRING_DEFAULT(time_zone, "TimeZone", "UTC"),
};
MODEL_TYPE(periodic_config, periodic_config_fields, .name = "periodic");
#undef S

#define S parameterized_job
static const struct field parameterized_job_fields[] = {
	F_STRING_DEFAULT(payload, "Payload", "optional"),
	F_STRINGS(meta_required, "MetaRequired"),
	F_STRINGS(meta_optional, "MetaOptional"),
};
MODEL_TYPE(parameterized_job, parameterized_job_fields, .name = "parameterized");
#undef S

bool
job_is_parameterized(const struct job *job)
{
	return job->parameterized && !job->dispatched;
}

bool
job_is_parent(const struct job *job)
{
	return job->periodic || job_is_parameterized(job);
}

bool
job_has_launches(const struct job *job)
{
	return job->periodic && job->periodic->enabled != OPT_FALSE && !job->stop &&
	       !job_is_parameterized(job);
}

const char *
periodic_spec(const struct periodic_config *p, size_t i)
{
	if (*str(p->spec))
		return i == 0 ? p->spec : NULL;
	return i < p->specs.n ? str(p->specs.v[i]) : NULL;
}

int64_t
job_next_launch(const struct job *job, int64_t after)
{
	const struct periodic_config *p = job->periodic;
	int64_t first = -1;
	const char *spec;

	for (size_t i = 0; p && (spec = periodic_spec(p, i)); i++) {
		struct err e = { 0 };
		struct cron c;
		int64_t t =
		    cron_parse(spec, &c, &e) < 0 ? -1 : cron_next(&c, str(p->time_zone), after);

		if (t >= 0 && (first < 0 || t < first))
			first = t;
	}
	return first;
}
