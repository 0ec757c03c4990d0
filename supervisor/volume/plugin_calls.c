// SPDX-License-Identifier: Apache-2.0
/*
 * plugin_calls.c: calls to CSI plugins: their channels and their repetition. A call never closes a
 * channel that others use: csi-helper says whether it is lost; if it is, the calls on it end by
 * themselves, and new ones get a new channel. Runs in: supervisor.
 */
#include "supervisor/volume/plugin_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugin_counts.h"
#include "supervisor/volume/plugin_hold.h"
#include "supervisor/volume/plugin_retry.h"
#include "supervisor/volume/plugin_inst.h"

#define CHECK_USEC       1000000 /* interval of checks while calls wait for an instance */
#define PROBE_TIMEOUT_MS 5000

/* An open channel at csi-helper. It is closed when its plugin has another one and its last call has
 * ended. */
struct plugin_channel {
	uint64_t no;
	uint32_t helper; /* the generation of the csi-helper that has it */
	unsigned users;  /* the plugin, and each call on it */
};

/* A call that has not ended. Without an instance it waits for one of that id and half. */
struct plugin_call {
	LIST_ENTRY(plugin_call) link;
	struct sup *sup;
	struct plugin *p; /* for a call to one instance that one, else chosen at each try; NULL
			     while there is none */
	bool instance;    /* the call is for one instance only */
	bool waiting;     /* for the instance's channel */
	bool settling;    /* the channel has been opened, or has failed */
	bool unknown;     /* a try may have taken effect, or may still do so */
	unsigned tries, failed, pending; /* failed: in a way that may pass */
	unsigned lost;                   /* the plugin may have ended during the call */
	char *id, *why;                  /* why: the error of the last try */
	char *refusal;                   /* why no channel could be opened, since since_usec */
	enum csi_plugin_kind half;
	uint64_t since_usec;   /* when the wait for an instance began */
	uint64_t pending_usec; /* when the plugin first said that it is busy with the volume */
	uint64_t sent_usec;    /* of the first try */
	uint64_t try_usec;     /* of the last try */
	struct sup_timer retry;
	int64_t retry_ns; /* CLOCK_REALTIME of the next try, while the timer is set */
	uint64_t call;
	struct plugin_channel *channel; /* the channel it was sent on */
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

void
plugin_calls_check(struct sup *sup)
{
	check_after(sup, 0);
}

/* --- channels --- */

static bool
channel_is_usable(struct sup *sup, const struct plugin_channel *ch)
{
	return ch && ch->helper == child_generation(sup, IPC_CSI_HELPER);
}

static void
on_closed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	/* The channel is closed also if csi-helper has died. */
}

/* Gives up *channel for one of its users. */
static void
leave_channel(struct sup *sup, struct plugin_channel **channel)
{
	CsiPluginCloseReq req = CSI_PLUGIN_CLOSE_REQ__INIT;
	struct plugin_channel *ch = steal_ptr(channel);

	if (!ch || --ch->users > 0)
		return;
	req.channel = ch->no;
	if (channel_is_usable(sup, ch))
		(void)csi_call_plugin_close(sup, &req, on_closed, NULL);
	free(ch);
}

static struct plugin_channel *
use_channel(struct plugin_channel *ch)
{
	ch->users++;
	return ch;
}

/* --- the end of a call --- */

/* Ends the call at csi-helper and at the plugin, which would work on it until the deadline, and
 * keep the next call for the volume waiting. */
static void
abort_try(struct plugin_call *pc)
{
	CsiCallCancelEv ev = CSI_CALL_CANCEL_EV__INIT;

	if (pc->call) {
		child_call_cancel(pc->sup, pc->call);
		ev.call = (uint32_t)pc->call;
		if (channel_is_usable(pc->sup, pc->channel))
			child_tell(pc->sup, IPC_CSI_HELPER, CSI_CALL_CANCEL_EV, &ev.base);
		pc->call = 0;
		pc->unknown = true;
	}
	leave_channel(pc->sup, &pc->channel);
}

