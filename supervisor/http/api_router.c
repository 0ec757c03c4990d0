// SPDX-License-Identifier: Apache-2.0
/* api_router.c: takes request targets apart and finds their routes. Runs in: supervisor. */
#include "supervisor/http/api_router.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/percent.h"
#include "supervisor/http/api.h"

#define JOB_PATH "/v1/job/:" /* a job's id is the only one that may have slashes */

static int
decode_part(char *s, bool plus, struct err *e)
{
	int r = percent_decode(s, plus);

	if (r == -EILSEQ)
		return err_say(e, -EINVAL, "NUL in the request's target");
	return r < 0 ? err_say(e, -EINVAL, "bad percent escape in the request's target") : 0;
}

static int
split_path(char *path, struct api_target *t, struct err *e)
{
	int r;

	for (char *at = path; at;) {
		char *part = at + 1;

		at = strchr(part, '/');
		if (at)
			*at = '\0';
		if (t->n_components == API_COMPONENTS_MAX)
			return err_say(e, -EINVAL, "the request's path has too many components");
		r = decode_part(part, false, e);
		if (r < 0)
			return r;
		t->components[t->n_components++] = part;
	}
	return 0;
}

static int
split_query(char *query, struct api_target *t, struct err *e)
{
	char *save = NULL;
	int r;

	for (char *part = strtok_r(query, "&", &save); part; part = strtok_r(NULL, "&", &save)) {
		char *value = strchr(part, '=');

		if (t->n_query == API_QUERY_MAX)
			return err_say(e, -EINVAL, "the request has too many parameters");
		if (value)
			*value++ = '\0';
		else
			value = part + strlen(part);
		r = decode_part(part, true, e);
		if (r >= 0)
			r = decode_part(value, true, e);
		if (r < 0)
			return r;
		t->query[t->n_query++] = (struct api_query_pair){ part, value };
	}
	return 0;
}

int
api_target_parse(const char *uri, struct api_target *ret, struct err *e)
{
	char *query;
	int r;

	*ret = (struct api_target){ 0 };
	if (uri[0] != '/')
		return err_say(e, -EINVAL, "the request's target is not an absolute path");
	if (strlen(uri) > API_TARGET_MAX)
		return err_say(
		    e, -E2BIG, "the request's target is longer than %d bytes", API_TARGET_MAX);
	ret->buf = mem_strdup(uri);
	query = strchr(ret->buf, '?');
	if (query)
		*query++ = '\0';
	r = split_path(ret->buf, ret, e);
	return r < 0 || !query ? r : split_query(query, ret, e);
}

void
api_target_done(struct api_target *t)
{
	free(t->buf);
	free(t->rest);
	*t = (struct api_target){ 0 };
}

const char *
api_target_query(const struct api_target *t, const char *name)
{
	for (unsigned i = 0; i < t->n_query; i++) {
		if (strcmp(t->query[i].name, name) == 0)
			return t->query[i].value;
	}
	return NULL;
}

/* Joins n components from the first-th on with slashes. */
static const char *
join_components(struct api_target *t, unsigned first, unsigned n)
{
	size_t len = 0;

	for (unsigned i = first; i < first + n; i++)
		len += strlen(t->components[i]) + 1;
	free(t->rest);
	t->rest = mem_alloc(len + 1);
	t->rest[0] = '\0';
	for (unsigned i = first; i < first + n; i++) {
		if (i > first)
			(void)strcat(t->rest, "/");
		(void)strcat(t->rest, t->components[i]);
	}
	return t->rest;
}

/* Matches a pattern and sets the parameters, which are valid only if it matches. The first
 * parameter takes `more` components beside its own. */
static bool
pattern_fits(const char *pattern, unsigned more, struct api_target *t)
{
	unsigned i = 0;

	t->n_params = 0;
	while (*pattern == '/') {
		size_t len = strcspn(++pattern, "/");

		if (i == t->n_components)
			return false;
		if (*pattern == '*') {
			if (t->n_params == API_PARAMS_MAX)
				return false;
			t->params[t->n_params] = join_components(t, i, t->n_components - i);
			return t->params[t->n_params++][0] != '\0';
		}
		if (*pattern == ':') {
			if (t->components[i][0] == '\0' || t->n_params == API_PARAMS_MAX)
				return false;
			if (more > 0 && t->n_params == 0) {
				if (i + more >= t->n_components)
					return false;
				t->params[t->n_params++] = join_components(t, i, more + 1);
				i += more;
			} else {
				t->params[t->n_params++] = t->components[i];
			}
		} else if (strlen(t->components[i]) != len ||
			   memcmp(t->components[i], pattern, len) != 0) {
			return false;
		}
		pattern += len;
		i++;
	}
	return i == t->n_components;
}

static bool
method_fits(const char *route, const char *method)
{
	if (strcmp(method, "POST") == 0)
		method = "PUT";
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	if (strcmp(route, "ANY") == 0)
		return strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0 ||
		       strcmp(method, "DELETE") == 0;
	return strcmp(route, method) == 0;
}

/* Finds a route of jobs whose id has slashes that are not escaped, as Nomad does: of the longest
 * pattern that fits. A job is not registered this way, so that an unknown path is not taken for an
 * id. Returns false if there is none. */
static bool
find_job_route(const struct api_route *routes, const char *method, struct api_target *t,
    const struct api_route **ret)
{
	unsigned fewest = t->n_components;

	*ret = NULL;
	for (; routes->method; routes++) {
		if (strncmp(routes->pattern, JOB_PATH, strlen(JOB_PATH)) != 0)
			continue;
		for (unsigned more = 1; more <= fewest && more < t->n_components; more++) {
			if (!pattern_fits(routes->pattern, more, t))
				continue;
			if (more < fewest)
				*ret = NULL;
			fewest = more;
			if (routes->fn && method_fits(routes->method, method))
				*ret = routes;
		}
	}
	if (!*ret || (strcmp((*ret)->method, "PUT") == 0 &&
			 !strchr((*ret)->pattern + strlen(JOB_PATH), '/')))
		return false;
	return pattern_fits((*ret)->pattern, fewest, t);
}

int
api_route_find(const struct api_route *routes, const char *method, struct api_target *t,
    const struct api_route **ret)
{
	const struct api_route *all = routes;
	bool path_exists = false, path_known = false; /* the second: with a handler */

	for (; routes->method; routes++) {
		if (!pattern_fits(routes->pattern, 0, t))
			continue;
		if (routes->fn && method_fits(routes->method, method)) {
			*ret = routes;
			return 0;
		}
		path_exists = true;
		path_known |= routes->fn != NULL;
	}
	if (!path_exists && find_job_route(all, method, t, ret))
		return 0;
	t->n_params = 0;
	return path_known ? -EPERM : -ENOENT;
}

const char *
api_absent_reason(const struct api_absent *table, const char *target)
{
	cleanup_free char *path = mem_strndup(target, strcspn(target, "?"));

	for (; table->paths; table++)
		if (fnmatch(table->paths, path, 0) == 0)
			return table->why;
	return NULL;
}
