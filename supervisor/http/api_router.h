/* SPDX-License-Identifier: Apache-2.0 */
/* api_router.h: parses and percent-decodes a request's target and finds its route. Pure. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_ROUTER_H
#define DROVER_SUPERVISOR_HTTP_API_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct api_route;

#define API_TARGET_MAX     8192 /* bytes */
#define API_COMPONENTS_MAX 72   /* the path of a variable may have 64 */
#define API_PARAMS_MAX     4
#define API_QUERY_MAX      32

struct api_query_pair {
	const char *name, *value;
};

/* A parsed target. All strings point into buf or rest. A zeroed one is empty. */
struct api_target {
	char *buf;
	char *rest; /* the part of the path that matched "*" */
	unsigned n_components, n_params, n_query;
	const char *components[API_COMPONENTS_MAX]; /* decoded: may contain a '/' */
	const char *params[API_PARAMS_MAX]; /* the pattern's parameters; set by api_route_find() */
	struct api_query_pair query[API_QUERY_MAX];
};

/* Parses "/v1/job/a%2Fb?x=1". -EINVAL for an invalid target: not absolute, a bad escape, an encoded
 * NUL, too many components or parameters; -E2BIG beyond API_TARGET_MAX. *ret must be freed with
 * api_target_done(), also on failure. */
int api_target_parse(const char *uri, struct api_target *ret, struct err *e);
void api_target_done(struct api_target *t);
/* Returns the first query parameter of that name; NULL if there is none. */
const char *api_target_query(const struct api_target *t, const char *name);

/* Finds the first of the routes (the last entry has no method) that has a handler and matches. A
 * pattern's last component may be "*", which matches the rest of the path, at least one component,
 * and becomes the last parameter. The id of a job may have slashes that are not escaped: where no
 * pattern matches otherwise, it takes as few of the next components as possible. Returns 0 with
 * *ret and t->params set; -ENOENT: no such path; -EPERM: the path exists, but not with this method.
 * POST finds PUT, HEAD finds GET, and all of these and DELETE find ANY. */
int api_route_find(const struct api_route *routes, const char *method, struct api_target *t,
    const struct api_route **ret);

/* Why the paths that fit a pattern of fnmatch(3), in which a * also matches slashes, are not
 * answered. */
struct api_absent {
	const char *paths, *why;
};

/* Returns the reason of the first entry that fits the request's target, or NULL. The last entry of
 * the table is empty. */
const char *api_absent_reason(const struct api_absent *table, const char *target);

#endif
