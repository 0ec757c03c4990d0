// SPDX-License-Identifier: Apache-2.0
/*
 * api_health.c: /v1/agent/health: whether the work loop works, and with ?deep=1 the result of a
 * probe. Runs in: supervisor.
 */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/err.h"
#include "common/clock.h"
#include "common/mem.h"
#include "model/engine/walk.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/health/probe.h"
#include "supervisor/http/api.h"
#include "supervisor/source/source_api.h"

struct health_request {
	struct api_held held;
	struct probe_waiter waiter;
};

/* The servers are no part of this node's health: without them it keeps what it has. */
static json_t *
describe_servers(struct sup *sup)
{
	const struct source_api *source = sup->source->api;
	const char *why = "";
	int64_t since = source->server_lost_since ? source->server_lost_since(sup, &why) : 0;
	json_t *o = json_pack(
	    "{s:s, s:s}", "source", sup->source->ops->name, "state", since ? "stalled" : "ok");
	char text[RFC3339_SIZE];

	if (!since)
		return o;
	time_format(since, text);
	(void)json_object_set_new(o, "since", json_string(text));
	(void)json_object_set_new(o, "message", json_string(str(why)));
	return o;
}

static json_t *
describe_probe(struct sup *sup, bool *ret_ok)
{
	const struct components *all = health_components(sup);
	const struct component *bad;
	enum health_state state = components_state(all, &bad);
	cleanup_free char *message =
	    bad ? mem_printf("%s: %s", bad->name, str(bad->sentence)) : NULL;
	uint64_t took_ms;

	(void)health_probes(sup, &took_ms);
	*ret_ok = !bad;
	return json_pack("{s:{s:b, s:s, s:s}, s:o, s:o, s:I}", "client", "ok", !bad, "state",
	    health_state_name(state), "message", message ? message : "ok", "components",
	    components_describe(all), "servers", describe_servers(sup), "duration_ms",
	    (json_int_t)took_ms);
}

static void
on_probed(struct sup *sup, struct probe_waiter *w)
{
	struct health_request *hr = container_of(w, struct health_request, waiter);
	struct api_req *req = hr->held.req;
	json_t *body;
	bool ok;

	api_hold(req, NULL);
	free(hr);
	body = describe_probe(sup, &ok);
	api_reply_json_status(req, ok ? 200 : 503, body);
}

static void
on_left(struct api_held *held)
{
	struct health_request *hr = container_of(held, struct health_request, held);

	probe_leave(api_req_sup(held->req), &hr->waiter);
	free(hr);
}

static void
probe(struct sup *sup, struct api_req *req)
{
	struct health_request *hr = mem_new(struct health_request);

	*hr = (struct health_request){ .held = { .done = on_left, .req = req },
		.waiter.done = on_probed };
	api_hold(req, &hr->held);
	probe_join(sup, &hr->waiter);
}

void
api_get_health(struct sup *sup, struct api_req *req)
{
	const char *why = NULL;
	bool ok = !turn_is_stuck(sup, &why), deep = false;
	struct err e = { 0 };

	if (api_query_bool(req, "deep", &deep, &e) < 0)
		api_reply_error(req, 400, "%s", e.msg);
	else if (deep)
		probe(sup, req);
	else
		api_reply_json_status(req, ok ? 200 : 500,
		    json_pack("{s:{s:b, s:s}}", "client", "ok", ok, "message", ok ? "ok" : why));
}
