// SPDX-License-Identifier: Apache-2.0
/* plugin_calls.c: calls to CSI plugins, and their channels. Runs in: supervisor. */
#include "supervisor/volume/plugin_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/mem.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugin_inst.h"
#include "supervisor/volume/plugin_retry.h"

#define CHECK_USEC       1000000 /* interval of checks while calls wait for an instance */
#define BACKOFF_USEC     100000  /* before a lost call is retried */
#define PROBE_TIMEOUT_MS 5000

/* A call that has not ended. Without an instance it waits for one of that id and half. */
struct plugin_call {
	LIST_ENTRY(plugin_call) link;
	struct sup *sup;
	struct plugin *p; /* for a call to one instance that one, else chosen at each try; NULL
			     while there is none */
	bool instance;    /* the call is for one instance only */
	bool waiting;     /* for the instance's channel */
	bool settling;    /* the channel has been opened, or has failed */
	unsigned lost;    /* how often the connection was lost during the call */
	char *id;
	enum csi_plugin_kind half;
	uint64_t since_usec, not_before_usec; /* the wait for an instance; the next try */
	uint64_t call, channel_no;            /* the channel it was sent on */
	uint32_t helper;                      /* the generation of the csi-helper that got it */
	unsigned timeout_ms;
	plugin_call_cb *cb;
	void *arg;
	CsiCallReq__CallCase which;
	size_t len;
	uint8_t packed[];
};

static void try_call(struct plugin_call *pc);
static void on_check(void *arg);

static uint64_t
now_usec(struct sup *sup)
{
	uint64_t now;

	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

/* Checks the waiting calls after this time, or earlier if that is set already. */
static void
check_after(struct sup *sup, uint64_t usec)
{
	struct plugins *ps = sup->plugins;
	uint64_t at = now_usec(sup) + usec;

	if (sup_timer_is_set(&ps->check) && ps->check_usec <= at)
		return;
	ps->check_usec = at;
	sup_timer_set(sup, &ps->check, CLOCK_MONOTONIC, usec, on_check, sup);
}

/* Lets the call wait until an instance of its plugin answers, but at least for after_usec. */
static void
wait_for_instance(struct plugin_call *pc, uint64_t after_usec)
{
	pc->p = NULL;
	pc->since_usec = now_usec(pc->sup);
	pc->not_before_usec = pc->since_usec + after_usec;
	check_after(pc->sup, after_usec ? after_usec : CHECK_USEC);
}

/* Cancels the call at the plugin too: otherwise it would work on it until the deadline, and keep
 * the next call for the volume waiting. */
static void
abort_call(struct plugin_call *pc)
{
	CsiCallCancelEv ev = CSI_CALL_CANCEL_EV__INIT;

	if (!pc->call)
		return;
	child_call_cancel(pc->sup, pc->call);
	ev.call = (uint32_t)pc->call;
	if (pc->helper == child_generation(pc->sup, IPC_CSI_HELPER))
		child_tell(pc->sup, IPC_CSI_HELPER, CSI_CALL_CANCEL_EV, &ev.base);
}

void
plugin_call_cancel(struct plugin_call *pc)
{
	if (!pc)
		return;
	LIST_REMOVE(pc, link);
	abort_call(pc);
	free(pc->id);
	free(pc);
}

static void
call_end(struct plugin_call *pc, int r, const CsiCallRep *rep, const struct err *e)
{
	struct sup *sup = pc->sup;
	plugin_call_cb *cb = pc->cb;
	void *arg = pc->arg;

	plugin_call_cancel(pc);
	cb(sup, arg, r, rep, e);
}

static void
call_fail(struct plugin_call *pc, int code, const char *why)
{
	struct err e = { 0 };

	(void)err_say(&e, code, "%s of plugin %s: %s", csi_call_name(pc->which), pc->id, why);
	call_end(pc, code, NULL, &e);
}

static void
on_closed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	/* The channel is closed also if csi-helper has died. */
}

