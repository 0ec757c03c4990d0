// SPDX-License-Identifier: Apache-2.0
/* nomad_call.c: what all calls of this node to the servers have in common. Runs in: supervisor. */
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/rpc/rpc_stream.h"
#include "supervisor/core/sup_timer.h"
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
nomad_after(struct nomad *n, struct sup_timer *timer, uint64_t ms, void (*fn)(void *nomad))
{
	sup_timer_set(n->src.base.sup, timer, CLOCK_BOOTTIME, ms * 1000, fn, n);
}

const char *
nomad_region(const struct nomad *n)
{
	const char *region = n->src.base.sup->config->region;

	return region[0] ? region : "global";
}

/* No token before the first registration, then the node's secret or the identity that the servers
 * issued. */
const char *
nomad_token(const struct nomad *n)
{
	if (n->identity)
		return n->identity;
	return n->registered ? node_get(n->src.base.sup)->secret_id : "";
}

void
nomad_query(struct nomad *n, struct rpc_query *q)
{
	str_set(&q->region, nomad_region(n));
	str_set(&q->auth_token, nomad_token(n));
}

void
nomad_write(struct nomad *n, struct rpc_write *w)
{
	str_set(&w->region, nomad_region(n));
	str_set(&w->auth_token, nomad_token(n));
}

void
nomad_write_done(struct rpc_write *w)
{
	free(w->region);
	free(w->namespace);
	free(w->auth_token);
	*w = (struct rpc_write){ 0 };
}

uint64_t
nomad_call(struct nomad *n, const char *method, const struct type *type, const void *req,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg)
{
	struct text body = { 0 };
	uint64_t call;

	model_to_msgpack(type, req, MODEL_COMPACT, &body);
	call = link_call(n->src.base.sup, method, body.text, body.len, deadline_ms, flags, cb, arg);
	text_done(&body);
	return call;
}

int
nomad_decode(int r, const void *body, size_t len, const struct err *e, const struct type *type,
    void *rep, struct err *ret_e)
{
	model_init(type, rep);
	if (r < 0) {
		*ret_e = *e;
		return r;
	}
	return model_from_msgpack(type, body, len, rep, WIRE_MEMORY_MAX, ret_e);
}

void
nomad_stream_fail(struct sup *sup, uint64_t stream, int status, const char *message)
{
	struct text frame = { 0 };

	rpc_frame_error(&frame, status, message);
	link_stream_write(sup, stream, frame.text, frame.len);
	link_stream_close(sup, stream);
	text_done(&frame);
}
