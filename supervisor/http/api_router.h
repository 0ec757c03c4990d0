/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_router.h: what a request asks for: the target, taken apart and percent-decoded, and the route
 * that serves it. Pure. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HTTP_API_ROUTER_H
#define DROVER_SUPERVISOR_HTTP_API_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct api_route;

#define API_TARGET_MAX     8192
#define API_COMPONENTS_MAX 40
#define API_PARAMS_MAX     4
#define API_QUERY_MAX      32

struct api_query_pair {
	const char *name, *value;
};

/* All strings lie in buf, or rest. Zero is an empty one. */
struct api_target {
	char *buf;
	char *rest; /* what the "*" of a pattern stands for */
	unsigned n_components, n_params, n_query;
	const char *components[API_COMPONENTS_MAX]; /* decoded: one may hold a '/' */
	const char *params[API_PARAMS_MAX];         /* those that a ":" of the pattern named; set by
						       api_route_find() */
	struct api_query_pair query[API_QUERY_MAX];
};

/*
 * Takes "/v1/job/a%2Fb?x=1" apart. -EINVAL for what is no target: not absolute, a bad escape, an
 * encoded NUL, too many components or parameters; -E2BIG beyond API_TARGET_MAX; -ENOMEM. *ret is
 * freed with api_target_done(), also on failure.
 */
int api_target_parse(const char *uri, struct api_target *ret, struct err *e);
void api_target_done(struct api_target *t);
/* NULL: the target has none of that name. The first of several. */
const char *api_target_query(const struct api_target *t, const char *name);

/*
 * A pattern's last component may be "*": it takes all that is left of the path, with its slashes,
 * one component at least; it is the last of the parameters. Looks through the NULL-terminated list
 * of tables (each ends with a route without a method). 0 with *ret and t->params set; -ENOENT: no
 * such path; -EPERM: the path exists, not with this method. POST finds PUT, HEAD finds GET.
 */
int api_route_find(const struct api_route *const *tables, const char *method, struct api_target *t,
    const struct api_route **ret);

#endif