static void
call_free(struct plugin_call *pc)
{
	abort_try(pc);
	sup_timer_cancel(&pc->retry);
	free(pc->id);
	free(pc->why);
	free(pc->refusal);
	free(pc);
}

void
plugin_call_cancel(struct plugin_call *pc)
{
	if (!pc)
		return;
	LIST_REMOVE(pc, link);
	call_free(pc);
}

static void
call_end(struct plugin_call *pc, int r, const CsiCallRep *rep, const struct err *e)
{
	LIST_REMOVE(pc, link);
	pc->cb(pc->sup, pc->arg, r, rep, e);
	call_free(pc);
}

static void
call_fail(struct plugin_call *pc, const char *why)
{
	struct err e = { 0 };

	/* Nothing was sent, or the plugin has ended during the call. */
	(void)err_say(&e, pc->tries > 0 ? -ECONNRESET : -EHOSTDOWN, "%s of plugin %s: %s",
	    csi_call_name(pc->which), pc->id, why);
	call_end(pc, e.code, NULL, &e);
}

bool
plugin_call_is_unknown(const struct plugin_call *pc)
{
	return pc->unknown || pc->call;
}

uint64_t
plugin_call_usec(const struct plugin_call *pc)
{
	return pc->sent_usec ? now_usec(pc->sup) - pc->sent_usec : 0;
}

/* --- tries --- */

static struct plugin_call *
find_settling(struct plugins *ps)
{
	struct plugin_call *pc;

	LIST_FOREACH (pc, &ps->calls, link)
		if (pc->settling)
			return pc;
	return NULL;
}

/* Lets the call wait until an instance of its plugin answers. */
static void
wait_for_instance(struct plugin_call *pc)
{
	pc->p = NULL;
	if (!pc->refusal)
		pc->since_usec = now_usec(pc->sup);
	check_after(pc->sup, CHECK_USEC);
}

/* Nothing was sent. The plugin has answered before, so its task may just be ending, and the next
 * instance gets the call. */
static void
note_refusal(struct plugin_call *pc, const struct err *e)
{
	if (pc->instance) {
		call_fail(pc, e->msg);
		return;
	}
	wait_for_instance(pc);
	str_set(&pc->refusal, e->msg);
}

/* Tries all calls that wait for p's channel, or notes for them that it could not be opened. The
 * search begins again after each, because a callback may end other calls. New calls wait for the
 * next channel. */
static void
settle_calls(struct plugin *p, const struct err *e)
{
	struct plugins *ps = p->sup->plugins;
	struct plugin_call *pc;

	LIST_FOREACH (pc, &ps->calls, link)
		pc->settling = pc->p == p && pc->waiting;
	while ((pc = find_settling(ps))) {
		pc->settling = pc->waiting = false;
		if (e)
			note_refusal(pc, e);
		else
			try_call(pc);
	}
}

/* Fills in the sentence for an instance that cannot be connected to. what explains it; "" if *e is
 * enough. */
static void
explain_failure(const struct plugin *p, const char *what, const struct err *e, struct err *ret)
{
	(void)err_say(ret, e->code, "failed to open grpc connection to addr %s: %s%s", p->socket,
	    what, e->code == -ENOENT ? "" : e->msg);
}

static void
on_retry(void *arg)
{
	struct plugin_call *pc = arg;

	try_call(pc);
}

static void
try_after(struct plugin_call *pc, uint64_t usec)
{
	if (!pc->instance)
		pc->p = NULL;
	pc->since_usec = now_usec(pc->sup);
	pc->retry_ns = clock_real_ns() + (int64_t)usec * 1000;
	sup_timer_set(pc->sup, &pc->retry, CLOCK_MONOTONIC, usec, on_retry, pc);
}

/* Takes note of a try that has failed so. Returns after how long the call is tried again; 0: not.
 */
