// SPDX-License-Identifier: Apache-2.0
/* nomad_call.c: what all calls of this node to the servers have in common. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/log.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/node/node_state.h"

uint64_t
nomad_retry_ms(unsigned *failures, uint64_t base_ms, uint64_t max_ms)
{
	uint64_t ms = base_ms << (*failures < 16 ? *failures : 16);

	(*failures)++;
	if (ms > max_ms)
		ms = max_ms;
	return ms + (uint64_t)random() % ms;
}

void
nomad_after(struct nomad *n, struct sd_event_source **timer, uint64_t ms,
    int (*fn)(struct sd_event_source *s, uint64_t usec, void *nomad))
{
	*timer = sd_event_source_disable_unref(*timer);
	if (sd_event_add_time_relative(
		n->base.sup->event, timer, CLOCK_BOOTTIME, ms * 1000, 0, fn, n) < 0)
		log_error("out of memory for a timer of the link to the servers");
}

const char *
nomad_region(const struct nomad *n)
{
	const char *region = n->base.sup->config->region;

	return region[0] ? region : "global";
}

/* Returns the node's token: none before the first registration, then the node's secret or the
 * identity that the servers issued. */
const char *
nomad_token(const struct nomad *n)
{
	if (n->identity)
		return n->identity;
	return n->registered ? node_get(n->base.sup)->secret_id : "";
}

void
nomad_query(struct nomad *n, struct rpc_query *q)
{
	(void)str_set(&q->region, nomad_region(n));
	(void)str_set(&q->auth_token, nomad_token(n));
}

void
nomad_write(struct nomad *n, struct rpc_write *w)
{
	(void)str_set(&w->region, nomad_region(n));
	(void)str_set(&w->auth_token, nomad_token(n));
}

uint64_t
nomad_call(struct nomad *n, const char *method, const struct type *type, const void *req,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg)
{
	struct text body = { 0 };
	uint64_t call;

	model_to_msgpack(type, req, MODEL_COMPACT, &body);
	call = link_call(n->base.sup, method, body.text, body.len, deadline_ms, flags, cb, arg);
	text_done(&body);
	return call;
}
