// SPDX-License-Identifier: Apache-2.0
/* nomad_node.c: registers the node at the servers, sends beats, and registers it again when it has
 * changed or the servers do not know it. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_claims.h"
#include "supervisor/cluster/node/nomad_services.h"
#include "supervisor/cluster/node/nomad_update.h"
#include "supervisor/cluster/node/nomad_watch.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_state.h"

#define REGISTER_DEADLINE_MS 30000
#define REGISTER_RETRY_MS    1000
#define REGISTER_RETRY_MAX   15000
#define CHANGE_MS            1000 /* delay after a change, to collect others */
#define CHANGE_GAP_MS        5000 /* minimum time between two registrations for changes */
#define PLUGINS_MS           2000 /* delay at start, for plugins that already run */
#define PLUGINS_MORE_MS      200  /* delay after one of them was found */
#define EVENTS_MS            5000
#define EVENTS_MAX           10
#define TOKEN_MAX            16384

static void register_node(struct nomad *n);

/* State that outlives the process. */

static int
write_node(struct sup *sup, struct dirty *d, struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	int r = store_meta_put(sup->store, "nomad_registered", n->registered ? "1" : "0", e);

	return r < 0 ? r : store_meta_put(sup->store, "nomad_identity", str(n->identity), e);
}

int
nomad_node_load(struct nomad *n, struct err *e)
{
	struct store *store = n->base.sup->store;
	cleanup_free char *registered = NULL;
	int r = store_meta_get(store, "nomad_registered", &registered, e);

	n->node_row.write = write_node;
	n->node_row.point = CRASH_ROW_NOMAD_NODE;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	n->registered = strcmp(registered, "1") == 0;
	r = store_meta_get(store, "nomad_identity", &n->identity, e);
	if (r >= 0 && !*n->identity)
		r = str_set(&n->identity, NULL);
	return r == -ENOENT ? 0 : r;
}

static void
node_row_changed(struct nomad *n)
{
	turn_write(n->base.sup, &n->node_row);
	turn_durable(n->base.sup);
}

static void
take_identity(struct nomad *n, const char *jwt)
{
	if (!*str(jwt) || str_eq(n->identity, jwt))
		return;
	if (str_set(&n->identity, jwt) < 0)
		return;
	n->renew_identity = false;
	node_row_changed(n);
}

/* Reads the introduction token that an operator stored for a cluster that requires one. */
static void
read_introduction(struct nomad *n, char **ret)
{
	char path[4200];

	(void)snprintf(path, sizeof path, "%s/state/intro_token.jwt", n->base.sup->args.data_dir);
	if (fd_read_file(AT_FDCWD, path, TOKEN_MAX, ret) < 0)
		*ret = NULL;
	else
		(*ret)[strcspn(*ret, "\r\n \t")] = '\0';
}

/* Registration. */

static int
on_register_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	struct nomad *n = userdata;

	n->register_timer = sd_event_source_disable_unref(n->register_timer);
	register_node(n);
	return 0;
}

static void
register_later(struct nomad *n, uint64_t ms)
{
	if (!n->register_call)
		nomad_after(n, &n->register_timer, ms, on_register_time);
}

/* If the servers do not know the node any more, its token is invalid and it registers as a new
 * node. */
static void
on_refused(struct nomad *n, const char *text)
{
	bool denied = strstr(text, "Permission denied") || strstr(text, "ACL token not found");

	if (denied && !n->denied && *nomad_token(n)) {
		n->denied = true;
		log_info("the servers refuse the node's token: registering the node without it");
		register_later(n, 0);
		return;
	}
	if (denied)
		log_warn("the servers refuse the node: %s: if the cluster requires an introduction "
			 "token, store it in state/intro_token.jwt",
		    text);
	else
		log_warn("the servers refuse the node: %s", text);
	n->denied = false;
	register_later(
	    n, nomad_retry_ms(&n->register_failures, REGISTER_RETRY_MS, REGISTER_RETRY_MAX));
}