static uint64_t
note_failure(struct plugin_call *pc, const struct csi_outcome *o, const char *why)
{
	uint64_t now = now_usec(pc->sup);
	struct plugin_try_facts f = { .verdict = o->verdict,
		.once = csi_call_is_once(pc->which),
		.timeout_usec = (uint64_t)pc->timeout_ms * 1000 };

	str_set(&pc->why, why);
	pc->unknown |= o->unknown;
	pc->failed += o->verdict == CSI_RETRY;
	pc->pending += o->verdict == CSI_PENDING;
	if (pc->pending == 1 && o->verdict == CSI_PENDING)
		pc->pending_usec = now;
	f.failed = pc->failed;
	f.pending = pc->pending;
	f.pending_usec = now - pc->pending_usec;
	return plugin_retry_usec(&f);
}

/* Lets new calls get another channel, unless they have one already. */
static void
retire_channel(struct plugin_call *pc)
{
	if (pc->p && pc->p->channel == pc->channel)
		leave_channel(pc->sup, &pc->p->channel);
	pc->lost++;
}

/* Returns after how long a try that csi-helper did not make, or that ended with it, is made again;
 * 0: the call has ended. */
static uint64_t
note_no_answer(struct plugin_call *pc, int r)
{
	static const struct csi_outcome lost = { -ECONNRESET, "", CSI_RETRY, true, "" };

	if (r == -ECONNRESET) {
		retire_channel(pc);
		return note_failure(pc, &lost, "the connection was lost during the call");
	}
	if (r == -EBUSY) { /* csi-helper has as many calls as it can */
		pc->tries--;
		return PLUGIN_BACKOFF_USEC;
	}
	return 0;
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const CsiCallRep *rep = r < 0 ? NULL : msg;
	struct plugin_call *pc = arg;
	struct csi_outcome o;
	struct err why = { 0 };
	uint64_t usec = 0;

	pc->call = 0;
	plugin_count_add(sup, pc->id, pc->which, rep, now_usec(sup) - pc->try_usec);
	if (rep) {
		o = csi_outcome_of(pc->which, rep);
		if (rep->origin == CSI_CALL_REP__ORIGIN__LOST)
			retire_channel(pc);
		r = csi_error(pc->which, pc->id, rep, pc->tries, &why);
		e = &why;
		if (r < 0)
			usec = note_failure(pc, &o, e->msg);
	} else {
		usec = note_no_answer(pc, r);
	}
	leave_channel(sup, &pc->channel);
	if (usec == 0 && rep)
		plugin_hold_note(sup, pc->id, pc->which, rep, e);
	if (usec > 0)
		try_after(pc, usec);
	else
		call_end(pc, r, rep, r < 0 ? e : NULL);
}

static void
send_call(struct plugin_call *pc)
{
	CsiCallReq *req = mem_need(csi_call_req__unpack(NULL, pc->len, pc->packed));

	pc->channel = use_channel(pc->p->channel);
	req->channel = pc->channel->no;
	req->timeout_ms = pc->timeout_ms;
	str_set(&pc->refusal, NULL);
	pc->tries++;
	pc->try_usec = now_usec(pc->sup);
	if (pc->sent_usec == 0)
		pc->sent_usec = pc->try_usec;
	pc->call = csi_call_call(pc->sup, req, on_answer, pc);
	csi_call_req__free_unpacked(req, NULL);
}

