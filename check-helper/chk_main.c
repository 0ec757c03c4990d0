// SPDX-License-Identifier: Apache-2.0
/* chk_main.c: the check-helper, from its constant, and its loop, which sends the HTTPS requests of
 * the supervisor's checks, many at once. The process exists only while there are such checks, and
 * keeps no state between two requests. Runs in: check-helper. */
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "check-helper/chk_ask.h"
#include "check-helper/chk_filter.h"
#include "check-helper/chk_trust.h"
#include "common/cleanup.h"
#include "common/ipc_protobuf.h"
#include "common/clock.h"
#include "common/proc.h"
#include "common/tls.h"

#define HANG_S   60  /* a turn that takes this long ends the process, and a new one is started */
#define ASKS_MAX 256 /* the supervisor has at most this many https checks in progress */
#define CROWD    16  /* from this many requests at once, freed memory is returned to the kernel */

static struct chk_ask *asks[ASKS_MAX]; /* the first n_asks are in use */
static size_t n_asks, most_asks;       /* the maximum since the list was last empty */

static const struct proc_spec check_helper;

/* The check-helper reads nothing of the configuration. */
static int
prepare(void *state, const struct proc_args *args, struct err *e)
{
	(void)close(FD_CONFIG);
	chk_trust_open();
	return tls_load(e);
}

static void
take_out(size_t i)
{
	chk_ask_free(asks[i]);
	asks[i] = asks[--n_asks];
}

/* The alarm is off while sending, because the supervisor may be slow to read. */
static int
answer(const struct chk_ask *a, const ChkHttpsAskRep *rep, struct err *e)
{
	struct err none = { 0 };

	(void)alarm(0);
	return proc_answer(
	    &check_helper, CHK_HTTPS_ASK_REQ, a->serial, 0, &rep->base, -1, &none, e);
}

static int
chk_on_https_ask(const struct ipc_packet *p, struct err *e)
{
	const ChkHttpsAskReq *req = p->msg;
	struct err why = { 0 };
	int r;

	if (n_asks == ASKS_MAX)
		r = err_say(&why, -EAGAIN, "too many checks over https at once");
	else
		r = chk_ask_new(req, p->serial, clock_ms(), &asks[n_asks], &why);
	if (r < 0)
		return proc_answer(&check_helper, p->type, p->serial, r, NULL, -1, &why, e);
	if (++n_asks > most_asks)
		most_asks = n_asks;
	return 0;
}

static void
chk_on_https_cancel(const struct ipc_packet *p)
{
	const ChkHttpsCancelEv *ev = p->msg;

	for (size_t i = 0; i < n_asks; i++)
		if (asks[i]->serial == ev->ask) {
			take_out(i);
			return;
		}
}

static int
dispatch(const struct ipc_packet *p, struct err *e)
{
	switch (p->type) {
	case IPC_HELLO_REQ:
		return proc_answer_hello(&check_helper, p, e);
	case CHK_HTTPS_ASK_REQ:
		return chk_on_https_ask(p, e);
	case CHK_HTTPS_CANCEL_EV:
		chk_on_https_cancel(p);
		return 0;
	default:
		return err_say(e, -EPROTO, "%s has no handler", ipc_msg_info(p->type)->name);
	}
}

/* Returns 1 to continue, 0 if the supervisor is gone, or -errno with *e. */
static int
receive(struct err *e)
{
	static struct ipc_packet packet;
	int r = ipc_recv(FD_IPC, IPC_CHECK_HELPER, IPC_SUPERVISOR, &packet, 0, e);

	if (r <= 0)
		return r;
	r = dispatch(&packet, e);
	/* Headers of checks may contain secrets. */
	explicit_bzero(packet.arena, packet.arena_used);
	ipc_packet_done(&packet);
	return r < 0 ? r : 1;
}

/* Continues requests with events and ends those whose time is over. Goes backwards, because the
 * last entry replaces one that ends. */
static int
serve(const struct pollfd *fds, struct err *e)
{
	uint64_t now = clock_ms();
	int r = 0;

	for (size_t i = n_asks; i-- > 0 && r >= 0;) {
		ChkHttpsAskRep rep = CHK_HTTPS_ASK_REP__INIT;
		struct err why = { 0 };
		bool ended = fds[i].revents && chk_ask_go(asks[i], &rep, &why);

		if (!ended && now >= asks[i]->deadline_ms) {
			chk_ask_expire(asks[i], &rep);
			ended = true;
		}
		if (!ended)
			continue;
		r = answer(asks[i], &rep, e);
		take_out(i);
	}
	return r < 0 ? r : 1;
}

/* A handshake takes 60 KB, and the heap would keep the memory of a hundred of them. */
static void
tidy_up(void)
{
	if (n_asks > 0)
		return;
	if (most_asks > CROWD)
		(void)malloc_trim(0);
	most_asks = 0;
}

static int
next_timeout(void)
{
	uint64_t now = clock_ms(), next = now + HANG_S * 1000 / 2;

	for (size_t i = 0; i < n_asks; i++)
		if (asks[i]->deadline_ms < next)
			next = asks[i]->deadline_ms;
	return next > now ? (int)(next - now) : 0;
}

/* Runs one turn. Returns 1 to continue, 0 to end, or -errno with *e. */
static int
turn(struct err *e)
{
	struct pollfd fds[2 + ASKS_MAX] = { { .fd = FD_LINK, .events = POLLIN },
		{ .fd = FD_IPC, .events = POLLIN } };
	int r;

	tidy_up();
	for (size_t i = 0; i < n_asks; i++)
		fds[2 + i] = (struct pollfd){ .fd = asks[i]->fd, .events = asks[i]->events };
	(void)alarm(HANG_S);
	if (poll(fds, 2 + n_asks, next_timeout()) < 0)
		return errno == EINTR ? 1 : err_set(e, -errno, "poll");
	if (fds[0].revents) /* the link carries no data: any event on it means its end */
		return 0;
	r = serve(fds + 2, e);
	return r > 0 && fds[1].revents ? receive(e) : r;
}

static int
run(void *state, const struct proc_args *args)
{
	struct err e = { 0 };
	int r = 1;

	while (r > 0)
		r = turn(&e);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_error("%s", e.msg);
	return r < 0;
}

static const struct proc_spec check_helper = {
	.name = "check-helper",
	.peer = IPC_CHECK_HELPER,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &chk_prog,
	.init = prepare,
	.run = run,
};

int
main(int argc, char **argv)
{
	return proc_main(&check_helper, argc, argv);
}