/* Each registration is a write to the servers' log, so its index is higher than all earlier ones,
 * unless the servers lost their log or restored a backup. */
static bool
went_back(const struct nomad *n, const struct rpc_node_rep *rep)
{
	if (rep->node_modify_index == 0 || rep->node_modify_index >= n->watch_index)
		return false;
	log_warn("the servers' state is older than an earlier answer: index %llu after %llu",
	    (unsigned long long)rep->node_modify_index, (unsigned long long)n->watch_index);
	return true;
}

static void
note_registered(struct nomad *n, const struct rpc_node_rep *rep)
{
	bool first = !n->ready, anew = n->denied || !n->registered;
	bool forgotten = anew || n->unknown || went_back(n, rep);

	if (n->denied)
		(void)str_set(&n->identity, NULL);
	if (anew) {
		n->registered = true;
		node_row_changed(n);
	}
	take_identity(n, rep->signed_identity);
	n->denied = false;
	n->register_failures = 0;
	n->ready = true;
	if (rep->scheduling_eligibility)
		n->eligibility = rep->scheduling_eligibility;
	if (first)
		log_info("the node is registered");
	if (first || forgotten)
		nomad_services_all(n);
	n->unknown = false;
	if (forgotten)
		nomad_watch_restart(n);
	nomad_watch_start(n);
}

static void
on_registered(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_node_rep) struct rpc_node_rep rep;
	struct nomad *n = nomad_of_sup(sup);
	struct err why = { 0 };

	n->register_call = 0;
	rpc_node_rep_init(&rep);
	if (r == 0) {
		r = model_from_msgpack(&rpc_node_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &why);
		e = &why;
	}
	if (r == -EREMOTEIO) {
		on_refused(n, e->msg);
		return;
	}
	if (r < 0) {
		log_warn("register the node: %s", e->msg);
		register_later(n,
		    nomad_retry_ms(&n->register_failures, REGISTER_RETRY_MS, REGISTER_RETRY_MAX));
		return;
	}
	note_registered(n, &rep);
	/* The node may have changed during the call. */
	nomad_node_changed(n);
}

/* Builds the node for the registration. Shares all memory with *view. */
static struct node
make_view(struct nomad *n)
{
	struct node view = *node_get(n->base.sup);

	view.status = n->ready ? NODE_READY : NODE_INIT;
	view.scheduling_eligibility =
	    NODE_ELIGIBLE; /* the setting counts only once; afterwards the servers own it */
	view.status_updated_at = 0;
	view.drain = false;
	view.drain_strategy = NULL;
	(void)memset(&view.events, 0, sizeof view.events);
	view.computed_class = NULL;
	return view;
}

static void
register_node(struct nomad *n)
{
	cleanup_free char *introduction = NULL;
	struct node view = make_view(n);
	struct rpc_register_req req = { .node = &view };
	struct text body = { 0 };

	if (n->register_call)
		return;
	n->register_timer = sd_event_source_disable_unref(n->register_timer);
	node_done(&n->sent);
	(void)node_copy(&view, &n->sent);
	nomad_write(n, &req.write);
	if (n->denied || !n->registered) {
		read_introduction(n, &introduction);
		(void)str_set(&req.write.auth_token, introduction);
	}
	n->register_at_ms = clock_ms();
	/* Not compact: servers would keep nil for a missing block. */
	model_to_msgpack(&rpc_register_req_type, &req, 0, &body);
	n->register_call = link_call(n->base.sup, "Node.Register", body.text, body.len,
	    REGISTER_DEADLINE_MS, LINK_REPEAT, on_registered, NULL);
	text_done(&body);
	free(req.write.region);
	free(req.write.auth_token);
}

