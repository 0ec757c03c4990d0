// SPDX-License-Identifier: Apache-2.0
/* local_api_children.c: dispatches parameterized jobs, and forces launches of periodic jobs. Runs
 * in: supervisor. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/id.h"
#include "common/mem.h"
#include "model/payload.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/job_children.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/drive/local_periodic.h"
#include "supervisor/server/drive/local_register.h"

struct dispatch {
	struct string_map meta;
	char *payload; /* compressed, in base64; NULL: none */
	size_t payload_len;
	const char *prefix, *token;
	int64_t priority; /* 0: the parent's */
};

static void
dispatch_done(struct dispatch *d)
{
	for (size_t i = 0; i < d->meta.n; i++) {
		free(d->meta.v[i].key);
		free(d->meta.v[i].value);
	}
	free(d->meta.v);
	free(d->payload);
}

static int
read_meta(const json_t *meta, struct string_map *ret, struct err *e)
{
	const char *key;
	json_t *value;

	if (meta && !json_is_null(meta) && !json_is_object(meta))
		return err_say(e, -EINVAL, "Meta: expected an object");
	json_object_foreach ((json_t *)meta, key, value) {
		if (!json_is_string(value))
			return err_say(e, -EINVAL, "Meta.%.140s: expected a string", key);
		string_map_append(ret, key, json_string_value(value));
	}
	return 0;
}

/* Returns the payload as a job stores it. */
static char *
pack_payload(const void *data, size_t len)
{
	cleanup_free uint8_t *packed = mem_alloc(PAYLOAD_PACKED_SIZE(len));
	size_t n = payload_pack(data, len, packed);
	char *text = mem_alloc(BASE64_SIZE(n));

	(void)base64_encode(packed, n, text);
	return text;
}

/* Of a payload that is too large only the size is read. */
static int
read_payload(const json_t *payload, struct dispatch *d, struct err *e)
{
	const char *text = json_string_value(payload);
	cleanup_free char *data = NULL;

	if (payload && !json_is_null(payload) && !text)
		return err_say(e, -EINVAL, "Payload: expected base64");
	if (!text || !*text)
		return 0;
	data = mem_alloc(strlen(text) / 4 * 3 + 1);
	if (base64_decode(text, data, &d->payload_len) < 0)
		return err_say(e, -EINVAL, "Payload: expected base64");
	if (d->payload_len > 0 && d->payload_len <= PAYLOAD_MAX)
		d->payload = pack_payload(data, d->payload_len);
	return 0;
}

static int
read_dispatch(struct api_req *req, struct dispatch *d, struct err *e)
{
	const json_t *body = api_body(req, e), *priority = json_object_get(body, "Priority");
	const char *job = json_string_value(json_object_get(body, "JobID"));
	int r;

	if (!body && e->code != -ENODATA)
		return -EINVAL;
	if (*str(job) && strcmp(job, api_param(req, 0)) != 0)
		return err_say(e, -EINVAL, "Job ID does not match");
	d->prefix = str(json_string_value(json_object_get(body, "IdPrefixTemplate")));
	d->token = str(api_query(req, "idempotency_token"));
	d->priority = json_integer_value(priority);
	r = read_meta(json_object_get(body, "Meta"), &d->meta, e);
	return r < 0 ? r : read_payload(json_object_get(body, "Payload"), d, e);
}

static const struct local_job *
find_token(struct local *l, const struct job *parent, const char *token)
{
	const struct local_family *f = *token ? local_family_of(l, parent) : NULL;
	const struct local_job *j;

	if (!f)
		return NULL;
	LIST_FOREACH (j, &f->children, sibling)
		if (!j->purge && str_eq(local_job_wanted(j)->dispatch_idempotency_token, token))
			return j;
	return NULL;
}

