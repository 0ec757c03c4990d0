// SPDX-License-Identifier: Apache-2.0
/* nomad_register.c: registers the node at the servers, and again when they do not know it any more.
 * Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_register.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/core/journal.h"
#include "supervisor/alloc/departure.h"
#include "supervisor/cluster/node/nomad_clock.h"
#include "supervisor/cluster/node/nomad_leave.h"
#include "supervisor/cluster/node/nomad_stall.h"
#include "supervisor/core/store.h"
#include "supervisor/node/node_cni.h"
#include "supervisor/node/node_state.h"

#define DEADLINE_MS  30000
#define RETRY_MS     1000
#define RETRY_MAX_MS 15000
#define CNI_CHECK_MS 100   /* between two looks whether the CNI plugins are known */
#define AGAIN_GAP_MS 5000  /* minimum time between two registrations that servers cause */
#define TOKEN_MAX    16384 /* bytes of an introduction token */

/* State that outlives the process. */

static int
write_node(struct sup *sup, struct dirty *d, struct err *e)
{
	struct nomad *n = container_of(d, struct nomad, node_row);
	char heard[NOMAD_STALL_TEXT_SIZE];
	int r = store_meta_put(sup->store, "nomad_registered", n->registered ? "1" : "0", e);

	nomad_stall_format(n, heard);
	if (r == 0)
		r = store_meta_put(sup->store, "nomad_heard", heard, e);
	return r < 0 ? r : store_meta_put(sup->store, "nomad_identity", str(n->identity), e);
}

static void
node_row_changed(struct nomad *n)
{
	turn_write(n->src.base.sup, &n->node_row);
	turn_durable(n->src.base.sup);
}

int
nomad_register_load(struct nomad *n, struct err *e)
{
	struct store *store = n->src.base.sup->store;
	cleanup_free char *registered = NULL, *identity = NULL, *heard = NULL;
	int r;

	n->node_row.write = write_node;
	n->node_row.point = CRASH_ROW_NOMAD_NODE;
	if (n->src.base.sup->new_identity) {
		node_row_changed(n);
		return 0;
	}
	r = store_meta_get(store, "nomad_registered", &registered, e);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	n->registered = strcmp(registered, "1") == 0;
	r = store_meta_get(store, "nomad_heard", &heard, e);
	if (r == 0)
		nomad_stall_parse(n, heard);
	else if (r != -ENOENT)
		return r;
	r = store_meta_get(store, "nomad_identity", &identity, e);
	str_set(&n->identity, identity);
	return r == -ENOENT ? 0 : r;
}

void
nomad_register_take_identity(struct nomad *n, const char *jwt)
{
	if (!*str(jwt) || str_eq(n->identity, jwt))
		return;
	str_set(&n->identity, jwt);
	nomad_clock_note(n, jwt);
	n->renew_identity = false;
	node_row_changed(n);
}

/* Reads the introduction token that an operator stored for a cluster that requires one. */
static void
read_introduction(struct nomad *n, char **ret)
{
	char path[4200];

	(void)snprintf(
	    path, sizeof path, "%s/state/intro_token.jwt", n->src.base.sup->args.data_dir);
	if (fd_read_file(AT_FDCWD, path, TOKEN_MAX, ret) < 0)
		*ret = NULL;
	else
		(*ret)[strcspn(*ret, "\r\n \t")] = '\0';
}

/* Registration. */

static void
on_register_time(void *arg)
{
	struct nomad *n = arg;

	nomad_register(n);
}

void
nomad_register_after(struct nomad *n, uint64_t ms)
{
	if (!n->register_call)
		nomad_after(n, &n->register_timer, ms, on_register_time);
}

static void
retry_later(struct nomad *n)
{
	nomad_register_after(n, nomad_retry_ms(&n->register_failures, RETRY_MS, RETRY_MAX_MS));
}

/* If the servers do not know the node any more, its token is invalid and it registers as a new
 * node. */
static void
on_refused(struct nomad *n, const char *text)
{
	bool denied = strstr(text, "Permission denied") || strstr(text, "ACL token not found");

	if (denied && !n->denied && *nomad_token(n)) {
		n->denied = true;
		journal_info(JOURNAL_SERVERS, NULL,
		    "the servers refuse the node's token: registering the node without it");
		nomad_register_after(n, 0);
		return;
	}
	if (denied)
		journal_warn(JOURNAL_SERVERS, NULL,
		    "the servers refuse the node: %s: if the cluster requires an introduction "
		    "token, store it in state/intro_token.jwt",
		    text);
	else
		journal_warn(JOURNAL_SERVERS, NULL, "the servers refuse the node: %s", text);
	n->denied = false;
	retry_later(n);
}

/* Returns true if the servers lost their log or restored a backup: each registration is a write to
 * the log, so its index is otherwise higher than all earlier ones. */
