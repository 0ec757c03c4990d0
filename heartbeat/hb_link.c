// SPDX-License-Identifier: Apache-2.0
/* hb_link.c: chooses the server in use and manages connections. Runs in: heartbeat. */
#include "heartbeat/hb_link.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/code.h"
#include "common/list.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proc.h"
#include "common/tls.h"
#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_names.h"
#include "heartbeat/hb_resolve.h"
#include "heartbeat/hb_server.h"
#include "proto/heartbeat.pb-c.h"

#define NEVER          UINT64_MAX
#define RETRY_MS       250    /* pause after all servers failed; doubles with each round … */
#define RETRY_DOUBLE   5      /* … so many times; a random time up to the same length is added */
#define RESOLVE_MS     15000  /* limit for a look-up */
#define COMPLAIN_MS    1000   /* minimum time between two switches caused by complaints */
#define REBALANCE_MS   300000 /* interval of trying another server, to spread the nodes */
#define REBALANCE_RATE 64     /* nodes per second that each server accepts from others */
#define FALL_BACK      3      /* failed rounds after which the configured servers are tried again */
/* Old connections that are kept for their streams: besides them there are the current one, a
 * candidate, and the resolver. */
#define DRAINING_MAX (HB_LINK_POLL_MAX - 3)

struct hb_link {
	struct hb *hb;
	const struct hb_link_ops *ops;
	struct ssl_ctx_st *tls;
	char tls_name[CONFIG_NAME_SIZE + 16];
	struct hb_conn_options options;
	int resolver; /* -1 if no name is configured, or the resolver has ended */

	struct hb_servers servers;
	LIST_HEAD(, hb_conn) conns;
	struct hb_conn *current, *candidate;
	char wanted[HB_RPC_ADDR_SIZE]; /* the server whose name is being looked up, or "" */
	uint64_t asked_ms;
	unsigned failed; /* consecutive failed candidates */
	uint64_t retry_ms, complained_ms, rebalance_ms;
	bool doubted; /* another server should replace the current one */
	bool joined;  /* a server has been in use */
	uint64_t n_nodes;
	char why[ERR_MSG_SIZE];
};

static struct hb_conn *
conn_of(struct hb_yamux *y)
{
	return container_of(y, struct hb_conn, yamux);
}

/* --- callbacks of yamux --- */

static bool
on_open(struct hb_stream *s)
{
	struct hb *hb = s->session->user;

	return hb->link->ops->open(hb, conn_of(s->session), s);
}

static void
on_data(struct hb_stream *s, const uint8_t *data, size_t len)
{
	s->ops->on_data(s, data, len);
}

static void
on_fin(struct hb_stream *s)
{
	s->ops->on_fin(s);
}

static void
on_reset(struct hb_stream *s)
{
	s->ops->on_reset(s);
}

static void
on_window(struct hb_stream *s)
{
	s->ops->on_window(s);
}

static void
on_pong(struct hb_yamux *y, uint32_t value)
{
	struct hb_conn *c = conn_of(y);

	(void)value;
	c->pinged_ms = 0;
	if (c->ssl && !c->proven)
		code_let_go(); /* the next handshake may be weeks away */
	c->proven = true;
}

static void
on_go_away(struct hb_yamux *y, uint32_t code)
{
	const struct hb *hb = y->user;

	(void)code;
	hb_link_complain(hb->link, "it accepts no new requests");
}

static const struct hb_yamux_ops yamux_ops = { on_open, on_data, on_fin, on_reset, on_window,
	on_pong, on_go_away };

/* --- connections --- */

static void
tell_server(struct hb_link *l, bool gives_up)
{
	HbServerEv ev = HB_SERVER_EV__INIT;
	char *known[HB_RPC_SERVERS];

	for (size_t i = 0; i < l->servers.n; i++)
		known[i] = l->servers.list[i].name;
	ev.server = l->current ? l->current->name : (char *)(uintptr_t) "";
	ev.known = known;
	ev.n_known = l->servers.n;
	ev.why = l->why;
	ev.gives_up = gives_up;
	hb_ipc_tell(l->hb, HB_SERVER_EV, 0, &ev.base, -1);
}

static void
remove_conn(struct hb_link *l, struct hb_conn *c)
{
	LIST_REMOVE(c, link);
	hb_conn_free(c);
}

