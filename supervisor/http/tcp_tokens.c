// SPDX-License-Identifier: Apache-2.0
/* tcp_tokens.c: the ACL tokens of clients over TCP: which are valid. In a cluster each look-up is a
 * request to the servers, so results are kept, requests with the same token share a look-up, and
 * each client has a limit of look-ups that fail. Runs in: supervisor. Asked by: the network,
 * through the listener. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/seal.h"
#include "supervisor/http/http_req.h"
#include "supervisor/http/tcp_gate.h"

#define VALID_MAX    64 /* results that are kept */
#define INVALID_MAX  32
#define VALID_MS     30000
#define INVALID_MS   5000
#define LOOKUPS_MAX  32  /* at once */
#define CLIENTS_MAX  64  /* with failed look-ups */
#define FAILURES_MAX 20  /* of one client at once; each look-up counts until it succeeds */
#define FAILURE_MS   200 /* until one more */

struct token_check {
	TAILQ_ENTRY(token_check) link;
	struct tcp_tokens *all; /* NULL: the API has ended */
	char *token;
	bool runs;            /* a look-up */
	bool known;           /* r is the last result */
	int r;                /* 0, -EACCES or -EBADMSG */
	uint64_t since_ms;    /* of the result */
	struct in6_addr from; /* the client for which the look-up runs */
	LIST_HEAD(, http_tcp) waiters;
};

struct client {
	struct in6_addr from;
	unsigned failures;
	uint64_t since_ms; /* when they were last decreased, or became more than 0 */
};

struct tcp_tokens {
	TAILQ_HEAD(, token_check) checks; /* the last result or look-up first */
	unsigned n_lookups;
	bool asks; /* the source is being called: a result now has cost nothing */
	struct client clients[CLIENTS_MAX];
};

static struct tcp_tokens *
tokens_of(struct api *api)
{
	if (!api->tokens) {
		api->tokens = mem_new(struct tcp_tokens);
		TAILQ_INIT(&api->tokens->checks);
	}
	return api->tokens;
}

/* --- clients --- */

static void
forgive(struct client *c)
{
	uint64_t now = clock_ms(), n = (now - c->since_ms) / FAILURE_MS;

	if (n > 0)
		c->since_ms = now;
	c->failures -= n > c->failures ? c->failures : (unsigned)n;
}

/* Takes the place of the client with the fewest failures if there is none left. */
static struct client *
client_of(struct tcp_tokens *all, const struct in6_addr *from)
{
	struct client *best = &all->clients[0];

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct client *c = &all->clients[i];

		forgive(c);
		if (memcmp(&c->from, from, sizeof *from) == 0)
			return c;
		if (c->failures < best->failures)
			best = c;
	}
	*best = (struct client){ .from = *from, .since_ms = clock_ms() };
	return best;
}

static bool
may_fail(struct tcp_tokens *all, const struct in6_addr *from)
{
	struct client *c = client_of(all, from);

	if (c->failures == FAILURES_MAX)
		return false;
	if (c->failures++ == 0)
		c->since_ms = clock_ms();
	return true;
}

static void
note_success(struct tcp_tokens *all, const struct in6_addr *from)
{
	struct client *c = client_of(all, from);

	c->failures -= c->failures > 0;
}

/* --- results --- */

static void
free_check(struct token_check *c)
{
	if (c->all)
		TAILQ_REMOVE(&c->all->checks, c, link);
	seal_wipe(c->token, strlen(c->token));
	free(c);
}

static struct token_check *
find_check(struct tcp_tokens *all, const char *token)
{
	struct token_check *c;

	TAILQ_FOREACH (c, &all->checks, link)
		if (strcmp(c->token, token) == 0)
			return c;
	return NULL;
}

static bool
is_fresh(const struct token_check *c)
{
	return c->known && clock_ms() - c->since_ms < (c->r == 0 ? VALID_MS : INVALID_MS);
}

/* Invalid tokens, which anybody can send, never replace valid ones. */
static void
remove_oldest(struct tcp_tokens *all)
{
	unsigned valid = 0, invalid = 0;
	struct token_check *c, *next;

	TAILQ_FOREACH_SAFE (c, &all->checks, link, next)
		if (!c->runs && (c->r == 0 ? ++valid > VALID_MAX : ++invalid > INVALID_MAX))
			free_check(c);
}

static void
end_waits(struct token_check *c, int r, const char *why)
{
	struct http_tcp *t;

	while ((t = LIST_FIRST(&c->waiters))) {
		tcp_tokens_forget(t);
		t->done(t, r, why);
	}
}

/* --- look-ups --- */

static void
on_result(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct token_check *c = arg;
	struct tcp_tokens *all = c->all;
	bool is_refusal = r == -EACCES || r == -EBADMSG;

	if (!all) {
		free_check(c);
		return;
	}
	all->n_lookups--;
	if (!is_refusal || all->asks)
		note_success(all, &c->from);
	if (is_refusal || r == 0) {
		c->known = true;
		c->r = r;
		c->since_ms = clock_ms();
	} else if (c->known) { /* without the servers their last word counts */
		r = c->r;
	}
	end_waits(c, r, e->msg);
	c->runs = false;
	if (!c->known || all->asks)
		free_check(c);
	else
		remove_oldest(all);
}

static void
look_up(struct sup *sup, struct tcp_tokens *all, struct token_check *c, struct http_tcp *t)
{
	c->runs = true;
	c->from = t->from;
	all->n_lookups++;
	all->asks = true;
	sup->api->backend->authenticate(sup, c->token, NULL, on_result, c);
	all->asks = false;
}

static struct token_check *
new_check(struct tcp_tokens *all, const char *token)
{
	struct token_check *c = mem_new(struct token_check);

	c->all = all;
	c->token = mem_strdup(token);
	TAILQ_INSERT_HEAD(&all->checks, c, link);
	return c;
}

void
tcp_tokens_check(struct sup *sup, struct http_tcp *t, const char *token, tcp_tokens_cb *done)
{
	struct tcp_tokens *all = tokens_of(sup->api);
	struct token_check *c = find_check(all, token);

	if (c && !c->runs && is_fresh(c)) {
		done(t, c->r, "the token is not valid");
		return;
	}
	if (!c || !c->runs) {
		if (all->n_lookups == LOOKUPS_MAX) {
			done(t, -EBUSY, "too many others are being checked");
			return;
		}
		if (!may_fail(all, &t->from)) {
			done(t, -EDQUOT, "");
			return;
		}
	}
	if (!c)
		c = new_check(all, token);
	t->check = c;
	t->done = done;
	LIST_INSERT_HEAD(&c->waiters, t, waits);
	if (!c->runs)
		look_up(sup, all, c, t);
}

void
tcp_tokens_forget(struct http_tcp *t)
{
	if (t->check)
		LIST_REMOVE(t, waits);
	t->check = NULL;
}

void
tcp_tokens_free(struct api *api)
{
	struct token_check *c, *next;

	if (!api->tokens)
		return;
	TAILQ_FOREACH_SAFE (c, &api->tokens->checks, link, next) {
		if (c->runs) { /* its result comes */
			TAILQ_REMOVE(&api->tokens->checks, c, link);
			c->all = NULL;
		} else {
			free_check(c);
		}
	}
	free(api->tokens);
	api->tokens = NULL;
}