void
plugin_channel_close(struct plugin *p)
{
	CsiPluginCloseReq req = CSI_PLUGIN_CLOSE_REQ__INIT;

	child_call_cancel(p->sup, p->opening);
	p->opening = 0;
	req.channel = p->channel_no;
	if (p->channel == CHANNEL_OPEN && p->helper == child_generation(p->sup, IPC_CSI_HELPER))
		(void)csi_call_plugin_close(p->sup, &req, on_closed, NULL);
	p->channel = CHANNEL_CLOSED;
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const CsiCallRep *rep = msg;
	struct plugin_call *pc = arg;
	struct err why = { 0 };

	pc->call = 0;
	if (r == -ECONNRESET || (r >= 0 && rep->grpc_status == GRPC_UNAVAILABLE)) {
		/* A channel that is already being reopened stays: other calls wait for it. */
		if (pc->p && pc->p->channel == CHANNEL_OPEN && pc->p->channel_no == pc->channel_no)
			plugin_channel_close(pc->p);
		switch (plugin_retry_lost(++pc->lost, pc->instance)) {
		case PLUGIN_RETRY_NOW:
			try_call(pc);
			return;
		case PLUGIN_RETRY_LATER:
			wait_for_instance(pc, BACKOFF_USEC);
			return;
		case PLUGIN_RETRY_NO:
			break;
		}
	}
	if (r < 0) {
		call_end(pc, r, NULL, e);
		return;
	}
	r = csi_error(pc->which, pc->id, rep, &why);
	call_end(pc, r, rep, r < 0 ? &why : NULL);
}

static void
send_call(struct plugin_call *pc)
{
	CsiCallReq *req = mem_need(csi_call_req__unpack(NULL, pc->len, pc->packed));

	req->channel = pc->channel_no = pc->p->channel_no;
	req->timeout_ms = pc->timeout_ms;
	pc->helper = pc->p->helper;
	pc->call = csi_call_call(pc->sup, req, on_answer, pc);
	csi_call_req__free_unpacked(req, NULL);
}

static struct plugin_call *
find_settling(struct plugins *ps)
{
	struct plugin_call *pc;

	LIST_FOREACH (pc, &ps->calls, link)
		if (pc->settling)
			return pc;
	return NULL;
}

/* Sends all calls that wait for p's channel, or fails them with *e. The search begins again after
 * each, because a callback may end other calls. New calls wait for the next channel. */
static void
settle_calls(struct plugin *p, const struct err *e)
{
	struct plugins *ps = p->sup->plugins;
	struct plugin_call *pc;

	LIST_FOREACH (pc, &ps->calls, link)
		pc->settling = pc->p == p && pc->waiting;
	while ((pc = find_settling(ps))) {
		pc->settling = pc->waiting = false;
		/* The code in *e is about a socket, not about this call. */
		if (e)
			call_fail(pc, pc->lost ? -ECONNRESET : -EHOSTDOWN, e->msg);
		else
			send_call(pc);
	}
}

/* Fills in the sentence for an instance that cannot be connected to. what explains it; "" if *e is
 * enough. */
static void
explain_failure(const struct plugin *p, const char *what, const struct err *e, struct err *ret)
{
	char alloc[ID_UUID_SIZE];

	id_to_uuid(&p->alloc, alloc);
	(void)err_say(ret, e->code,
	    "failed to open grpc connection to addr %s/csi/sock/%s/csi.sock: %s%s",
	    p->sup->args.data_dir, alloc, what, e->code == -ENOENT ? "" : e->msg);
}

static void
on_opened(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct plugin *p = arg;
	struct err why = { 0 };

	p->opening = 0;
	if (r < 0) {
		p->channel = CHANNEL_CLOSED;
		explain_failure(p, "it takes connections, but no gRPC server answers: ", e, &why);
		settle_calls(p, &why);
		return;
	}
	p->channel = CHANNEL_OPEN;
	p->helper = child_generation(sup, IPC_CSI_HELPER);
	settle_calls(p, NULL);
}

static void
on_connected(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	CsiPluginOpenReq req = CSI_PLUGIN_OPEN_REQ__INIT;
	struct plugin *p = arg;
	struct err why = { 0 };

	p->opening = 0;
	if (r < 0) {
		p->channel = CHANNEL_CLOSED;
		explain_failure(p,
		    r == -ENOENT ? "no such file or directory: the plugin does not "
				   "listen at its CSI_ENDPOINT"
				 : "",
		    e, &why);
		settle_calls(p, &why);
		return;
	}
	p->channel_no = ++sup->plugins->channel_no;
	req.channel = p->channel_no;
	req.probe_timeout_ms = PROBE_TIMEOUT_MS;
	p->opening = csi_call_plugin_open(sup, &req, fd, on_opened, p);
}

static void
open_channel(struct plugin *p)
{
	struct mnt_plugin_connect_req req = { 0 };

	if (p->channel == CHANNEL_OPENING)
		return;
	p->channel = CHANNEL_OPENING;
	req.alloc = p->alloc;
	req.run = p->run;
	p->opening = mnt_call_plugin_connect(p->sup, &req, on_connected, p);
}

/* Returns the instance that can be called now; NULL if there is none. */
static struct plugin *
find_answering(struct plugin_call *pc)
{
	struct plugin *p = plugin_find(pc->sup, pc->id, pc->half);

	return p && p->runs && p->answered ? p : NULL;
}