/* Closes a connection: its calls move to another server or fail, and its streams end. */
static void
close_conn(struct hb_link *l, struct hb_conn *c, const char *why)
{
	char text[ERR_MSG_SIZE];

	(void)snprintf(text, sizeof text, "%s: %s", c->name, why);
	if (l->current == c)
		l->current = NULL;
	if (l->candidate == c)
		l->candidate = NULL;
	l->ops->lose(l->hb, c, text);
	remove_conn(l, c);
}

static void
set_why(struct hb_link *l, const char *name, const char *why)
{
	struct hb_server *s = hb_servers_find(&l->servers, name);

	if (s)
		(void)snprintf(s->why, sizeof s->why, "%.190s", why);
	hb_servers_why(&l->servers, l->why, sizeof l->why);
}

/* The next candidate is tried immediately, until all have failed. */
static void
candidate_failed(struct hb_link *l, const char *name, const char *why)
{
	const struct agent_config *config = l->hb->config;
	unsigned rounds;
	uint64_t wait;

	set_why(l, name, why);
	log_debug("server %s: %s", name, why);
	if (++l->failed % l->servers.n != 0)
		return;
	rounds = l->failed / (unsigned)l->servers.n;
	wait = RETRY_MS << (rounds < RETRY_DOUBLE ? rounds : RETRY_DOUBLE);
	wait += hb_random(wait);
	if (!l->joined && config->retry_interval_ms)
		wait = config->retry_interval_ms;
	l->retry_ms = l->hb->now_ms + wait;
	if (l->current)
		return;
	if (rounds == 1) {
		log_warn("no server can be reached: %s", l->why);
		tell_server(l, false);
	}
	if (!l->joined && config->retry_max && rounds == config->retry_max + 1)
		tell_server(l, true);
	if (rounds % FALL_BACK == 0)
		hb_servers_from_config(&l->servers, l->hb->config);
}

static void
connect_to(struct hb_link *l, const char *name, const struct sockaddr_storage *address)
{
	struct err e = { 0 };
	struct hb_conn *c = hb_conn_new(name, address, &l->options, l->hb->now_ms, &e);

	if (!c) {
		candidate_failed(l, name, e.msg);
		return;
	}
	LIST_INSERT_HEAD(&l->conns, c, link);
	l->candidate = c;
}

/* Connects to the next server, after a look-up if it is a name. */
static void
try_next(struct hb_link *l)
{
	struct hb_servers *s = &l->servers;
	struct sockaddr_storage address;
	char host[HB_RPC_ADDR_SIZE];
	const char *name;
	unsigned port;

	/* Skips the current server if there are others. */
	if (s->n > 1 && l->current && strcmp(s->list[s->next % s->n].name, l->current->name) == 0)
		s->next++;
	name = s->list[s->next++ % s->n].name;
	s->next %= s->n;
	if (hb_server_split(name, host, &port) < 0) {
		candidate_failed(l, name, "this is not the address of a server");
		return;
	}
	if (hb_server_address(host, port, &address)) {
		connect_to(l, name, &address);
		return;
	}
	if (l->resolver < 0 || hb_resolve_ask(l->resolver, host) < 0) {
		candidate_failed(l, name, "its address cannot be looked up");
		return;
	}
	(void)strcpy(l->wanted, name);
	l->asked_ms = l->hb->now_ms;
}

static void
on_resolved(struct hb_link *l)
{
	static struct hb_resolve_answer a;
	char host[HB_RPC_ADDR_SIZE], name[HB_RPC_ADDR_SIZE];
	unsigned port = 0;
	int r;

	while ((r = hb_resolve_take(l->resolver, &a)) > 0) {
		hb_names_on_answer(l->hb, &a);
		(void)strcpy(name, l->wanted);
		if (!name[0] || hb_server_split(name, host, &port) < 0 || strcmp(host, a.host) != 0)
			continue; /* an answer to an earlier look-up */
		l->wanted[0] = '\0';
		if (a.code) {
			candidate_failed(l, name, gai_strerror(a.code));
			continue;
		}
		/* The port is at the same offset in both families. */
		((struct sockaddr_in *)(void *)&a.address)->sin_port = htons((uint16_t)port);
		connect_to(l, name, &a.address);
	}
	if (r == 0) {
		log_error("the resolver has ended: names of servers can no longer be looked up");
		close_p(&l->resolver);
		hb_names_lose(l->hb);
	}
}

