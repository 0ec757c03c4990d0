// SPDX-License-Identifier: Apache-2.0
/* check_probe.c: one try of one check, as events of the work loop, or over TLS by check-helper.
 * Runs in: supervisor. */
#include "supervisor/service/check_probe.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/service/check_tls.h"

#define REDIRECTS_MAX 10
#define READ_SIZE     16384

enum probe_step { PROBE_CONNECT, PROBE_SEND, PROBE_READ, PROBE_TLS };

/* The number of probes in progress: [0] without TLS, [1] over TLS. */
struct check_probes {
	unsigned n[2];
};

struct check_probe {
	struct sup *sup;
	const struct check_spec *spec;
	bool over_tls; /* counts as such: from its beginning, or since a redirect */
	check_probe_cb *cb;
	void *arg;
	enum probe_step step;
	int fd;
	struct sd_event_source *io;
	uint64_t call; /* to check-helper; 0: none */
	uint64_t deadline_usec;
	int64_t timeout_ns;
	struct http_target target;
	const char *method;
	bool with_body;
	unsigned redirects;
	struct text request;
	size_t sent;
	struct http_answer answer;
};

static void
hang_up(struct check_probe *p)
{
	p->io = sd_event_source_disable_unref(p->io);
	close_p(&p->fd);
	check_tls_cancel(p->sup, p->call);
	p->call = 0;
	text_done(&p->request);
	p->sent = 0;
}

void
check_probes_new(struct sup *sup)
{
	sup->check_probes = mem_new(struct check_probes);
}

void
check_probes_free(struct sup *sup)
{
	free_p(&sup->check_probes);
}

bool
check_probe_may_start(struct sup *sup, bool over_tls)
{
	return sup->check_probes->n[over_tls] <
	       (over_tls ? CHECK_TLS_PROBES_MAX : CHECK_PROBES_MAX);
}

void
check_probe_free(struct check_probe *p)
{
	if (!p)
		return;
	hang_up(p);
	p->sup->check_probes->n[p->over_tls]--;
	free(p);
}

static void
end_probe(struct check_probe *p, const struct check_outcome *outcome)
{
	check_probe_cb *cb = p->cb;
	void *arg = p->arg;

	hang_up(p);
	cb(arg, outcome);
	check_probe_free(p);
}

static void
end_with(struct check_probe *p, bool passed, int status, const char *output)
{
	const struct check_outcome outcome = {
		.passed = passed, .status = status, .output = output, .over_tls = p->over_tls
	};

	end_probe(p, &outcome);
}

/* For http the request is put before the sentence. */
static void
fail_probe(struct check_probe *p, const char *why)
{
	char addr[CHECK_ADDR_SIZE], text[HTTP_TARGET_MAX + ERR_MSG_SIZE + 64];

	check_addr_format(&p->target.addr, addr);
	if (p->spec->http)
		(void)snprintf(text, sizeof text, "nomad: %s \"http%s://%s%s\": %s", p->method,
		    p->target.tls ? "s" : "", addr, p->target.path, why);
	else
		(void)snprintf(text, sizeof text, "%s", why);
	end_with(p, false, 0, text);
}

static void
fail_dial(struct check_probe *p, const char *what, int error)
{
	char addr[CHECK_ADDR_SIZE], text[200], reason[100];

	check_addr_format(&p->target.addr, addr);
	(void)snprintf(reason, sizeof reason, "%s", strerror(error));
	reason[0] = (char)tolower((unsigned char)reason[0]);
	(void)snprintf(text, sizeof text, "dial tcp %s: %s: %s", addr, what, reason);
	fail_probe(p, text);
}

/* at: "", or what the probe was doing. */
static void
fail_late(struct check_probe *p, enum probe_step step, const char *at)
{
	char addr[CHECK_ADDR_SIZE], timeout[DURATION_SIZE], text[200];

	check_addr_format(&p->target.addr, addr);
	duration_format(p->timeout_ns, timeout);
	if (step == PROBE_CONNECT)
		(void)snprintf(text, sizeof text, "dial tcp %s: i/o timeout", addr);
	else
		(void)snprintf(
		    text, sizeof text, "%sno answer within the timeout of %s", at, timeout);
	fail_probe(p, text);
}

void
check_probe_expire(struct check_probe *p)
{
	fail_late(p, p->step, "");
}

/* Returns true if the socket is connected to itself: the kernel may have chosen the checked port as
 * its local port. */
