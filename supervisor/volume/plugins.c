// SPDX-License-Identifier: Apache-2.0
/* plugins.c: the CSI plugins of this node and calls to them. Runs in: supervisor. */
#include "supervisor/volume/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "supervisor/core/changed.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/node/node_state.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugin_retry.h"

#define LOOK_USEC        1000000
#define BACKOFF_USEC     100000 /* before a lost call is retried */
#define PROBE_TIMEOUT_MS 5000

enum channel { CHANNEL_CLOSED, CHANNEL_OPENING, CHANNEL_OPEN };

struct plugin {
	struct plugin *next; /* all instances, newest first */
	struct sup *sup;
	char *id, *container_root;
	enum csi_plugin_kind kind;
	struct id alloc, run;
	bool runs, registered, healthy;
	bool answered; /* all that it was asked, since this start of its task */
	struct csi_info *controller, *node;
	enum channel channel;
	uint64_t channel_no;
	uint32_t helper; /* the csi-helper that has the channel: a later one knows nothing of it */
	uint64_t opening;
};

/* A call on its way. Without an instance it waits for one of that id and half. */
struct plugin_call {
	struct plugin_call *next;
	struct sup *sup;
	struct plugin *p; /* fixed when `instance`, else looked up at each try: NULL while there is
			     none */
	bool instance, waiting, settling;
	unsigned lost; /* tries of which the end was not seen */
	char *id;
	enum csi_plugin_kind half;
	uint64_t since_usec, not_before_usec; /* it waits for an instance; the next try */
	uint64_t call, channel_no;            /* the channel it was sent on */
	uint32_t helper;                      /* the csi-helper that got it */
	unsigned timeout_ms;
	plugin_call_cb *cb;
	void *arg;
	CsiCallReq__CallCase which;
	size_t len;
	uint8_t packed[];
};

struct plugins {
	struct plugin *first;
	struct plugin_call *calls;
	sd_event_source *look;
	uint64_t channel_no;
};

static void try_call(struct plugin_call *pc);

static uint64_t
now_usec(struct sup *sup)
{
	uint64_t now;

	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

/* --- calls --- */

static void
look_in(struct sup *sup, uint64_t usec)
{
	sd_event_source *look = sup->plugins->look;
	uint64_t next = now_usec(sup) + usec, set;
	int on;

	if (sd_event_source_get_enabled(look, &on) >= 0 && on != SD_EVENT_OFF &&
	    sd_event_source_get_time(look, &set) >= 0 && set <= next)
		return;
	(void)sd_event_source_set_time(look, next);
	(void)sd_event_source_set_enabled(look, SD_EVENT_ONESHOT);
}

/* Until an instance of its id answers, from after_usec on. */
static void
wait_for_instance(struct plugin_call *pc, uint64_t after_usec)
{
	pc->p = NULL;
	pc->since_usec = now_usec(pc->sup);
	pc->not_before_usec = pc->since_usec + after_usec;
	look_in(pc->sup, after_usec ? after_usec : LOOK_USEC);
}

static void
call_unlink(struct plugin_call *pc)
{
	struct plugin_call **at = &pc->sup->plugins->calls;

	while (*at && *at != pc)
		at = &(*at)->next;
	if (*at)
		*at = pc->next;
}

/* The plugin hears of it too: else it would work on what nobody wants until the call's deadline,
 * and keep what comes next for that volume waiting. */
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
	call_unlink(pc);
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
	/* csi-helper has forgotten it, or has died and knows nothing any more. */
}

static void
close_channel(struct plugin *p)
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
		/* Not one that is being opened anew by now: others wait for it. */
		if (pc->p && pc->p->channel == CHANNEL_OPEN && pc->p->channel_no == pc->channel_no)
			close_channel(pc->p);
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
	CsiCallReq *req = csi_call_req__unpack(NULL, pc->len, pc->packed);

	if (!req) {
		call_fail(pc, -ENOMEM, "no memory");
		return;
	}
	req->channel = pc->channel_no = pc->p->channel_no;
	req->timeout_ms = pc->timeout_ms;
	pc->helper = pc->p->helper;
	pc->call = csi_call_call(pc->sup, req, on_answer, pc);
	csi_call_req__free_unpacked(req, NULL);
}

