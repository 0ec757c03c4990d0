// SPDX-License-Identifier: Apache-2.0
/* job_children.c: checks periodic and parameterized jobs, and makes their children. Runs in:
 * supervisor. */
#include "supervisor/server/job/job_children.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "model/cron.h"
#include "model/engine/table.h"
#include "model/payload.h"

#define PARENT_ID_MAX 200 /* the ids of its children are longer */
#define SPECS_MAX     100

/* Stops at the first bad spec: it takes 0.2 s of CPU time to find that a spec never matches. */
static void
validate_specs(const struct periodic_config *periodic, struct problems *p)
{
	struct err e = { 0 };
	const char *spec;
	struct cron c;

	for (size_t i = 0; p->list.n == 0 && (spec = periodic_spec(periodic, i)) && i < SPECS_MAX;
	     i++) {
		if (cron_parse(spec, &c, &e) < 0)
			model_problem(p, "periodic: cron expression \"%.140s\": %s", spec, e.msg);
		else if (cron_next(&c, str(periodic->time_zone), (int64_t)time(NULL)) < 0)
			model_problem(
			    p, "periodic: cron expression \"%.140s\" matches no future time", spec);
	}
}

static void
validate_periodic(const struct periodic_config *periodic, struct problems *p)
{
	struct err e = { 0 };

	if (periodic->enabled == OPT_FALSE)
		return;
	if (!str_eq(periodic->spec_type, "cron"))
		model_problem(p,
		    "periodic: expressions of type \"%.40s\" are not supported (use cron)",
		    str(periodic->spec_type));
	if (!periodic_spec(periodic, 0))
		model_problem(p, "periodic: the cron expression is missing");
	if (*str(periodic->spec) && periodic->specs.n > 0)
		model_problem(p, "periodic: give cron or crons, not both");
	if (periodic->specs.n > SPECS_MAX)
		model_problem(p, "periodic: at most %d cron expressions are allowed", SPECS_MAX);
	if (cron_zone_check(str(periodic->time_zone), &e) < 0)
		model_problem(p, "periodic: %s", e.msg);
	else
		validate_specs(periodic, p);
}

static void
validate_parameterized(const struct parameterized_job *j, struct problems *p)
{
	if (!str_eq(j->payload, "optional") && !str_eq(j->payload, "required") &&
	    !str_eq(j->payload, "forbidden"))
		model_problem(p,
		    "parameterized: payload must be \"optional\", \"required\" or \"forbidden\", "
		    "not "
		    "\"%.40s\"",
		    str(j->payload));
	for (size_t i = 0; i < j->meta_optional.n; i++)
		if (strings_has(&j->meta_required, str(j->meta_optional.v[i])))
			model_problem(p,
			    "parameterized: meta key \"%.140s\" is both in meta_required and in "
			    "meta_optional",
			    str(j->meta_optional.v[i]));
}

void
job_parent_validate(const struct job *job, struct problems *p)
{
	if (!job->periodic && !job->parameterized)
		return;
	if (job->type != JOB_BATCH && job->type != JOB_SYSBATCH)
		model_problem(p,
		    "only batch and sysbatch jobs can be periodic or parameterized, not a %s job",
		    job_kind_names[job->type]);
	if (job_is_parent(job) && strlen(str(job->id)) > PARENT_ID_MAX)
		model_problem(p,
		    "the id of a periodic or parameterized job has at most %d characters",
		    PARENT_ID_MAX);
	if (job->periodic)
		validate_periodic(job->periodic, p);
	if (job->parameterized)
		validate_parameterized(job->parameterized, p);
}

int
job_check_change(const struct job *old, const struct job *job, struct err *e)
{
	if (!old) {
		return job->dispatched ? err_say(e, -EINVAL,
					     "a job cannot be registered as dispatched: dispatch "
					     "its parent")
				       : 0;
	}
	if (old->dispatched != job->dispatched)
		return err_say(e, -EINVAL,
		    "a dispatched job cannot be replaced by one that is not dispatched, or the "
		    "reverse");
	if (!old->periodic != !job->periodic)
		return err_say(e, -EINVAL,
		    "a job cannot become periodic, or stop being periodic: stop and purge it "
		    "first");
	if (job_is_parameterized(old) != job_is_parameterized(job))
		return err_say(e, -EINVAL,
		    "a job cannot become parameterized, or stop being parameterized: stop and "
		    "purge it first");
	return 0;
}

static int
check_payload(const struct parameterized_job *j, size_t len, struct err *e)
{
	if (len == 0 && str_eq(j->payload, "required"))
		return err_say(
		    e, -EINVAL, "Payload is not provided but required by parameterized job");
	if (len > 0 && str_eq(j->payload, "forbidden"))
		return err_say(e, -EINVAL, "Payload provided but forbidden by parameterized job");
	if (len > PAYLOAD_MAX)
		return err_say(
		    e, -EINVAL, "Payload exceeds maximum size; %zu > %d", len, PAYLOAD_MAX);
	return 0;
}

static bool
has_key(const struct string_map *meta, const char *key)
{
	for (size_t i = 0; i < meta->n; i++)
		if (strcmp(meta->v[i].key, key) == 0)
			return true;
	return false;
}

int
job_check_dispatch(
    const struct job *parent, size_t payload_len, const struct string_map *meta, struct err *e)
{
	const struct parameterized_job *j = parent->parameterized;
	int r = check_payload(j, payload_len, e);

	for (size_t i = 0; r == 0 && i < meta->n; i++) {
		const char *key = meta->v[i].key;

		if (!strings_has(&j->meta_required, key) && !strings_has(&j->meta_optional, key))
			r = err_say(e, -EINVAL,
			    "Dispatch request included unpermitted metadata keys: \"%.140s\" is "
			    "neither in meta_required nor in meta_optional",
			    key);
	}
	for (size_t i = 0; r == 0 && i < j->meta_required.n; i++)
		if (!has_key(meta, str(j->meta_required.v[i])))
			r = err_say(e, -EINVAL,
			    "Dispatch did not provide required meta keys: \"%.140s\" is missing",
			    str(j->meta_required.v[i]));
	return r;
}

void
job_make_child(const struct job *parent, const char *id, struct job *ret)
{
	job_copy(parent, ret);
	str_set(&ret->id, id);
	str_set(&ret->name, id);
	str_set(&ret->parent_id, parent->id);
}