static void
try_call(struct plugin_call *pc)
{
	struct plugin *p = pc->instance ? pc->p : find_answering(pc);

	if (!p) {
		wait_for_instance(pc, 0);
		return;
	}
	if (!p->runs) {
		call_fail(pc, -EHOSTDOWN, "it does not run");
		return;
	}
	pc->p = p;
	if (p->channel == CHANNEL_OPEN && p->helper == child_generation(p->sup, IPC_CSI_HELPER)) {
		send_call(pc);
		return;
	}
	if (p->channel == CHANNEL_OPEN)
		p->channel = CHANNEL_CLOSED;
	pc->waiting = true;
	open_channel(p);
}

/* Returns true if an alloc with this plugin runs or will run on this node. */
static bool
is_wanted(struct sup *sup, const char *id)
{
	alloc_foreach(sup, sa)
	{
		for (size_t i = 0; i < sa->group->tasks.n; i++) {
			const struct csi_plugin_block *block = sa->group->tasks.v[i].csi_plugin;

			if (block && !alloc_client_terminal(&sa->a) && str_eq(block->id, id))
				return true;
		}
	}
	return false;
}

static const char *
wait_failure(const struct plugin_call *pc, uint64_t now)
{
	struct plugin_wait_facts f = { .lost = pc->lost,
		.waited_usec = now - pc->since_usec,
		.wanted = is_wanted(pc->sup, pc->id) };

	return plugin_wait_failure(&f);
}

/* Called each second while a call waits for an instance, and when an instance answers. */
static void
on_check(void *arg)
{
	struct sup *sup = arg;
	uint64_t now = now_usec(sup);
	struct plugin_call *pc, *next;
	bool more = false;
	const char *why;

	LIST_FOREACH_SAFE (pc, &sup->plugins->calls, link, next) {
		if (pc->p || pc->call)
			continue;
		more = true;
		why = wait_failure(pc, now);
		if (why) {
			call_fail(pc, pc->lost ? -ECONNRESET : -EHOSTDOWN, why);
			check_after(sup, 0); /* the callback may have ended other calls */
			return;
		}
		if (pc->not_before_usec <= now && find_answering(pc))
			try_call(pc);
	}
	if (more)
		check_after(sup, CHECK_USEC);
}

void
plugin_call_say(const struct plugin_call *pc, char *buf, size_t size)
{
	(void)snprintf(buf, size, "%s of plugin %s%s", csi_call_name(pc->which), pc->id,
	    pc->call ? " has not been answered yet" : " waits for the plugin to run and answer");
}

static struct plugin_call *
call_new(struct sup *sup, struct plugin *p, const char *id, enum csi_plugin_kind half,
    const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg)
{
	size_t len = csi_call_req__get_packed_size(req);
	struct plugin_call *pc = mem_zeroed(1, sizeof *pc + len);

	*pc = (struct plugin_call){ .sup = sup,
		.p = p,
		.instance = p != NULL,
		.id = mem_strdup(id),
		.half = half,
		.timeout_ms = timeout_ms,
		.cb = cb,
		.arg = arg,
		.which = req->call_case,
		.len = len };
	(void)csi_call_req__pack(req, pc->packed);
	LIST_INSERT_HEAD(&sup->plugins->calls, pc, link);
	return pc;
}

struct plugin_call *
plugin_call(struct sup *sup, const char *id, enum csi_plugin_kind half, const CsiCallReq *req,
    unsigned timeout_ms, plugin_call_cb *cb, void *arg)
{
	struct plugin_call *pc = call_new(sup, NULL, id, half, req, timeout_ms, cb, arg);

	try_call(pc);
	return pc;
}

struct plugin_call *
plugin_call_instance(
    struct plugin *p, const CsiCallReq *req, unsigned timeout_ms, plugin_call_cb *cb, void *arg)
{
	struct plugin_call *pc;

	if (!p->runs)
		return NULL;
	pc = call_new(p->sup, p, p->id, CSI_PLUGIN_NONE, req, timeout_ms, cb, arg);
	try_call(pc);
	return pc;
}

void
plugin_calls_abandon(struct plugin *p)
{
	struct plugin_call *pc, *next;

	LIST_FOREACH_SAFE (pc, &p->sup->plugins->calls, link, next) {
		if (pc->p != p)
			continue;
		if (pc->instance) {
			plugin_call_cancel(pc);
			continue;
		}
		child_call_cancel(p->sup, pc->call);
		pc->lost += pc->call != 0;
		pc->call = 0;
		pc->waiting = false;
		wait_for_instance(pc, 0);
	}
}

void
plugin_calls_check(struct sup *sup)
{
	check_after(sup, 0);
}