/* Plugins of the previous agent are still reported as present while they are being found again. */
static bool
expects_plugins(struct nomad *n)
{
	alloc_foreach(n->base.sup, sa)
	{
		for (size_t i = 0; !alloc_terminal(&sa->a) && i < sa->group->tasks.n; i++)
			if (sa->group->tasks.v[i].csi_plugin)
				return true;
	}
	return false;
}

void
nomad_node_start(struct nomad *n)
{
	if (n->registered)
		log_info("rejoining the servers as a known node");
	if (expects_plugins(n))
		register_later(n, PLUGINS_MS);
	else
		register_node(n);
}

/* Emits events for plugins whose health changed since the last registration. */
static void
tell_plugins(struct nomad *n, const struct node *view)
{
	for (size_t i = 0; i < view->csi_node_plugins.n; i++) {
		const char *id = view->csi_node_plugins.v[i].key;
		bool healthy = view->csi_node_plugins.v[i].value.healthy;
		const struct csi_info *old = map_get(csi_info, &n->sent.csi_node_plugins, id);

		if (!old || old->healthy != healthy)
			nomad_node_event(n, "Storage",
			    healthy ? "CSI plugin is healthy" : "CSI plugin is not healthy",
			    "plugin_id", id);
	}
}

void
nomad_node_changed(struct nomad *n)
{
	struct node view = make_view(n);
	uint64_t now = clock_ms(), due = n->register_at_ms + CHANGE_GAP_MS;

	if (!n->ready && n->register_timer && n->register_failures == 0)
		register_later(n, PLUGINS_MORE_MS);
	if (!n->ready || n->register_call || n->register_timer)
		return;
	n->sent.status = view.status;
	if (model_equal(&node_type, &view, &n->sent))
		return;
	tell_plugins(n, &view);
	register_later(n, due > now + CHANGE_MS ? due - now : CHANGE_MS);
}

bool
nomad_node_check_unknown(struct nomad *n, int r, const struct err *e)
{
	if (r != -EREMOTEIO ||
	    (!strstr(e->msg, "node not found") && !strstr(e->msg, "Permission denied") &&
		!(strstr(e->msg, "node ") && strstr(e->msg, " not found")) &&
		!strstr(e->msg, "node secret ID does not match")))
		return false;
	n->unknown = true;
	if (n->register_call || n->register_timer)
		return true;
	log_warn("the servers do not know this node: %s", e->msg);
	nomad_node_register_again(n);
	return true;
}

/* A server that causes a new registration with every call must not be flooded. */
void
nomad_node_register_again(struct nomad *n)
{
	if (!n->register_call && !n->register_timer)
		register_later(
		    n, clock_ms() < n->register_at_ms + CHANGE_GAP_MS ? CHANGE_GAP_MS : 0);
}

/* Beats. */

static void
make_beat(struct sup *sup, const void **ret_body, size_t *ret_len)
{
	struct nomad *n = nomad_of_sup(sup);
	struct rpc_status_req req = {
		.node_id = node_get(sup)->id,
		.status = NODE_READY,
		.force_identity_renewal = n->renew_identity,
	};

	*ret_len = 0;
	if (!n->ready)
		return;
	nomad_write(n, &req.write);
	n->beat.len = 0;
	model_to_msgpack(&rpc_status_req_type, &req, MODEL_COMPACT, &n->beat);
	*ret_body = n->beat.text;
	*ret_len = n->beat.len;
	free(req.write.region);
	free(req.write.auth_token);
}

/* After a gap the servers may consider the node lost. It stays "initializing" until they have
 * received updates of its allocs. */
static void
note_beat(struct nomad *n, const struct rpc_node_rep *rep)
{
	uint64_t now = clock_ms();
	bool gap = n->beats == 0 ||
		   now - n->beat_ms > (uint64_t)rep->heartbeat_ttl / 1000000 + CHANGE_GAP_MS;

	n->beats++;
	n->beat_ms = now;
	take_identity(n, rep->signed_identity);
	if (rep->scheduling_eligibility && rep->scheduling_eligibility != n->eligibility) {
		n->eligibility = rep->scheduling_eligibility;
		node_set_eligibility(n->base.sup, n->eligibility);
		log_info("the servers set the node to %s", node_eligibility_names[n->eligibility]);
	}
	if (gap) {
		nomad_update_all(n);
		nomad_services_all(n);
		nomad_claims_begin(n);
	}
	nomad_watch_wake(n);
}

