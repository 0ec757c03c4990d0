// SPDX-License-Identifier: Apache-2.0
/* task_gate.c: the tokens of tasks' requests: each request must have one that is valid. Runs in:
 * supervisor. Asked by: tasks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
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

struct known {
	char *token; /* NULL: unused */
	uint64_t since_ms;
	int r; /* of api_authenticate_cb: 0, -EACCES or -EBADMSG */
};

/* Only what the task itself sends can replace its results, or use up its refusals. */
struct task_gate {
	struct known known[KNOWN_MAX]; /* the last used first */
	unsigned refusals;             /* that are left */
	uint64_t since_ms;             /* when they were last increased */
};

/* A request whose token is being checked. Its connection stays suspended. */
struct check {
	struct api_req *req;
	void (*go_on)(struct api_req *req);
	char *token;
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

static void
on_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct check *c = arg;

	if (r != -ECANCELED) { /* then the request is gone */
		struct task_gate *g = gate_of(c->req->client->task);
		const struct known *before = find_known(g, c->token);
		bool is_refusal = r == -EACCES || r == -EBADMSG;

		if (is_refusal || r == 0)
			keep(g, c->token, r);
		else if (before) /* as long as the servers do not answer, their last word counts */
			r = before->r;
		if (!is_refusal && g->refusals < REFUSALS_MAX)
			g->refusals++;
		answer(c->req, r, c->go_on);
	}
	seal_wipe(c->token, strlen(c->token));
	free(c);
}

void
task_gate_check(struct api_req *req, struct task_socket *s, void (*go_on)(struct api_req *))
{
	const struct api_backend *backend = req->sup->api->backend;
	struct task_gate *g = gate_of(s);
	const char *token = str(api_token(req));
	const struct known *known = find_known(g, token);
	struct check *c;

	if (known && !is_fresh(known))
		known = NULL;
	if (known && known->r == 0) {
		go_on(req);
		return;
	}
	/* Each refusal, and each look-up until its result, counts. */
	if (!use_refusal(g)) {
		refuse(req, 429, "too many requests of this task had no valid token");
	} else if (!*token) {
		refuse(req, 401, "Unauthorized");
	} else if (known) {
		answer(req, known->r, go_on);
	} else if (strlen(token) > TOKEN_MAX || !backend->authenticate) {
		refuse(req, 403, "Forbidden");
	} else {
		c = mem_new(struct check);
		*c = (struct check){ req, go_on, mem_strdup(token) };
		backend->authenticate(req->sup, token, api_task(req), on_checked, c);
	}
}