static void
make_child(const struct job *parent, const struct dispatch *d, struct job *ret)
{
	struct id random = id_random();
	cleanup_free char *id = mem_printf("%s%s%s%s%" PRId64 "-%02x%02x%02x%02x", parent->id,
	    job_dispatch_infix, d->prefix, *d->prefix ? "-" : "", clock_real_ns() / 1000000000,
	    random.b[0], random.b[1], random.b[2], random.b[3]);

	job_make_child(parent, id, ret);
	ret->dispatched = true;
	if (d->priority > 0)
		ret->priority = d->priority;
	str_set(&ret->dispatch_idempotency_token, d->token);
	str_set(&ret->payload, d->payload);
	for (size_t i = 0; i < d->meta.n; i++)
		string_map_set(&ret->meta, d->meta.v[i].key, str(d->meta.v[i].value));
}

static void
reply_dispatched(struct sup *sup, struct api_req *req, const struct local_job *child,
    const struct local_eval *ev)
{
	const struct job *job = local_job_wanted(child);

	api_reply_json(
	    req, json_pack("{s:s, s:s, s:I, s:I, s:I}", "DispatchedJobID", job->id, "EvalID",
		     ev ? ev->ev.id : "", "EvalCreateIndex",
		     (json_int_t)(ev ? ev->ev.create_index : 0), "JobCreateIndex",
		     (json_int_t)job->create_index, "Index", (json_int_t)local_of_sup(sup)->index));
}

/* Returns 0 with *ret, a job to be registered, or -errno. */
static int
check_dispatch(
    struct local *l, const struct job *parent, struct dispatch *d, struct job *ret, struct err *e)
{
	int r;

	if (!job_is_parameterized(parent))
		return err_say(
		    e, -EINVAL, "Specified job \"%.140s\" is not a parameterized job", parent->id);
	if (parent->stop)
		return err_say(e, -EINVAL, "Specified job \"%.140s\" is stopped", parent->id);
	if ((r = job_check_dispatch(parent, d->payload_len, &d->meta, e)) < 0 ||
	    (r = local_family_check(l, parent, e)) < 0)
		return r;
	make_child(parent, d, ret);
	return local_api_check_job(l, ret, e);
}

static int
error_status(int r)
{
	return r == -EAGAIN ? 429 : 400;
}

void
local_api_dispatch_job(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_job *j = local_api_find_job(sup, req), *child;
	__attribute__((__cleanup__(dispatch_done))) struct dispatch d = { 0 };
	cleanup_done(job) struct job job;
	const struct local_job *known;
	struct local_eval *ev;
	struct err e = { 0 };
	int r;

	job_init(&job);
	if (!j)
		return;
	r = read_dispatch(req, &d, &e);
	if (r == 0)
		r = check_dispatch(l, local_job_wanted(j), &d, &job, &e);
	known = r == 0 ? find_token(l, local_job_wanted(j), d.token) : NULL;
	if (r == 0 && !known)
		local_job_register(l, &job, NULL, "job-register", &child, &ev);
	if (r < 0)
		api_reply_error(req, error_status(r), "%s", e.msg);
	else
		reply_dispatched(sup, req, known ?: child, known ? NULL : ev);
}

void
local_api_force_job(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_job *j = local_api_find_job(sup, req);
	struct local_eval *ev;
	struct err e = { 0 };
	int r;

	if (!j)
		return;
	if (!job_has_launches(local_job_wanted(j))) {
		api_reply_error(req, 400,
		    "job \"%.140s\" cannot be launched: it is not periodic, not enabled, or "
		    "stopped",
		    local_job_wanted(j)->id);
		return;
	}
	r = local_periodic_launch(l, j, clock_real_ns() / 1000000000, &ev, &e);
	if (r < 0)
		api_reply_error(req, error_status(r), "%s", e.msg);
	else
		api_reply_json(
		    req, json_pack("{s:s, s:I, s:I}", "EvalID", ev->ev.id, "EvalCreateIndex",
			     (json_int_t)ev->ev.create_index, "Index", (json_int_t)l->index));
}