/* --- switching --- */

static uint64_t
rebalance_after(struct hb_link *l)
{
	uint64_t by_nodes =
	    l->n_nodes * 1000 / (REBALANCE_RATE * (l->servers.n ? l->servers.n : 1));
	uint64_t base = by_nodes > REBALANCE_MS ? by_nodes : REBALANCE_MS;

	return base + hb_random(base);
}

/* Bounds connections that are kept only for their streams: a server could make the node switch
 * again and again and keep its streams open. Closes the oldest one. */
static void
bound_draining(struct hb_link *l)
{
	struct hb_conn *c, *oldest = NULL;
	unsigned n = 0;

	LIST_FOREACH (c, &l->conns, link)
		if (c->draining) {
			oldest = c;
			n++;
		}
	if (n > DRAINING_MAX)
		close_conn(l, oldest, "too many old connections still have streams");
}

/* Makes the candidate, which has answered, the current server. Calls that may be repeated move to
 * it. */
static void
take_over(struct hb_link *l)
{
	struct hb_conn *old = l->current;

	l->current = l->candidate;
	l->candidate = NULL;
	l->failed = 0;
	l->doubted = false;
	l->joined = true;
	l->rebalance_ms = l->hb->now_ms + rebalance_after(l);
	set_why(l, l->current->name, "");
	l->why[0] = '\0';
	log_info("server %s is in use", l->current->name);
	if (old && hb_conn_is_slow(old, l->hb->now_ms)) {
		close_conn(l, old, "it does not answer");
	} else if (old) {
		old->draining = true;
		l->ops->move(l->hb, old);
		bound_draining(l);
	}
	tell_server(l, false);
	l->ops->server(l->hb);
}

static void
on_dead(struct hb_link *l, struct hb_conn *c)
{
	char name[HB_RPC_ADDR_SIZE], why[ERR_MSG_SIZE];
	bool was_candidate = c == l->candidate, was_current = c == l->current;

	(void)strcpy(name, c->name);
	(void)snprintf(why, sizeof why, "%s", c->why.msg);
	close_conn(l, c, why);
	if (was_current) {
		log_warn("server %s: %s; trying another", name, why);
		set_why(l, name, why);
		l->retry_ms = l->hb->now_ms;
	}
	if (was_candidate)
		candidate_failed(l, name, why);
}

static bool
wants_candidate(struct hb_link *l)
{
	uint64_t now = l->hb->now_ms;

	if (l->candidate || l->wanted[0] || now < l->retry_ms)
		return false;
	/* Its go-away may have arrived too soon after another complaint to have an effect. */
	if (l->current && l->current->yamux.gone_away)
		hb_link_complain(l, "it accepts no new requests");
	if (!l->current || l->doubted || hb_conn_is_slow(l->current, now))
		return true;
	if (now < l->rebalance_ms || l->servers.n < 2)
		return false;
	l->rebalance_ms = now + rebalance_after(l);
	return true;
}

static uint64_t
tick_conns(struct hb_link *l)
{
	struct hb_conn *c, *next;
	uint64_t next_ms = NEVER;

	LIST_FOREACH_SAFE (c, &l->conns, link, next) {
		uint64_t when = hb_conn_tick(c, l->hb->now_ms);

		if (c->state == HB_CONN_DEAD)
			on_dead(l, c);
		else if (c->draining && !l->ops->uses(l->hb, c))
			close_conn(l, c, "no longer in use");
		else if (when < next_ms)
			next_ms = when;
	}
	return next_ms;
}

uint64_t
hb_link_tick(struct hb_link *l)
{
	uint64_t now = l->hb->now_ms, next_ms = tick_conns(l);

	if (l->candidate && l->candidate->proven)
		take_over(l);
	if (l->wanted[0] && now - l->asked_ms >= RESOLVE_MS) {
		char name[HB_RPC_ADDR_SIZE];

		(void)strcpy(name, l->wanted);
		l->wanted[0] = '\0';
		candidate_failed(l, name, "the look-up of its address timed out");
	}
	if (wants_candidate(l)) {
		try_next(l);
		next_ms = now; /* the result of this look-up */
	}
	if (l->wanted[0] && l->asked_ms + RESOLVE_MS < next_ms)
		next_ms = l->asked_ms + RESOLVE_MS;
	if (l->retry_ms > now && l->retry_ms < next_ms)
		next_ms = l->retry_ms;
	return next_ms;
}