static bool
is_own_socket(int fd)
{
	union check_addr here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof here, there_len = sizeof there;

	return getsockname(fd, &here.sa, &here_len) == 0 &&
	       getpeername(fd, &there.sa, &there_len) == 0 && here_len == there_len &&
	       memcmp(&here, &there, here_len) == 0;
}

/* Returns true after a redirect to another address, to which the check's host and server name do
 * not apply. */
static bool
is_moved(const struct check_probe *p)
{
	return memcmp(&p->target.addr, &p->spec->addr, sizeof p->target.addr) != 0;
}

static void
make_request(struct check_probe *p)
{
	char addr[CHECK_ADDR_SIZE];
	const struct check_spec *s = p->spec;
	const char *body = p->with_body ? s->body : "";

	check_addr_format(&p->target.addr, addr);
	text_printf(&p->request, "%s %s HTTP/1.1\r\nHost: %s\r\n", p->method, p->target.path,
	    s->host && !is_moved(p) ? s->host : addr);
	if (!s->has_agent)
		text_printf(&p->request, "User-Agent: drover/%s\r\n", DROVER_VERSION);
	text_append(&p->request, s->headers, strlen(s->headers));
	if (*body)
		text_printf(&p->request, "Content-Length: %zu\r\n", strlen(body));
	text_printf(&p->request, "Connection: close\r\n\r\n");
	text_append(&p->request, body, strlen(body));
}

static void connect_now(struct check_probe *p);

/* Follows a redirect. Returns false if the answer is none. */
static bool
follow_redirect(struct check_probe *p)
{
	char location[HTTP_TARGET_MAX];
	int status = p->answer.status;
	struct err e = { 0 };

	if (!p->answer.location[0] ||
	    (status != 301 && status != 302 && status != 303 && status != 307 && status != 308))
		return false;
	(void)snprintf(location, sizeof location, "%s", p->answer.location);
	hang_up(p);
	if (++p->redirects > REDIRECTS_MAX) {
		fail_probe(p, "stopped after 10 redirects");
		return true;
	}
	if (http_target_follow(&p->target, location, &e) < 0) {
		fail_probe(p, e.msg);
		return true;
	}
	if (status < 307) {
		p->with_body = false;
		if (strcmp(p->method, "HEAD") != 0)
			p->method = "GET";
	}
	connect_now(p);
	return true;
}

static void
take_answer(struct check_probe *p)
{
	int status = p->answer.status;
	char body[HTTP_BODY_KEPT + 1];

	if (follow_redirect(p))
		return;
	(void)memcpy(body, p->answer.body, p->answer.body_len);
	body[p->answer.body_len] = '\0';
	if (status >= 400 && !body[0]) /* messages about the failure need some text */
		(void)snprintf(body, sizeof body, "HTTP status %d", status);
	end_with(p, status < 400, status, status == 200 ? "nomad: http ok" : body);
}

static void
read_some(struct check_probe *p)
{
	char buf[READ_SIZE];
	struct err e = { 0 };
	ssize_t n = recv(p->fd, buf, sizeof buf, 0);
	int r;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		char text[100];

		(void)snprintf(text, sizeof text, "read: %s", strerror(errno));
		fail_probe(p, text);
		return;
	}
	r = n == 0 ? http_answer_end(&p->answer, &e)
		   : http_answer_feed(&p->answer, buf, (size_t)n, &e);
	if (r < 0)
		fail_probe(p, e.msg);
	else if (r > 0)
		take_answer(p);
}

static void
send_some(struct check_probe *p)
{
	ssize_t n = send(p->fd, p->request.text + p->sent, p->request.len - p->sent, MSG_NOSIGNAL);

	if (n >= 0)
		p->sent += (size_t)n;
	/* A peer that closed the connection early may have sent an answer. */
	else if (errno != EAGAIN && errno != EINTR)
		p->sent = p->request.len;
	if (p->sent < p->request.len)
		return;
	p->step = PROBE_READ;
	(void)sd_event_source_set_io_events(p->io, EPOLLIN);
}