/* --- the channel --- */

/* All calls that wait for p's channel: sent, or failed with *e. What their callbacks ask anew waits
 * for the next channel. */
static void
settle(struct plugin *p, const struct err *e)
{
	struct plugin_call *pc;

	for (pc = p->sup->plugins->calls; pc; pc = pc->next)
		pc->settling = pc->p == p && pc->waiting;
	for (;;) {
		for (pc = p->sup->plugins->calls; pc && !pc->settling; pc = pc->next)
			;
		if (!pc)
			return;
		pc->settling = pc->waiting = false;
		/* Not e's own code: it is mount-helper's or gRPC's, about a socket. */
		if (e)
			call_fail(pc, pc->lost ? -ECONNRESET : -EHOSTDOWN, e->msg);
		else
			send_call(pc);
	}
}

static void
on_opened(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct plugin *p = arg;

	p->opening = 0;
	if (r < 0) {
		p->channel = CHANNEL_CLOSED;
		settle(p, e);
		return;
	}
	p->channel = CHANNEL_OPEN;
	p->helper = child_generation(sup, IPC_CSI_HELPER);
	settle(p, NULL);
}

static void
on_connected(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	CsiPluginOpenReq req = CSI_PLUGIN_OPEN_REQ__INIT;
	struct plugin *p = arg;

	p->opening = 0;
	if (r < 0) {
		p->channel = CHANNEL_CLOSED;
		settle(p, e);
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

/* Who can be called just now. */
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

/* Is, or will be by itself, an instance of that id on this node? */
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
reason_to_give_up(const struct plugin_call *pc, uint64_t now)
{
	struct plugin_wait_facts f = { .lost = pc->lost,
		.waited_usec = now - pc->since_usec,
		.wanted = is_wanted(pc->sup, pc->id) };

	return plugin_retry_give_up(&f);
}

/* Each second, and when an instance answers, while a call waits for one. */
static int
on_look(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct sup *sup = userdata;
	uint64_t now = now_usec(sup);
	struct plugin_call *next;
	bool more = false;
	const char *why;

	for (struct plugin_call *pc = sup->plugins->calls; pc; pc = next) {
		next = pc->next;
		if (pc->p || pc->call)
			continue;
		more = true;
		why = reason_to_give_up(pc, now);
		if (why) {
			call_fail(pc, pc->lost ? -ECONNRESET : -EHOSTDOWN, why);
			look_in(sup, 0); /* its callback may have ended others */
			return 0;
		}
		if (pc->not_before_usec <= now && find_answering(pc))
			try_call(pc);
	}
	if (more)
		look_in(sup, LOOK_USEC);
	return 0;
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
	struct plugin_call *pc = calloc(1, sizeof *pc + len);

	if (!pc)
		abort();
	*pc = (struct plugin_call){ .sup = sup,
		.p = p,
		.instance = p != NULL,
		.id = strdup(id),
		.half = half,
		.timeout_ms = timeout_ms,
		.cb = cb,
		.arg = arg,
		.which = req->call_case,
		.len = len };
	(void)csi_call_req__pack(req, pc->packed);
	pc->next = sup->plugins->calls;
	sup->plugins->calls = pc;
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

/* Only for an instance that runs: then no callback comes from within. */
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

/* --- instances --- */

int
plugins_new(struct sup *sup, struct err *e)
{
	struct plugins *ps = calloc(1, sizeof *ps);
	int r;

	if (!ps)
		return err_set(e, -ENOMEM, "make the list of plugins");
	sup->plugins = ps;
	r = sd_event_add_time(sup->event, &ps->look, CLOCK_MONOTONIC, 0, 0, on_look, sup);
	if (r < 0)
		return err_set(e, r, "make the list of plugins");
	return sd_event_source_set_enabled(ps->look, SD_EVENT_OFF);
}

void
plugins_free(struct sup *sup)
{
	if (!sup->plugins)
		return;
	while (sup->plugins->calls)
		plugin_call_cancel(sup->plugins->calls);
	sup->plugins->look = sd_event_source_disable_unref(sup->plugins->look);
	free(sup->plugins);
	sup->plugins = NULL;
}

static bool
has_half(const struct plugin *p, enum csi_plugin_kind half)
{
	return p->kind == CSI_PLUGIN_MONOLITH || p->kind == half;
}

struct plugin *
plugin_find(struct sup *sup, const char *id, enum csi_plugin_kind half)
{
	for (struct plugin *p = sup->plugins->first; p; p = p->next)
		if (p->registered && has_half(p, half) && strcmp(p->id, id) == 0)
			return p;
	return NULL;
}

struct plugin *
plugin_next(struct sup *sup, struct plugin *p)
{
	for (p = p ? p->next : sup->plugins->first; p && !p->registered; p = p->next)
		;
	return p;
}

bool
plugin_exists(struct sup *sup, const char *id)
{
	for (struct plugin *p = sup->plugins->first; p; p = p->next)
		if (strcmp(p->id, id) == 0)
			return true;
	return false;
}

const char *
plugin_id(const struct plugin *p)
{
	return p->id;
}

enum csi_plugin_kind
plugin_kind(const struct plugin *p)
{
	return p->kind;
}

const struct id *
plugin_alloc(const struct plugin *p)
{
	return &p->alloc;
}

const struct csi_info *
plugin_controller_info(const struct plugin *p)
{
	return p->controller;
}

const struct csi_info *
plugin_node_info(const struct plugin *p)
{
	return p->node;
}

bool
plugin_is_healthy(const struct plugin *p)
{
	return p->healthy;
}

const char *
plugin_container_root(const struct plugin *p)
{
	return p->container_root;
}

struct plugin *
plugin_new(struct sup *sup, const char *id, enum csi_plugin_kind kind, const struct id *alloc,
    const char *container_root)
{
	struct plugin *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	*p = (struct plugin){ .sup = sup, .kind = kind, .alloc = *alloc };
	p->id = strdup(id);
	p->container_root = strdup(container_root);
	if (!p->id || !p->container_root) {
		free(p->id);
		free(p->container_root);
		free(p);
		return NULL;
	}
	p->next = sup->plugins->first;
	sup->plugins->first = p;
	return p;
}

/* Calls of others wait for the next instance; those to this one end. */
static void
abandon_calls(struct plugin *p)
{
	struct plugin_call *next;

	for (struct plugin_call *pc = p->sup->plugins->calls; pc; pc = next) {
		next = pc->next;
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
plugin_free(struct plugin *p)
{
	struct plugin **at;

	if (!p)
		return;
	at = &p->sup->plugins->first;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	abandon_calls(p);
	close_channel(p);
	csi_info_free(p->controller);
	csi_info_free(p->node);
	free(p->id);
	free(p->container_root);
	free(p);
}

void
plugin_set_run(struct plugin *p, const struct id *run)
{
	p->runs = run != NULL;
	p->answered = false;
	if (run) {
		p->run = *run;
		return;
	}
	abandon_calls(p);
	close_channel(p);
}

static void
update_node(struct sup *sup)
{
	node_forget_plugins(sup);
	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		if (p->controller)
			node_put_plugin(sup, true, p->id, p->controller);
		if (p->node)
			node_put_plugin(sup, false, p->id, p->node);
	}
	node_changed(sup);
	changed_mark(sup, CHANGED_PLUGINS);
}

void
plugin_set_info(struct plugin *p, struct csi_info *controller, struct csi_info *node)
{
	csi_info_free(p->controller);
	csi_info_free(p->node);
	p->controller = controller;
	p->node = node;
	p->registered = p->answered = true;
	look_in(p->sup, 0);
	(void)plugin_set_health(p, true, "healthy");
	update_node(p->sup);
}

bool
plugin_set_health(struct plugin *p, bool healthy, const char *description)
{
	struct csi_info *infos[] = { p->controller, p->node };
	bool changed = healthy != p->healthy;

	p->healthy = healthy;
	for (size_t i = 0; i < ELEMENTSOF(infos); i++) {
		if (!infos[i])
			continue;
		infos[i]->healthy = healthy;
		infos[i]->update_time = clock_real_ns();
		(void)str_set(&infos[i]->health_description, description);
	}
	if (changed && p->registered)
		update_node(p->sup);
	return changed;
}

void
plugin_deregister(struct plugin *p)
{
	if (!p->registered)
		return;
	p->registered = false;
	p->healthy = false;
	update_node(p->sup);
}