/* --- exported --- */

static int
begin_tls(struct hb_link *l, struct err *e)
{
	const struct agent_config *config = l->hb->config;

	if (!config->tls_rpc)
		return 0;
	l->tls = tls_new(FD_FILES + FILE_TLS_CA, "tls.ca_file", e);
	if (!l->tls ||
	    tls_identify(l->tls, FD_FILES + FILE_TLS_CERT, FD_FILES + FILE_TLS_KEY, "tls", e) < 0)
		return -EINVAL;
	l->options.tls = l->tls;
	if (config->tls_verify_server_hostname) {
		(void)snprintf(l->tls_name, sizeof l->tls_name, "server.%s.nomad", config->region);
		l->options.server_name = l->tls_name;
	}
	return 0;
}

int
hb_link_new(struct hb *hb, const struct hb_link_ops *ops, int resolver, struct err *e)
{
	struct hb_link *l = mem_new(struct hb_link);

	l->hb = hb;
	l->ops = ops;
	l->resolver = resolver;
	l->options = (struct hb_conn_options){ .ops = &yamux_ops, .user = hb };
	if (begin_tls(l, e) < 0) {
		free(l);
		return -EINVAL;
	}
	hb_servers_from_config(&l->servers, hb->config);
	hb_servers_why(&l->servers, l->why, sizeof l->why);
	hb->link = l;
	return 0;
}

struct hb_conn *
hb_link_current(struct hb_link *l)
{
	return l->current;
}

int
hb_link_resolve(struct hb_link *l, const char *host)
{
	return l->resolver < 0 ? -ENOTCONN : hb_resolve_ask(l->resolver, host);
}

const char *
hb_link_why(struct hb_link *l)
{
	return l->why;
}

void
hb_link_complain(struct hb_link *l, const char *why)
{
	if (!l->current || l->doubted || l->hb->now_ms < l->complained_ms + COMPLAIN_MS)
		return;
	l->complained_ms = l->hb->now_ms;
	l->doubted = l->servers.n > 1 || l->current->yamux.gone_away;
	log_debug("server %s: %s", l->current->name, why);
}

void
hb_link_set_servers(struct hb_link *l, const struct hb_rpc_node *node)
{
	l->n_nodes = node->n_nodes > 0 ? (uint64_t)node->n_nodes : 0;
	if (hb_servers_from_cluster(&l->servers, node))
		tell_server(l, false);
}

size_t
hb_link_poll(struct hb_link *l, struct pollfd *fds)
{
	const struct hb_conn *c;
	size_t n = 0;

	if (l->resolver >= 0)
		fds[n++] = (struct pollfd){ .fd = l->resolver, .events = POLLIN };
	LIST_FOREACH (c, &l->conns, link)
		if (n < HB_LINK_POLL_MAX)
			fds[n++] = (struct pollfd){ .fd = c->fd, .events = hb_conn_events(c) };
	return n;
}

void
hb_link_ready(struct hb_link *l, const struct pollfd *fds, size_t n)
{
	struct hb_conn *c;

	for (size_t i = 0; i < n; i++) {
		if (fds[i].fd < 0)
			continue;
		if (fds[i].fd == l->resolver && fds[i].revents) {
			on_resolved(l);
			continue;
		}
		LIST_FOREACH (c, &l->conns, link)
			if (c->fd == fds[i].fd)
				break;
		if (c)
			hb_conn_ready(c, &l->options, fds[i].revents, l->hb->now_ms);
	}
}

bool
hb_link_has_more(const struct hb_link *l)
{
	const struct hb_conn *c;

	LIST_FOREACH (c, &l->conns, link)
		if (c->more)
			return true;
	return false;
}

void
hb_link_flush(struct hb_link *l)
{
	struct hb_conn *c;

	LIST_FOREACH (c, &l->conns, link) {
		hb_conn_flush(c);
		if (c->state != HB_CONN_UP || c->yamux.out.len > 0)
			continue;
		/* Users may continue to write to the emptied buffer, and the result is sent. */
		l->ops->room(l->hb, c);
		hb_conn_flush(c);
	}
}
