// SPDX-License-Identifier: Apache-2.0
/* link.c: calls to the servers through heartbeat, and beats. Runs in: supervisor. */
#include "supervisor/cluster/link/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "proto/heartbeat.pb-c.h"
#include "supervisor/cluster/link/link_stream.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_child.h"

/* Bytes of the largest body inside a packet: the message's limit less its other fields. */
#define INLINE_MAX 60000
/* heartbeat ends a call at its deadline. If heartbeat hangs, the supervisor fails the call this
 * much later. */
#define SLACK_MS 5000

struct link_wait {
	link_cb *cb;
	void *arg;
};

/* Calls cb with an answer whose body is in the message or in a memfd. */
static void
hand_over(struct sup *sup, link_cb *cb, void *arg, const ProtobufCBinaryData *body, int fd)
{
	struct err e = { 0 };
	const void *map;
	size_t len;
	int r;

	if (fd < 0) {
		link_of(sup)->counts.bytes_in += body->len;
		cb(sup, arg, 0, body->data, body->len, NULL);
		return;
	}
	r = fd_memfd_map(fd, LINK_BODY_MAX, &map, &len);
	if (r < 0) {
		(void)err_set(&e, r, "read an answer from heartbeat");
		cb(sup, arg, r, NULL, 0, &e);
		return;
	}
	link_of(sup)->counts.bytes_in += len;
	cb(sup, arg, 0, map, len, NULL);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
}

static void
on_call_end(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const HbCallRep *rep = msg;
	cleanup_free struct link_wait *w = arg;
	cleanup_close int body_fd = fd;
	struct err remote = { 0 };

	link_of(sup)->counts.failed_calls += r < 0;
	if (r == 0 && rep->error[0])
		r = err_say(&remote, -EREMOTEIO, "%s", rep->error);
	if (r == 0)
		hand_over(sup, w->cb, w->arg, &rep->body, body_fd);
	else
		w->cb(sup, w->arg, r, NULL, 0, r == -EREMOTEIO && remote.code ? &remote : e);
}

uint64_t
link_call(struct sup *sup, const char *method, const void *body, size_t len, unsigned deadline_ms,
    unsigned flags, link_cb *cb, void *arg)
{
	struct link_wait *w = mem_new(struct link_wait);
	HbCallReq req = HB_CALL_REQ__INIT;
	bool big = len > INLINE_MAX;
	int fd = -1;

	link_of(sup)->counts.calls++;
	link_of(sup)->counts.bytes_out += len;
	w->cb = cb;
	w->arg = arg;
	req.method = (char *)(uintptr_t)method;
	req.deadline_ms = deadline_ms;
	req.repeat = flags & LINK_REPEAT;
	if (big)
		fd = fd_memfd_sealed("body", body, len);
	else
		req.body = (ProtobufCBinaryData){ len, (uint8_t *)(uintptr_t)body };
	if (big && fd < 0) { /* if this fails, flush() fails the call with -EMSGSIZE */
		big = false;
		req.body = (ProtobufCBinaryData){ len, (uint8_t *)(uintptr_t)body };
	}
	return child_call(sup, IPC_HEARTBEAT, big ? HB_CALL_BIG_REQ : HB_CALL_REQ, &req.base, fd,
	    deadline_ms + SLACK_MS, flags & LINK_REPEAT ? CALL_REPEAT : 0, on_call_end, w);
}

void
link_cancel(struct sup *sup, uint64_t call)
{
	HbCallCancelEv ev = HB_CALL_CANCEL_EV__INIT;
	struct link_wait *w = child_call_drop(sup, call);

	if (!w)
		return;
	free(w);
	ev.call = (uint32_t)call;
	child_tell(sup, IPC_HEARTBEAT, HB_CALL_CANCEL_EV, &ev.base);
}

static void
answer_beat(struct sup *sup, uint8_t **ret_data, size_t *ret_len)
{
	const void *body = NULL;
	size_t len = 0;

	link_of(sup)->events->beat(sup, &body, &len);
	link_of(sup)->beat_ns = clock_boot_ns();
	*ret_data = (uint8_t *)(uintptr_t)body;
	*ret_len = len <= LINK_BEAT_MAX ? len : 0;
}

