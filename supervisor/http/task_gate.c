// SPDX-License-Identifier: Apache-2.0
/* task_gate.c: the tokens of tasks' requests: each request must have one that is valid. Runs in:
 * supervisor. Asked by: tasks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/containers.h"
#include "supervisor/core/seal.h"
#include "supervisor/http/http_req.h"
#include "supervisor/http/task_socket.h"

#define TOKEN_MAX    8192 /* bytes; most have less than 1,000 */
#define KNOWN_MAX    4    /* tokens of one task whose results are kept */
#define VALID_MS     30000
#define INVALID_MS   5000
#define REFUSALS_MAX 20  /* of one task at once */
#define REFUSAL_MS   200 /* until one more */
#define TOO_MANY     "too many requests of this task had no valid token"

struct known {
	char *token; /* NULL: unused */
	uint64_t since_ms;
	int r; /* of api_authenticate_cb: 0, -EACCES or -EBADMSG */
};

/* A request that waits for the look-up of its token. Its connection stays suspended. */
struct waiter {
	STAILQ_ENTRY(waiter) link;
	struct api_req *req;
	void (*go_on)(struct api_req *req);
};

/* A look-up of a token. */
struct check {
	LIST_ENTRY(check) link; /* in task_gate.checks */
	char *token;
	bool counts;                   /* it has used a refusal */
	STAILQ_HEAD(, waiter) waiters; /* not empty */
};

/* Only what the task itself sends can replace its results, or use up its refusals. */
struct task_gate {
	LIST_HEAD(, check) checks;
	struct known known[KNOWN_MAX]; /* the last used first */
	unsigned refusals;             /* that are left */
	uint64_t since_ms;             /* when they were last increased */
};

static void
forget(struct known *k)
{
	if (k->token)
		seal_wipe(k->token, strlen(k->token));
	*k = (struct known){ 0 };
}

void
task_gate_free(struct task_gate *g)
{
	for (size_t i = 0; g && i < KNOWN_MAX; i++)
		forget(&g->known[i]);
	free(g);
}

static struct task_gate *
gate_of(struct task_socket *s)
{
	if (!s->gate) {
		s->gate = mem_new(struct task_gate);
		s->gate->refusals = REFUSALS_MAX;
	}
	return s->gate;
}

/* --- refusals --- */

bool
task_gate_is_closed(struct task_gate *g)
{
	uint64_t now = clock_ms(), more = (now - g->since_ms) / REFUSAL_MS;

	if (more > REFUSALS_MAX - g->refusals)
		more = REFUSALS_MAX - g->refusals;
	g->refusals += (unsigned)more;
	if (more > 0)
		g->since_ms = now;
	return g->refusals == 0;
}

/* Uses one refusal. Returns false if none is left. */
static bool
use_refusal(struct task_gate *g)
{
	if (task_gate_is_closed(g))
		return false;
	if (g->refusals == REFUSALS_MAX)
		g->since_ms = clock_ms();
	g->refusals--;
	return true;
}