static void
on_beat(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_node_rep) struct rpc_node_rep rep;
	struct nomad *n = nomad_of_sup(sup);
	struct err why = { 0 };

	rpc_node_rep_init(&rep);
	if (r == 0) {
		r = model_from_msgpack(&rpc_node_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &why);
		e = &why;
	}
	if (r == 0)
		note_beat(n, &rep);
	else if (!nomad_node_check_unknown(n, r, e))
		log_warn("heartbeat: %s", e->msg);
}

static void
on_server(struct sup *sup, const char *server, const char *why)
{
	struct nomad *n = nomad_of_sup(sup);

	if (*server)
		log_info("using server %s", server);
	else
		log_warn("no server is reachable: %s", why);
	if (!*server)
		return;
	if (n->register_timer && !n->ready && n->register_failures > 0)
		register_node(n);
	nomad_watch_wake(n);
}

const struct link_events nomad_link_events = {
	.beat = make_beat,
	.beat_done = on_beat,
	.server_changed = on_server,
};

/* Events. */

static int on_events_time(struct sd_event_source *s, uint64_t usec, void *userdata);

static void
on_emitted(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);

	n->events_call = 0;
	if (r < 0 && !nomad_node_check_unknown(n, r, e))
		log_warn("send events of the node: %s", e->msg);
	if (n->events.n > 0)
		nomad_after(n, &n->events_timer, EVENTS_MS, on_events_time);
}

static int
on_events_time(struct sd_event_source *s, uint64_t usec, void *userdata)
{
	cleanup_done(rpc_events_req) struct rpc_events_req req;
	struct nomad *n = userdata;
	struct rpc_node_events *events;

	n->events_timer = sd_event_source_disable_unref(n->events_timer);
	if (!n->ready || n->events_call) {
		nomad_after(n, &n->events_timer, EVENTS_MS, on_events_time);
		return 0;
	}
	rpc_events_req_init(&req);
	nomad_write(n, &req.write);
	events = map_put(rpc_node_events, &req.node_events, node_get(n->base.sup)->id);
	if (!events)
		return 0;
	memcpy(&events->events, &n->events, sizeof n->events);
	memset(&n->events, 0, sizeof n->events);
	n->events_call = nomad_call(n, "Node.EmitEvents", &rpc_events_req_type, &req,
	    REGISTER_DEADLINE_MS, 0, on_emitted, NULL);
	return 0;
}

void
nomad_node_event(
    struct nomad *n, const char *subsystem, const char *message, const char *key, const char *value)
{
	struct node_event *ev;

	if (n->events.n >= EVENTS_MAX)
		list_remove(node_event, &n->events, 0);
	ev = list_add(node_event, &n->events);
	if (!ev || str_set(&ev->subsystem, subsystem) < 0 || str_set(&ev->message, message) < 0)
		return;
	if (key)
		(void)string_map_set(&ev->details, key, value);
	ev->timestamp = clock_real_ns();
	if (!n->events_timer && !n->events_call)
		nomad_after(n, &n->events_timer, EVENTS_MS, on_events_time);
}

void
nomad_node_free(struct nomad *n)
{
	n->register_timer = sd_event_source_disable_unref(n->register_timer);
	n->events_timer = sd_event_source_disable_unref(n->events_timer);
	turn_forget_write(n->base.sup, &n->node_row);
	while (n->events.n > 0)
		list_remove(node_event, &n->events, 0);
	node_done(&n->sent);
	text_done(&n->beat);
	free(n->identity);
}
