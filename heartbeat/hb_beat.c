// SPDX-License-Identifier: Apache-2.0
/* hb_beat.c: sends heartbeats and renews the lease. Runs in: heartbeat. */
#include "heartbeat/hb_beat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/lease.h"
#include "common/log.h"
#include "common/proc.h"
#include "heartbeat/hb_call.h"
#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_link.h"
#include "proto/heartbeat.pb-c.h"

#define NEVER       UINT64_MAX
#define LOCAL_MS    1000
#define ANSWER_MS   10000 /* to answer a heartbeat: the grace period that servers add to the TTL */
#define TTL_MIN_MS  1000  /* used if a server grants less */
#define TTL_MAX_MS  3600000
#define RETRY_MS    1000
#define RETRY_MAX   5  /* at most so many doublings of the retry interval */
#define STAGGER_MS  10 /* per node of the cluster: spreads first heartbeats after registrations */
#define STAGGER_MAX 10000

void
hb_beat_init(struct hb *hb)
{
	hb->beat = (struct hb_beat){ .next_ms = hb->now_ms };
}

/* Renews the lease from the time before the supervisor was asked, because it is known to have been
 * alive only then. */
static void
move_lease(struct hb *hb, uint64_t when_ns)
{
	CRASH_POINT(HB_BEFORE_BEAT);
	lease_set_ok(hb->lease, when_ns);
	CRASH_POINT(HB_AFTER_BEAT);
}

uint64_t
hb_beat_tick(struct hb *hb)
{
	struct hb_beat *b = &hb->beat;
	HbBeatReq req = HB_BEAT_REQ__INIT;

	if (b->next_ms > hb->now_ms)
		return b->next_ms;
	/* A request that has not been answered stays valid, also without servers: the supervisor
	 * answers it when it runs again, and an answer to an older cycle is ignored. */
	if (!STAILQ_EMPTY(&hb->ipc.packets) || (hb->link && (b->asked_ns || b->at_server))) {
		b->next_ms = hb->now_ms + LOCAL_MS;
		return b->next_ms;
	}
	b->next_ms = hb->link ? NEVER : hb->now_ms + LOCAL_MS;
	b->asked_ns = clock_boot_ns();
	req.cycle = ++b->cycle;
	hb_ipc_tell(hb, HB_BEAT_REQ, (uint32_t)b->cycle, &req.base, -1);
	return b->next_ms;
}

/* --- at the servers --- */

static void
set_ttl(struct hb *hb, const struct hb_rpc_node *node)
{
	int64_t ttl_ms = node->ttl_ns / 1000000;

	if (ttl_ms < TTL_MIN_MS)
		ttl_ms = TTL_MIN_MS;
	if (ttl_ms > TTL_MAX_MS)
		ttl_ms = TTL_MAX_MS;
	hb->beat.ttl_ms = (uint64_t)ttl_ms;
	hb_link_set_servers(hb->link, node);
}