static void
refuse(struct api_req *req, int status, const char *text)
{
	req->refused = true;
	api_reply_text(req, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* --- results that are kept --- */

static struct known *
find_known(struct task_gate *g, const char *token)
{
	for (size_t i = 0; i < KNOWN_MAX; i++)
		if (g->known[i].token && strcmp(g->known[i].token, token) == 0)
			return &g->known[i];
	return NULL;
}

static bool
is_fresh(const struct known *k)
{
	return clock_ms() - k->since_ms < (k->r == 0 ? VALID_MS : INVALID_MS);
}

/* Keeps the result in front; invalid tokens replace each other before they replace a valid one. */
static void
keep(struct task_gate *g, const char *token, int r)
{
	struct known *old = find_known(g, token), made = { 0 };

	for (size_t i = KNOWN_MAX; i > 0 && !old && r < 0; i--)
		if (g->known[i - 1].token && g->known[i - 1].r < 0)
			old = &g->known[i - 1];
	if (!old)
		old = &g->known[KNOWN_MAX - 1];
	made = (struct known){ mem_strdup(token), clock_ms(), r };
	forget(old);
	memmove(&g->known[1], &g->known[0], (size_t)(old - g->known) * sizeof *old);
	g->known[0] = made;
}

/* --- checks --- */

static void
answer(struct api_req *req, int r, void (*go_on)(struct api_req *req))
{
	if (r == 0)
		go_on(req);
	else if (r == -EACCES)
		refuse(req, 403, "Forbidden");
	else
		refuse(req, 500, "Server error authenticating request\n");
}

/* Returns the result for the requests that wait: as long as the servers do not answer, their last
 * word counts. */
static int
take_result(struct task_gate *g, struct check *c, int r)
{
	const struct known *before = find_known(g, c->token);
	bool is_refusal = r == -EACCES || r == -EBADMSG;

	LIST_REMOVE(c, link);
	if (is_refusal || r == 0)
		keep(g, c->token, r);
	else if (before)
		r = before->r;
	if (c->counts && !is_refusal && g->refusals < REFUSALS_MAX)
		g->refusals++;
	return r;
}

/* The first request needs no refusal: the look-up has used one, unless the token was valid before.
 * The gate lives until the last is answered. */
static void
answer_waiters(struct task_gate *g, struct check *c, int r)
{
	bool is_refusal = r == -EACCES || r == -EBADMSG;
	struct waiter *w;

	STAILQ_FOREACH (w, &c->waiters, link) {
		if (!is_refusal || w == STAILQ_FIRST(&c->waiters) || use_refusal(g))
			answer(w->req, r, w->go_on);
		else
			refuse(w->req, 429, TOO_MANY);
	}
}

static void
on_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct check *c = arg;
	struct task_gate *g;
	struct waiter *w;

	if (r != -ECANCELED) { /* then the requests and the gate are gone */
		g = gate_of(STAILQ_FIRST(&c->waiters)->req->client->task);
		answer_waiters(g, c, take_result(g, c, r));
	}
	while ((w = STAILQ_FIRST(&c->waiters))) {
		STAILQ_REMOVE_HEAD(&c->waiters, link);
		free(w);
	}
	seal_wipe(c->token, strlen(c->token));
	free(c);
}

static struct check *
find_check(const struct task_gate *g, const char *token)
{
	struct check *c;

	LIST_FOREACH (c, &g->checks, link)
		if (strcmp(c->token, token) == 0)
			return c;
	return NULL;
}

static void
add_waiter(struct check *c, struct api_req *req, void (*go_on)(struct api_req *))
{
	struct waiter *w = mem_new(struct waiter);

	*w = (struct waiter){ .req = req, .go_on = go_on };
	STAILQ_INSERT_TAIL(&c->waiters, w, link);
}

/* The result may come within the call. */
static void
begin_check(struct task_gate *g, const char *token, bool counts, struct api_req *req,
    void (*go_on)(struct api_req *))
{
	struct check *c = mem_new(struct check);

	*c = (struct check){ .token = mem_strdup(token), .counts = counts };
	STAILQ_INIT(&c->waiters);
	add_waiter(c, req, go_on);
	LIST_INSERT_HEAD(&g->checks, c, link);
	req->sup->api->backend->authenticate(req->sup, token, api_task(req), on_checked, c);
}

void
task_gate_check(struct api_req *req, struct task_socket *s, void (*go_on)(struct api_req *))
{
	const struct api_backend *backend = req->sup->api->backend;
	struct task_gate *g = gate_of(s);
	const char *token = str(api_token(req));
	const struct known *known = find_known(g, token);
	struct check *running = find_check(g, token);
	const bool was_valid = known && known->r == 0;

	if (known && !is_fresh(known))
		known = NULL;
	if (known && was_valid) {
		go_on(req);
		return;
	}
	if (running) {
		add_waiter(running, req, go_on);
		return;
	}
	/* Each refusal counts, and each look-up until its result; not that of a token that was
	 * valid: a flood of invalid ones must not keep it out. */
	if (!was_valid && !use_refusal(g)) {
		refuse(req, 429, TOO_MANY);
	} else if (!*token) {
		refuse(req, 401, "Unauthorized");
	} else if (known) {
		answer(req, known->r, go_on);
	} else if (strlen(token) > TOKEN_MAX || !backend->authenticate) {
		refuse(req, 403, "Forbidden");
	} else {
		begin_check(g, token, !was_valid, req, go_on);
	}
}
