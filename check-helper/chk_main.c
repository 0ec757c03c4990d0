// SPDX-License-Identifier: Apache-2.0
/* chk_main.c: the check-helper, from its constant, and its loop, which sends the HTTPS requests of
 * the supervisor's checks, many at once. The process exists only while there are such checks, and
 * keeps no state between two requests. Runs in: check-helper. */
#include <errno.h>
#include <malloc.h>
#include <unistd.h>

#include "check-helper/chk_ask.h"
#include "check-helper/chk_filter.h"
#include "check-helper/chk_trust.h"
#include "common/clock.h"
#include "common/ipc_protobuf.h"
#include "common/proc_many.h"
#include "common/tls.h"

#define HANG_S   60
#define ASKS_MAX 256 /* the supervisor has at most this many https checks in progress */
#define CROWD    16  /* from this many requests at once, freed memory is returned to the kernel */

_Static_assert(ASKS_MAX <= PROC_FDS_MAX, "a turn has too few descriptors");

struct chk {
	struct chk_ask *asks[ASKS_MAX]; /* requests in progress */
	size_t n, most;                 /* most: the largest n since n was last 0 */
	struct chk_trust trust;
};

static struct chk chk;

static const struct proc_spec check_helper;

/* The check-helper reads nothing of the configuration. */
static int
open_files(void *state, const struct proc_args *args, struct err *e)
{
	struct chk *c = state;

	(void)close(FD_CONFIG);
	chk_trust_open(&c->trust);
	return tls_load(e);
}

static void
remove_ask(struct chk *c, size_t i)
{
	chk_ask_free(c->asks[i]);
	c->asks[i] = c->asks[--c->n];
}

/* The alarm is off while sending, because the supervisor may be slow to read. */
static int
answer_ask(const struct chk_ask *a, const ChkHttpsAskRep *rep, struct err *e)
{
	struct err none = { 0 };

	(void)alarm(0);
	return proc_answer(
	    &check_helper, CHK_HTTPS_ASK_REQ, a->serial, 0, &rep->base, -1, &none, e);
}

static int
chk_on_https_ask(struct chk *c, const struct ipc_packet *p, struct err *e)
{
	const ChkHttpsAskReq *req = p->msg;
	struct err why = { 0 };
	int r;

	if (c->n == ASKS_MAX)
		r = err_say(&why, -EAGAIN, "too many checks over https at once");
	else
		r = chk_ask_new(req, p->serial, clock_ms(), &c->asks[c->n], &why);
	if (r < 0)
		return proc_answer(&check_helper, p->type, p->serial, r, NULL, -1, &why, e);
	if (++c->n > c->most)
		c->most = c->n;
	return 0;
}

static void
chk_on_https_cancel(struct chk *c, const ChkHttpsCancelEv *ev)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->asks[i]->serial == ev->ask) {
			remove_ask(c, i);
			return;
		}
}

static int
handle_message(void *state, struct ipc_packet *p, struct err *e)
{
	switch (p->type) {
	case CHK_HTTPS_ASK_REQ:
		return chk_on_https_ask(state, p, e);
	case CHK_HTTPS_CANCEL_EV:
		chk_on_https_cancel(state, p->msg);
		return 0;
	default:
		return err_say(e, -EPROTO, "%s has no handler", ipc_msg_info(p->type)->name);
	}
}

/* Continues requests with events and ends those whose time is over. Goes backwards, because the
 * last entry replaces one that ends. */
static int
handle_events(void *state, const struct proc_turn *turn, struct err *e)
{
	struct chk *c = state;
	uint64_t now = clock_ms();
	int r = 0;

	for (size_t i = c->n; i-- > 0 && r >= 0;) {
		ChkHttpsAskRep rep = CHK_HTTPS_ASK_REP__INIT;
		struct err why = { 0 };
		bool ended = turn->fds[i].revents && chk_ask_go(c->asks[i], &c->trust, &rep, &why);

		if (!ended && now >= c->asks[i]->deadline_ms) {
			chk_ask_expire(c->asks[i], &rep);
			ended = true;
		}
		if (!ended)
			continue;
		r = answer_ask(c->asks[i], &rep, e);
		remove_ask(c, i);
	}
	return r < 0 ? r : 1;
}

/* A handshake takes 60 KB, and the heap would keep the memory of a hundred of them. */
static void
return_memory(struct chk *c)
{
	if (c->n > 0)
		return;
	if (c->most > CROWD)
		(void)malloc_trim(0);
	c->most = 0;
}

static int
prepare_turn(void *state, struct proc_turn *turn, struct err *e)
{
	struct chk *c = state;
	uint64_t now = clock_ms(), next = now + HANG_S * 1000;

	return_memory(c);
	for (size_t i = 0; i < c->n; i++) {
		turn->fds[i] =
		    (struct pollfd){ .fd = c->asks[i]->fd, .events = c->asks[i]->events };
		if (c->asks[i]->deadline_ms < next)
			next = c->asks[i]->deadline_ms;
	}
	turn->n = c->n;
	turn->timeout_ms = next > now ? (int)(next - now) : 0;
	return 1;
}

static const struct proc_many turns = {
	.spec = &check_helper,
	.hang_s = HANG_S,
	.prepare = prepare_turn,
	.ready = handle_events,
	.handle = handle_message,
};

static int
run_check_helper(void *state, const struct proc_args *args)
{
	return proc_serve_many(&turns, state);
}

static const struct proc_spec check_helper = {
	.name = "check-helper",
	.peer = IPC_CHECK_HELPER,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &chk_prog,
	.state = &chk,
	.init = open_files,
	.run = run_check_helper,
};

int
main(int argc, char **argv)
{
	proc_many_outlive_sigterm();
	return proc_main(&check_helper, argc, argv);
}