static bool
went_back(const struct nomad *n, const struct rpc_node_rep *rep)
{
	if (rep->node_modify_index == 0 || rep->node_modify_index >= n->watch_index)
		return false;
	journal_warn(JOURNAL_SERVERS, NULL,
	    "the servers' state is older than an earlier answer: index %llu after %llu",
	    (unsigned long long)rep->node_modify_index, (unsigned long long)n->watch_index);
	return true;
}

static void
take_registration(struct nomad *n, const struct rpc_node_rep *rep)
{
	bool first = !n->ready, new_node = n->denied || !n->registered;
	bool anew = new_node || n->unknown || went_back(n, rep);

	if (n->denied)
		str_set(&n->identity, NULL);
	if (new_node) {
		n->registered = true;
		node_row_changed(n);
	}
	nomad_register_take_identity(n, rep->signed_identity);
	nomad_stall_heard(n, rep->heartbeat_ttl);
	n->denied = n->unknown = false;
	n->register_failures = 0;
	n->ready = true;
	if (rep->scheduling_eligibility)
		n->eligibility = rep->scheduling_eligibility;
	if (first)
		journal_info(JOURNAL_SERVERS, NULL, "the node is registered");
	n->on_registered(n, first, anew);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	cleanup_done(rpc_node_rep) struct rpc_node_rep rep;
	struct nomad *n = nomad_of_sup(sup);
	struct err why = { 0 };

	n->register_call = 0;
	r = nomad_decode(r, body, len, e, &rpc_node_rep_type, &rep, &why);
	if (r == 0) {
		take_registration(n, &rep);
	} else if (r == -EREMOTEIO) {
		on_refused(n, why.msg);
	} else {
		journal_warn(JOURNAL_SERVERS, NULL, "register the node: %s", why.msg);
		retry_later(n);
	}
}

struct node
nomad_register_view(struct nomad *n)
{
	struct node view = *node_get(n->src.base.sup);

	view.status = n->ready ? NODE_READY : NODE_INIT;
	/* This setting counts only at the first registration; the servers own it afterwards. */
	view.scheduling_eligibility = NODE_ELIGIBLE;
	view.status_updated_at = 0;
	view.status_description = NULL; /* theirs */
	view.drain = false;
	view.drain_strategy = NULL;
	(void)memset(&view.events, 0, sizeof view.events);
	view.computed_class = NULL;
	return view;
}

void
nomad_register(struct nomad *n)
{
	cleanup_free char *introduction = NULL;
	struct node view = nomad_register_view(n);
	struct rpc_register_req req = { .node = &view };
	struct text body = { 0 };

	if (n->register_call || n->departed || nomad_stall_stops(n))
		return;
	sup_timer_cancel(&n->register_timer);
	/* Else servers would think for a while that the node has lost its networks. */
	if (node_cni_is_awaited()) {
		nomad_register_after(n, CNI_CHECK_MS);
		return;
	}
	node_done(&n->sent);
	node_copy(&view, &n->sent);
	nomad_write(n, &req.write);
	if (n->denied || !n->registered) {
		read_introduction(n, &introduction);
		str_set(&req.write.auth_token, introduction);
	}
	n->register_at_ms = clock_ms();
	/* Not compact: servers would keep nil for a missing block. */
	model_to_msgpack(&rpc_register_req_type, &req, 0, &body);
	n->register_call = link_call(n->src.base.sup, "Node.Register", body.text, body.len,
	    DEADLINE_MS, LINK_REPEAT, on_answer, NULL);
	text_done(&body);
	nomad_write_done(&req.write);
}

bool
nomad_register_if_unknown(struct nomad *n, int r, const struct err *e)
{
	if (r != -EREMOTEIO ||
	    (!strstr(e->msg, "node not found") && !strstr(e->msg, "Permission denied") &&
		!(strstr(e->msg, "node ") && strstr(e->msg, " not found")) &&
		!strstr(e->msg, "node secret ID does not match")))
		return false;
	n->unknown = true;
	if (strstr(e->msg, "not found") && departure_is_wanted_gone(n->src.base.sup)) {
		nomad_leave_unknown(n, e);
		return true;
	}
	if (departure_is_renewing(n->src.base.sup) || n->register_call ||
	    sup_timer_is_set(&n->register_timer))
		return true;
	journal_warn(JOURNAL_SERVERS, NULL, "the servers do not know this node: %s", e->msg);
	if (strstr(e->msg, "not found") && nomad_stall_forgotten(n))
		return true;
	nomad_register_again(n);
	return true;
}

/* A server that causes a new registration with every call must not be flooded. */
void
nomad_register_again(struct nomad *n)
{
	if (!n->register_call && !sup_timer_is_set(&n->register_timer))
		nomad_register_after(
		    n, clock_ms() < n->register_at_ms + AGAIN_GAP_MS ? AGAIN_GAP_MS : 0);
}

void
nomad_register_free(struct nomad *n)
{
	sup_timer_cancel(&n->register_timer);
	turn_forget_write(n->src.base.sup, &n->node_row);
	node_done(&n->sent);
	free(n->identity);
}
