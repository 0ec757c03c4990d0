// SPDX-License-Identifier: Apache-2.0
/* fuzz_api_target.c: any text as a request's target, which is split, decoded and routed. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/http/api.h"
#include "supervisor/http/api_router.h"
#include "tests/fuzz/fuzz.h"

static void
serve(struct sup *sup, struct api_req *req)
{
	(void)sup;
	(void)req;
}

static const struct api_route routes[] = {
	{ "GET", "/v1/jobs", serve, false, false },
	{ "PUT", "/v1/job/:id", serve, true, false },
	{ "GET", "/v1/volume/csi/:id", serve, false, false },
	{ "GET", "/:a/:b/:c/:d", serve, false, false },
	{ "GET", "/:a/:b/:c/:d/:e", serve, false, false },
	{ 0 },
};

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *uri = strndup((const char *)data, size);
	const struct api_route *route;
	struct api_target t;
	struct err e = { 0 };

	if (!uri)
		return 0;
	if (api_target_parse(uri, &t, &e) == 0) {
		/* All parts are in one buffer, which decoding never makes longer. */
		for (unsigned i = 0; i < t.n_components; i++)
			HOLDS(strlen(t.components[i]) <= strlen(uri));
		for (unsigned i = 0; i < t.n_query; i++)
			HOLDS(api_target_query(&t, t.query[i].name) != NULL);
		if (api_route_find(routes, "GET", &t, &route) == 0)
			HOLDS(t.n_params <= API_PARAMS_MAX && route->fn == serve);
	}
	api_target_done(&t);
	free(uri);
	return 0;
}