static void
on_opened(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct plugin *p = arg;
	struct err why = { 0 };

	p->opening = 0;
	if (r < 0) {
		/* -EBUSY: csi-helper has as many channels as it can. */
		explain_failure(p,
		    r == -EBUSY ? "" : "it takes connections, but no gRPC server answers: ", e,
		    &why);
		settle_calls(p, &why);
		return;
	}
	p->channel_opened = p->opening_no;
	leave_channel(sup, &p->channel);
	p->channel = mem_new(struct plugin_channel);
	*p->channel = (struct plugin_channel){
		.no = p->opening_no, .helper = child_generation(sup, IPC_CSI_HELPER), .users = 1
	};
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
		explain_failure(p,
		    r != -ENOENT ? ""
		    : id_is_zero(&p->alloc)
			? "no such file or directory: the plugin does not run, or listens elsewhere"
			: "no such file or directory: the plugin does not listen at its "
			  "CSI_ENDPOINT",
		    e, &why);
		settle_calls(p, &why);
		return;
	}
	req.channel = p->opening_no = ++sup->plugins->channel_no;
	req.probe_timeout_ms = PROBE_TIMEOUT_MS;
	p->opening = csi_call_plugin_open(sup, &req, fd, on_opened, p);
}

static void
open_channel(struct plugin *p)
{
	struct mnt_plugin_connect_req req = { 0 };

	if (p->opening)
		return;
	req.alloc = p->alloc;
	req.run = p->run;
	if (id_is_zero(&p->alloc))
		(void)IPC_TEXT_SET(req.plugin, p->id);
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
		wait_for_instance(pc);
		return;
	}
	if (!p->runs) {
		call_fail(pc, "it does not run");
		return;
	}
	pc->p = p;
	if (!channel_is_usable(p->sup, p->channel)) {
		pc->waiting = true;
		open_channel(p);
	} else {
		send_call(pc);
	}
}

/* --- calls that wait for an instance --- */

/* Returns true if the configuration has this plugin, or if an alloc with it runs or will run on
 * this node. */
static bool
is_wanted(struct sup *sup, const char *id)
{
	struct plugin *p;

	LIST_FOREACH (p, &sup->plugins->instances, link)
		if (id_is_zero(&p->alloc) && strcmp(p->id, id) == 0)
			return true;
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

static void
end_wait(struct plugin_call *pc, const char *why)
{
	cleanup_free char *text =
	    mem_printf("%s%s%s", why, pc->refusal ? ": " : "", pc->refusal ? pc->refusal : "");

	call_fail(pc, text);
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
		if (pc->p || pc->call || sup_timer_is_set(&pc->retry))
			continue;
		more = true;
		why = wait_failure(pc, now);
		if (why) {
			end_wait(pc, why);
			check_after(sup, 0); /* the callback may have ended other calls */
			return;
		}
		if (find_answering(pc))
			try_call(pc);
	}
	if (more)
		check_after(sup, CHECK_USEC);
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
		pc->lost += pc->call != 0;
		abort_try(pc);
		pc->waiting = false;
		sup_timer_cancel(&pc->retry);
		wait_for_instance(pc);
	}
	child_call_cancel(p->sup, p->opening);
	p->opening = 0;
	leave_channel(p->sup, &p->channel);
}

/* --- for callers --- */

void
plugin_call_say(const struct plugin_call *pc, char *buf, size_t size)
{
	const char *call = csi_call_name(pc->which);
	char tried[32] = "", when[48] = "when the plugin answers";
	int64_t wait_ns = pc->retry_ns - clock_real_ns();

	if (pc->tries > 1)
		(void)snprintf(tried, sizeof tried, " (try %u)", pc->tries);
	if (sup_timer_is_set(&pc->retry))
		(void)snprintf(
		    when, sizeof when, "in %.1f s", wait_ns > 0 ? (double)wait_ns / NS_PER_S : 0);
	if (pc->call)
		(void)snprintf(
		    buf, size, "%s of plugin %s%s has not been answered yet", call, pc->id, tried);
	else if (pc->why)
		(void)snprintf(buf, size, "%.400s; tried %u time%s, and again %s", pc->why,
		    pc->tries, pc->tries == 1 ? "" : "s", when);
	else
		(void)snprintf(buf, size,
		    "%s of plugin %s waits for the plugin to run and answer%s%.400s", call, pc->id,
		    pc->refusal ? ": " : "", pc->refusal ? pc->refusal : "");
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