static void
on_tls_answer(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const ChkHttpsAskRep *rep = msg;
	struct check_probe *p = arg;
	struct err why = { 0 };

	p->call = 0;
	if (r == -ECONNRESET)
		fail_probe(p, "check-helper, which makes requests over TLS, has ended; the next "
			      "try uses a new one");
	else if (r < 0)
		fail_probe(p, e->msg);
	else if (rep->step == CHK_STEP__CHK_STEP_CONNECT && rep->number != ETIMEDOUT)
		fail_dial(p, "connect", (int)rep->number);
	else if (rep->number == ETIMEDOUT)
		fail_late(p, rep->step == CHK_STEP__CHK_STEP_CONNECT ? PROBE_CONNECT : PROBE_TLS,
		    rep->step == CHK_STEP__CHK_STEP_SHAKE ? "TLS handshake: " : "");
	else if (check_tls_take(rep, &p->answer, &why) < 0)
		fail_probe(p, why.msg);
	else
		take_answer(p);
}

static void
ask_tls(struct check_probe *p)
{
	bool moved = is_moved(p);
	struct check_tls_question q = {
		.addr = &p->target.addr,
		.server_name = moved ? NULL : p->spec->server_name,
		.skip_verify = p->spec->skip_verify,
		.no_body = strcmp(p->method, "HEAD") == 0,
		.request = &p->request,
		.deadline_usec = p->deadline_usec,
	};
	struct err e = { 0 };

	p->step = PROBE_TLS;
	make_request(p);
	if (check_tls_ask(p->sup, &q, on_tls_answer, p, &p->call, &e) < 0)
		fail_probe(p, e.msg);
}

static void
on_connected(struct check_probe *p)
{
	int error = 0;
	socklen_t len = sizeof error;

	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0 &&
	    is_own_socket(p->fd))
		error = ECONNREFUSED;
	if (error) {
		fail_dial(p, "connect", error);
		return;
	}
	if (!p->spec->http) {
		end_with(p, true, 0, "nomad: tcp ok");
		return;
	}
	http_answer_init(&p->answer, strcmp(p->method, "HEAD") == 0);
	make_request(p);
	p->step = PROBE_SEND;
	send_some(p);
}

static int
on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct check_probe *p = userdata;

	if (p->step == PROBE_CONNECT)
		on_connected(p);
	else if (revents & EPOLLIN || p->step == PROBE_READ)
		read_some(p);
	else
		send_some(p);
	return 0;
}

/* Counts a probe that began without TLS as one over TLS. Returns false if there are too many. */
static bool
count_as_tls(struct check_probe *p)
{
	if (p->over_tls)
		return true;
	if (!check_probe_may_start(p->sup, true))
		return false;
	p->sup->check_probes->n[false]--;
	p->sup->check_probes->n[true]++;
	p->over_tls = true;
	return true;
}

static void
connect_now(struct check_probe *p)
{
	const struct check_outcome later = { .output = "", .over_tls = true, .later = true };

	if (p->target.tls && !count_as_tls(p)) {
		end_probe(p, &later);
		return;
	}
	if (p->target.tls) {
		ask_tls(p);
		return;
	}
	p->step = PROBE_CONNECT;
	p->fd = socket(p->target.addr.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0) {
		fail_dial(p, "socket", errno);
		return;
	}
	if (connect(p->fd, &p->target.addr.sa, check_addr_len(&p->target.addr)) < 0 &&
	    errno != EINPROGRESS) {
		fail_dial(p, "connect", errno);
		return;
	}
	if (sd_event_add_io(p->sup->event, &p->io, p->fd, EPOLLIN | EPOLLOUT, on_io, p) < 0)
		fail_probe(p, "the connection cannot be watched");
}

void
check_probe_start(struct sup *sup, const struct check_spec *spec, bool over_tls, int64_t timeout_ns,
    check_probe_cb *cb, void *arg, struct check_probe **ret)
{
	struct check_probe *p = mem_new(struct check_probe);
	struct err e = { 0 };

	p->sup = sup;
	p->spec = spec;
	p->over_tls = over_tls;
	p->cb = cb;
	p->arg = arg;
	p->fd = -1;
	p->timeout_ns = timeout_ns;
	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &p->deadline_usec);
	p->deadline_usec += (uint64_t)timeout_ns / 1000;
	p->target.addr = spec->addr;
	p->target.tls = spec->tls;
	p->method = spec->http ? spec->method : "";
	p->with_body = true;
	sup->check_probes->n[over_tls]++;
	*ret = p;
	if (spec->http && http_target_set_path(&p->target, spec->path, &e) < 0)
		fail_probe(p, e.msg);
	else
		connect_now(p);
}
