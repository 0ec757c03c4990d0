// SPDX-License-Identifier: Apache-2.0
/* chk_ask.c: sends one HTTPS request. The server is not trusted. Runs in: check-helper. */
#include "check-helper/chk_ask.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check-helper/chk_trust.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/tls.h"

#define READ_SIZE 16384
#define READS_MAX 4 /* bytes read in one turn */

/* The first byte of a TLS record: an alert or a handshake. */
#define TLS_ALERT     0x15
#define TLS_HANDSHAKE 0x16

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static socklen_t
fill_address(union address *a, const ChkHttpsAskReq *req)
{
	memset(a, 0, sizeof *a);
	if (req->address.len == sizeof a->in.sin_addr) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons((uint16_t)req->port);
		memcpy(&a->in.sin_addr, req->address.data, sizeof a->in.sin_addr);
		return sizeof a->in;
	}
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons((uint16_t)req->port);
	memcpy(&a->in6.sin6_addr, req->address.data, sizeof a->in6.sin6_addr);
	return sizeof a->in6;
}

/* Without a name OpenSSL would accept a certificate for any name. */
static bool
is_sane(const ChkHttpsAskReq *req)
{
	return (req->address.len == sizeof(struct in_addr) ||
		   req->address.len == sizeof(struct in6_addr)) &&
	       req->port > 0 && req->port <= UINT16_MAX && req->timeout_ms > 0 &&
	       req->request.len > 0 && req->server_name[0] &&
	       strlen(req->server_name) < sizeof((struct chk_ask *)NULL)->server_name;
}

/* An immediate failure is reported by the first chk_ask_go(). */
static int
dial(struct chk_ask *a, const ChkHttpsAskReq *req, struct err *e)
{
	union address to;
	socklen_t len = fill_address(&to, req);

	a->fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return err_set(e, -errno, "make a socket");
	if (connect(a->fd, &to.sa, len) < 0 && errno != EINPROGRESS)
		a->dial_error = errno;
	return 0;
}

void
chk_ask_free(struct chk_ask *a)
{
	if (a->ssl)
		tls_end(a->ssl, false);
	close_p(&a->fd);
	free(a);
}

int
chk_ask_new(const ChkHttpsAskReq *req, uint32_t serial, uint64_t now_ms, struct chk_ask **ret,
    struct err *e)
{
	struct chk_ask *a;

	if (!is_sane(req))
		return err_say(e, -EINVAL,
		    "the request of an https check has no address, no name or no timeout");
	a = mem_zeroed(1, sizeof *a + req->request.len);
	a->serial = serial;
	a->events = POLLOUT;
	a->deadline_ms = now_ms + req->timeout_ms;
	a->step = CHK_STEP__CHK_STEP_CONNECT;
	a->skip_verify = req->skip_verify;
	(void)strcpy(a->server_name, req->server_name);
	a->request_len = req->request.len;
	memcpy(a->request, req->request.data, a->request_len);
	http_answer_init(&a->answer, req->no_body);
	if (dial(a, req, e) < 0) {
		chk_ask_free(a);
		return e->code;
	}
	*ret = a;
	return 0;
}

static int
connected(struct chk_ask *a, struct chk_trust *trust, struct err *e)
{
	struct ssl_ctx_st *ctx;
	socklen_t len = sizeof a->dial_error;

	if (!a->dial_error)
		(void)getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &a->dial_error, &len);
	if (a->dial_error)
		return -a->dial_error;
	a->step = CHK_STEP__CHK_STEP_SHAKE;
	ctx = chk_trust_context(trust, a->skip_verify, e);
	if (!ctx)
		return -ENOENT;
	a->ssl = tls_begin(ctx, a->fd, a->server_name);
	return a->ssl ? 0 : err_set(e, -ENOMEM, "begin TLS");
}

/* For a plain HTTP server OpenSSL would report "wrong version number". */
static int
hear(struct chk_ask *a, struct err *e)
{
	unsigned char first;

	if (recv(a->fd, &first, 1, MSG_PEEK) != 1)
		return 0;
	a->heard = true;
	if (first == TLS_ALERT || first == TLS_HANDSHAKE)
		return 0;
	return err_say(e, -EPROTO, "the server does not speak TLS");
}

/* Returns 1 if done, 0 if it has to wait, or -errno with *e. */
static int
shake(struct chk_ask *a, struct err *e)
{
	int r = a->heard ? 0 : hear(a, e);

	if (r == 0)
		r = tls_shake(a->ssl, &a->events, e);
	if (r > 0)
		a->step = CHK_STEP__CHK_STEP_ANSWER;
	return r;
}

static int
send_some(struct chk_ask *a, struct err *e)
{
	ssize_t n = tls_write(a->ssl, a->request + a->sent, a->request_len - a->sent, e);

	if (n > 0)
		a->sent += (size_t)n;
	a->events = a->sent < a->request_len ? POLLOUT : POLLIN;
	return n == -EAGAIN ? 0 : n == 0 ? err_say(e, -EPIPE, "EOF") : n > 0 ? 1 : (int)n;
}

/* A check does not care whether the peer closed the connection properly. */
static int
read_some(struct chk_ask *a, struct err *e)
{
	static char buf[READ_SIZE];
	struct err cut = { 0 };

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = tls_read(a->ssl, buf, sizeof buf, &cut);
		int r;

		if (n == -EAGAIN)
			return 0;
		r = n > 0 ? http_answer_feed(&a->answer, buf, (size_t)n, e)
			  : http_answer_end(&a->answer, e);
		if (r < 0 && n < 0)
			*e = cut;
		if (r != 0)
			return r;
	}
	return 0;
}

static int
continue_ask(struct chk_ask *a, struct chk_trust *trust, struct err *e)
{
	int r = 0;

	if (a->step == CHK_STEP__CHK_STEP_CONNECT)
		r = connected(a, trust, e);
	if (r == 0 && a->step == CHK_STEP__CHK_STEP_SHAKE)
		r = shake(a, e);
	while (r >= 0 && a->step == CHK_STEP__CHK_STEP_ANSWER && a->sent < a->request_len) {
		r = send_some(a, e);
		if (r == 0)
			return 0;
	}
	if (r >= 0 && a->step == CHK_STEP__CHK_STEP_ANSWER)
		r = read_some(a, e);
	return r;
}

bool
chk_ask_go(struct chk_ask *a, struct chk_trust *trust, ChkHttpsAskRep *rep, struct err *e)
{
	int r = continue_ask(a, trust, e);

	if (r == 0)
		return false;
	if (r < 0) {
		rep->step = a->step;
		rep->number = (uint32_t)a->dial_error;
		rep->error = e->msg;
		return true;
	}
	rep->status = (uint32_t)a->answer.status;
	rep->location.data = (uint8_t *)a->answer.location;
	rep->location.len = strlen(a->answer.location);
	rep->body.data = (uint8_t *)a->answer.body;
	rep->body.len = a->answer.body_len;
	return true;
}

void
chk_ask_expire(struct chk_ask *a, ChkHttpsAskRep *rep)
{
	rep->step = a->step;
	rep->number = ETIMEDOUT;
}
