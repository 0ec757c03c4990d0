// SPDX-License-Identifier: Apache-2.0
/* local_api_versions.c: the versions of a job, their differences, and their tags. Runs in:
 * supervisor. */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/job/job_diff.h"

#define TAG_MAX_LEN         256  /* bytes of a name */
#define DESCRIPTION_MAX_LEN 1000 /* bytes */

/* Finds the version that ?diff_tag= or ?diff_version= names; *ret is NULL without either. Returns
 * 0, or negative with *e. */
static int
find_compared(
    const struct api_req *req, const struct local_job *j, const struct job **ret, struct err *e)
{
	const char *tag = api_query(req, "diff_tag");
	const struct local_version *v;
	uint64_t number;
	int r = api_query_number(req, "diff_version", &number, e);

	*ret = NULL;
	if (r < 0)
		return r;
	if (tag && *tag) {
		v = local_job_tagged(j, tag);
		if (!v)
			return err_say(e, -ENOENT, "tag \"%.140s\" not found", tag);
	} else if (r > 0) {
		v = local_job_version(j, number);
		if (!v)
			return err_say(
			    e, -ENOENT, "version %llu not found", (unsigned long long)number);
	} else {
		return 0;
	}
	*ret = &v->ref->job;
	return 0;
}

/* Appends the difference between each version and `compared` (NULL: the one before), as a list. */
static void
append_diffs(struct text *t, const struct local_job *j, const struct job *compared)
{
	const struct local_version *v, *before;
	const char *sep = "";

	text_printf(t, "[");
	SLIST_FOREACH (v, &j->versions, older) {
		cleanup_json json_t *diff = NULL;
		cleanup_free char *text = NULL;

		before = SLIST_NEXT(v, older);
		if (!compared && !before)
			break;
		diff = job_diff(compared ? compared : &before->ref->job, &v->ref->job);
		text = mem_need(json_dumps(diff, JSON_COMPACT));
		text_printf(t, "%s%s", sep, text);
		sep = ",";
	}
	text_printf(t, "]");
}

void
local_api_job_versions(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	struct api_list list = { .flags = api_model_flags(req) };
	const struct local_version *v;
	const struct job *compared;
	struct err e = { 0 };
	bool diffs = false;
	int r;

	if (!j)
		return;
	r = api_query_bool(req, "diffs", &diffs, &e);
	if (r == 0)
		r = find_compared(req, j, &compared, &e);
	if (r < 0) {
		api_reply_error(req, r == -ENOENT ? 404 : 400, "%s", e.msg);
		return;
	}
	text_printf(&list.json, "{\"Versions\":[");
	SLIST_FOREACH (v, &j->versions, older)
		api_list_add(&list, &job_type, &v->ref->job);
	text_printf(&list.json, "],\"Diffs\":");
	if (diffs && (compared || SLIST_NEXT(SLIST_FIRST(&j->versions), older)))
		append_diffs(&list.json, j, compared);
	else
		text_printf(&list.json, "null");
	text_printf(&list.json, ",\"Index\":%llu,\"KnownLeader\":true,\"LastContact\":0}",
	    (unsigned long long)local_of_sup(sup)->index);
	api_reply_take(req, &list.json);
}

/* Finds the version that the body asks to tag: Version, or the newest with Latest. Returns 0 or
 * -errno with *e. */
static int
find_to_tag(
    const struct local_job *j, const json_t *body, struct local_version **ret, struct err *e)
{
	json_int_t number = json_integer_value(json_object_get(body, "Version"));

	if (!json_is_true(json_object_get(body, "Latest"))) {
		*ret = local_job_version(j, (uint64_t)number);
		return *ret ? 0
			    : err_say(e, -ENOENT, "job \"%.140s\" has no version %lld",
				  local_job_wanted(j)->id, (long long)number);
	}
	if (number != 0)
		return err_say(
		    e, -EINVAL, "Version must be 0 with Latest, not %lld", (long long)number);
	*ret = SLIST_FIRST(&j->versions);
	return 0;
}

/* Checks the tag that version v shall get, and makes it. NULL with *e. */
static json_t *
make_tag(const struct local_job *j, const struct local_version *v, const char *name,
    const json_t *body, struct err *e)
{
	const char *description = str(json_string_value(json_object_get(body, "Description")));
	const struct local_version *has = local_job_tagged(j, name);

	if (strlen(name) > TAG_MAX_LEN)
		(void)err_say(e, -EINVAL, "the name of a tag has at most %d bytes", TAG_MAX_LEN);
	else if (strlen(description) > DESCRIPTION_MAX_LEN)
		(void)err_say(e, -EINVAL, "the description of a tag has at most %d bytes",
		    DESCRIPTION_MAX_LEN);
	else if (has && has != v)
		(void)err_say(e, -EEXIST,
		    "tag \"%.140s\" already exists on version %llu of job \"%.140s\"", name,
		    (unsigned long long)has->ref->job.version, local_job_wanted(j)->id);
	else
		return json_pack("{s:s, s:s, s:I}", "Name", name, "Description", description,
		    "TaggedTime", (json_int_t)clock_real_ns());
	return NULL;
}

static int
tag_version(struct local *l, struct local_job *j, struct api_req *req, json_t **ret, struct err *e)
{
	const json_t *body = api_body_object(req, e);
	struct local_version *v;
	json_t *tag;
	int r;

	if (!body)
		return -EINVAL;
	r = find_to_tag(j, body, &v, e);
	if (r < 0)
		return r;
	tag = make_tag(j, v, api_param(req, 1), body, e);
	if (!tag)
		return e->code ? e->code : err_say(e, -EINVAL, "the tag is not valid UTF-8");
	*ret = json_copy(tag);
	local_version_set_tag(l, v, tag);
	return 0;
}

static void
reply_tag(struct local *l, struct api_req *req, int r, json_t *answer, const struct err *e)
{
	if (r < 0) {
		api_reply_error(req, r == -ENOENT ? 404 : r == -EEXIST ? 409 : 400, "%s", e->msg);
		return;
	}
	(void)json_object_set_new(answer, "Index", json_integer((json_int_t)l->index));
	api_reply_json(req, answer);
}

void
local_api_tag_version(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	struct err e = { 0 };
	json_t *answer = NULL;
	int r;

	if (!j)
		return;
	r = tag_version(local_of_sup(sup), j, req, &answer, &e);
	reply_tag(local_of_sup(sup), req, r, answer, &e);
}

void
local_api_untag_version(struct sup *sup, struct api_req *req)
{
	struct local_job *j = local_api_find_job(sup, req);
	const char *name = api_param(req, 1);
	struct local_version *v = j ? local_job_tagged(j, name) : NULL;
	struct err e = { 0 };
	json_t *answer = NULL;
	int r = 0;

	if (!j)
		return;
	if (v) {
		local_version_set_tag(local_of_sup(sup), v, NULL);
		answer =
		    json_pack("{s:s, s:s, s:i}", "Name", "", "Description", "", "TaggedTime", 0);
	} else {
		r = err_say(&e, -ENOENT, "tag \"%.140s\" not found on job \"%.140s\"", name,
		    local_job_wanted(j)->id);
	}
	reply_tag(local_of_sup(sup), req, r, answer, &e);
}