static void
count_beat(struct link *l, int code)
{
	l->counts.failed_beats += code < 0;
	if (code >= 0 && l->beat_ns)
		histogram_add(&l->counts.beats, (clock_boot_ns() - l->beat_ns) / 1000);
	l->beat_ns = 0;
}

static void
on_beat_done(struct sup *sup, const HbBeatDoneEv *ev, int fd)
{
	link_cb *done = link_of(sup)->events->beat_done;
	cleanup_close int body_fd = fd;
	struct err e = { 0 };

	count_beat(link_of(sup), ev->code);
	if (ev->code >= 0) {
		hand_over(sup, done, NULL, &ev->body, body_fd);
		return;
	}
	(void)err_say(&e, ev->code, "%s", ev->error);
	done(sup, NULL, ev->code, NULL, 0, &e);
}

static void
set_server(struct sup *sup, const char *server, const char *why)
{
	struct link *l = link_of(sup);

	if (strcmp(l->server, server) == 0 && server[0])
		return;
	l->joined |= server[0] != '\0';
	l->counts.connections += server[0] != '\0';
	if (l->server[0] && !server[0])
		l->lost_ns = clock_real_ns();
	(void)snprintf(l->server, sizeof l->server, "%s", server);
	(void)snprintf(l->why, sizeof l->why, "%s", why);
	l->events->server_changed(sup, l->server, why);
}

static void
on_server(struct sup *sup, const HbServerEv *ev)
{
	struct link *l = link_of(sup);

	for (l->n_known = 0; l->n_known < ev->n_known && l->n_known < LINK_KNOWN_MAX; l->n_known++)
		(void)snprintf(
		    l->known[l->n_known], sizeof l->known[0], "%s", ev->known[l->n_known]);
	set_server(sup, ev->server, ev->why);
	/* A heartbeat process that was started again does not know that servers were reached. */
	if (!ev->gives_up || l->joined || sup->args.generation > 1)
		return;
	journal_error(JOURNAL_SERVERS, NULL,
	    "no server was reached in %llu attempts, so the agent ends, as server_join { retry_max "
	    "} "
	    "says; tasks keep running: %s",
	    (unsigned long long)sup->config->retry_max + 1, ev->why);
	sup->exit_code = PROC_EXIT_GIVE_UP;
	sup->exiting = true;
}

static int
on_event(struct sup *sup, struct ipc_packet *p)
{
	if (!p) {
		link_streams_lose(sup);
		set_server(sup, "", "the heartbeat process has ended");
		return 0;
	}
	switch (p->type) {
	case HB_BEAT_DONE_EV:
	case HB_BEAT_DONE_BIG_EV:
		on_beat_done(sup, p->msg, p->n_fds ? steal_fd(&p->fds[0]) : -1);
		return 0;
	case HB_SERVER_EV:
		on_server(sup, p->msg);
		return 0;
	default:
		return link_streams_event(sup, p);
	}
}

void
link_new(struct link_source *src, const struct link_events *events,
    const struct link_method *methods, link_gate *gate)
{
	struct link *l = mem_new(struct link);

	l->events = events;
	l->methods = methods;
	l->gate = gate;
	l->lost_ns = clock_real_ns();
	src->link = l;
	child_listen(src->base.sup, IPC_HEARTBEAT, on_event);
	child_answer_beats(src->base.sup, answer_beat);
}

void
link_free(struct link_source *src)
{
	child_listen(src->base.sup, IPC_HEARTBEAT, NULL);
	child_answer_beats(src->base.sup, NULL);
	link_streams_free(src->link);
	free_p(&src->link);
}

const char *
link_server(const struct sup *sup)
{
	return link_of(sup)->server;
}

const char *
link_server_known(const struct sup *sup, size_t i)
{
	return i < link_of(sup)->n_known ? link_of(sup)->known[i] : NULL;
}

int64_t
link_lost_since(const struct sup *sup, const char **ret_why)
{
	*ret_why = link_of(sup)->why;
	return link_of(sup)->server[0] ? 0 : link_of(sup)->lost_ns;
}

const struct source_link *
link_counts(const struct sup *sup)
{
	return &link_of(sup)->counts;
}