/* Parses the answer to a heartbeat or registration, the only body that heartbeat reads. */
static int
read_node(struct hb_call *c, struct hb_rpc_node *ret)
{
	const void *map = NULL;
	size_t len;
	int r;

	if (c->body.fd < 0)
		return hb_rpc_get_node(c->body.buf.data, c->body.buf.len, ret);
	map = mmap(NULL, len = c->body.len, PROT_READ, MAP_SHARED, c->body.fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r = hb_rpc_get_node(map, len, ret);
	(void)munmap((void *)(uintptr_t)map, len);
	return r;
}

void
hb_beat_on_answer(struct hb *hb, struct hb_call *c)
{
	static struct hb_rpc_node node;
	uint64_t stagger = STAGGER_MAX;

	if (strcmp(c->method, "Node.Register") != 0 || read_node(c, &node) < 0)
		return;
	set_ttl(hb, &node);
	move_lease(hb, c->begun_ns);
	if (node.n_nodes < STAGGER_MAX / STAGGER_MS)
		stagger = STAGGER_MS * (node.n_nodes > 0 ? (uint64_t)node.n_nodes : 1);
	hb->beat.next_ms = hb->now_ms + hb_random(stagger);
	hb->beat.failures = 0;
}

void
hb_beat_on_server(struct hb *hb)
{
	if (hb->beat.ttl_ms || hb->beat.cycle == 0)
		hb->beat.next_ms = hb->now_ms;
}

static uint64_t
retry_ms(struct hb_beat *b)
{
	uint64_t base = (uint64_t)RETRY_MS << (b->failures < RETRY_MAX ? b->failures : RETRY_MAX);

	b->failures++;
	return base + hb_random(base);
}

/* The servers do not know the node: the supervisor registers it again, which restarts the
 * heartbeats. */
static bool
is_unknown(const char *error)
{
	return strstr(error, "node not found") || strstr(error, "Permission denied");
}

static void
tell_done(struct hb *hb, struct hb_call *c, int code, const char *error)
{
	HbBeatDoneEv ev = HB_BEAT_DONE_EV__INIT;
	int fd = -1;

	if (code == 0 && c->body.fd >= 0)
		code = fd = hb_body_seal(&c->body);
	ev.cycle = hb->beat.cycle;
	ev.code = code < 0 ? code : 0;
	ev.error = (char *)(uintptr_t)error;
	if (code == 0 && fd < 0)
		ev.body = (ProtobufCBinaryData){ c->body.buf.len, c->body.buf.data };
	hb_ipc_tell(hb, fd < 0 ? HB_BEAT_DONE_EV : HB_BEAT_DONE_BIG_EV, 0, &ev.base, fd);
}

static void
on_done(struct hb *hb, struct hb_call *c, int r, const struct err *e)
{
	static struct hb_rpc_node node;
	struct hb_beat *b = &hb->beat;

	b->at_server = false;
	if (r == 0 && !c->error && read_node(c, &node) == 0) {
		set_ttl(hb, &node);
		move_lease(hb, b->asked_ns);
		b->asked_ns = 0;
		b->failures = 0;
		b->next_ms = hb->now_ms + b->ttl_ms;
		tell_done(hb, c, 0, "");
		return;
	}
	b->asked_ns = 0;
	b->next_ms = c->error && is_unknown(c->error) ? NEVER : hb->now_ms + retry_ms(b);
	if (r == 0 && !c->error)
		tell_done(hb, c, -EBADMSG, "the server's answer to a heartbeat is invalid");
	else
		tell_done(hb, c, r < 0 ? r : -EREMOTEIO, r < 0 ? e->msg : c->error);
}

static void
send_to_server(struct hb *hb, const HbBeatRep *rep)
{
	struct hb_beat *b = &hb->beat;
	struct hb_buf body = { 0 };
	struct hb_call *c;

	hb_buf_add(&body, rep->body.data, rep->body.len);
	c = hb_call_new(hb, "Node.UpdateStatus", &body, NULL, 0, ANSWER_MS, true, on_done);
	b->at_server = c != NULL;
	if (c)
		return;
	hb_buf_done(&body);
	b->asked_ns = 0;
	b->next_ms = hb->now_ms + retry_ms(b);
}

/* Only the first answer to the last request counts. */
void
hb_beat_on_rep(struct hb *hb, const struct ipc_packet *p)
{
	const HbBeatRep *rep = p->msg;
	struct hb_beat *b = &hb->beat;

	if (rep->cycle != b->cycle || b->asked_ns == 0 || b->at_server)
		return;
	if (!hb->link) {
		move_lease(hb, b->asked_ns);
		b->asked_ns = 0;
	} else if (rep->body.len > 0) {
		send_to_server(hb, rep);
	} else {
		b->asked_ns = 0; /* not registered: Node.Register starts the heartbeats */
	}
}
