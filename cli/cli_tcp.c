// SPDX-License-Identifier: Apache-2.0
/* cli_tcp.c: connections to an agent over TCP, with TLS. Runs in: cli, and its children. */
#include "cli/cli_tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/tls.h"

#define CONNECT_MS   10000 /* for each address, and again for the handshake */
#define DEFAULT_PORT "4646"
#define SYSTEM_CAS   "/etc/ssl/certs/ca-certificates.crt"
#define BLOCK        (16 * 1024)
#define FORM         "https://host:port, http://host:port or unix:///path/of/the/socket"

struct cli_tls cli_tls;

static void
take_variable(const char **at, const char *drover, const char *nomad)
{
	const char *value = getenv(drover);

	if (!value || !*value)
		value = getenv(nomad);
	if ((!*at || !**at) && value && *value)
		*at = value;
}

void
cli_tls_from_environment(void)
{
	take_variable(&cli_tls.ca_cert, "DROVER_CACERT", "NOMAD_CACERT");
	take_variable(&cli_tls.client_cert, "DROVER_CLIENT_CERT", "NOMAD_CLIENT_CERT");
	take_variable(&cli_tls.client_key, "DROVER_CLIENT_KEY", "NOMAD_CLIENT_KEY");
	take_variable(&cli_tls.server_name, "DROVER_TLS_SERVER_NAME", "NOMAD_TLS_SERVER_NAME");
}

static bool
is_https(const char *address)
{
	return strncmp(address, "https://", 8) == 0;
}

bool
cli_is_tcp(const char *address)
{
	return is_https(address) || strncmp(address, "http://", 7) == 0;
}

/* --- TCP --- */

struct place {
	char host[256], port[8];
};

/* Splits "host:port", "host" or "[host]:port", with or without a slash at the end. */
static int
split(const char *address, struct place *ret, struct err *e)
{
	const char *host = strstr(address, "://") + 3, *end, *port = DEFAULT_PORT;
	bool bracketed = *host == '[';
	size_t port_len;

	end = bracketed ? strchrnul(++host, ']') : host + strcspn(host, ":/");
	if (end == host || (size_t)(end - host) >= sizeof ret->host || (bracketed && !*end))
		goto invalid;
	(void)snprintf(ret->host, sizeof ret->host, "%.*s", (int)(end - host), host);
	end += bracketed;
	if (*end == ':')
		port = end + 1;
	port_len = strspn(port, "0123456789");
	if (port_len == 0 || port_len > 5)
		goto invalid;
	(void)snprintf(ret->port, sizeof ret->port, "%.*s", (int)port_len, port);
	if (*end == ':')
		end += 1 + port_len;
	if (*end == '\0' || strcmp(end, "/") == 0)
		return 0;
invalid:
	return err_say(e, -EINVAL, "the address \"%s\" is not of the form " FORM, address);
}

static int
wait_for(int fd, short events, uint64_t deadline_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now = clock_ms();
	int r = poll(&p, 1, now < deadline_ms ? (int)(deadline_ms - now) : 0);

	return r > 0 ? 0 : r == 0 ? -ETIMEDOUT : -errno;
}

/* Returns a descriptor that does not block, or -errno. */
static int
connect_one(const struct addrinfo *at)
{
	cleanup_close int fd =
	    socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
	socklen_t len = sizeof(int);
	int failed = 0, r;

	if (fd < 0)
		return -errno;
	if (connect(fd, at->ai_addr, at->ai_addrlen) < 0 && errno != EINPROGRESS)
		return -errno;
	r = wait_for(fd, POLLOUT, clock_ms() + CONNECT_MS);
	if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) == 0 && failed)
		r = -failed;
	return r < 0 ? r : steal_fd(&fd);
}

static int
connect_any(const char *address, const struct place *place, struct err *e)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int r = getaddrinfo(place->host, place->port, &hints, &found);

	if (r != 0)
		return err_say(e, -EHOSTUNREACH, "look up %s: %s", place->host, gai_strerror(r));
	r = -EHOSTUNREACH;
	for (const struct addrinfo *at = found; at && r < 0; at = at->ai_next)
		r = connect_one(at);
	freeaddrinfo(found);
	return r < 0 ? err_set(e, r, "connect to %s", address) : r;
}

/* --- TLS --- */

static int
open_file(const char *path, const char *what, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_say(e, -EIO, "open %s, %s: %s", path, what, strerrordesc_np(errno))
		      : fd;
}

static struct ssl_ctx_st *
make_context(struct err *e)
{
	const char *ca = cli_tls.ca_cert ?: SYSTEM_CAS;
	cleanup_close int ca_fd = open_file(ca, "the certificate of -ca-cert", e), cert_fd = -1,
			  key_fd = -1;
	struct ssl_ctx_st *ctx;

	if (ca_fd < 0 || tls_load(e) < 0)
		return NULL;
	ctx = tls_new(ca_fd, ca, e);
	if (!ctx || !cli_tls.client_cert)
		return ctx;
	cert_fd = open_file(cli_tls.client_cert, "the certificate of -client-cert", e);
	if (cert_fd >= 0)
		key_fd = open_file(
		    cli_tls.client_key ?: cli_tls.client_cert, "the key of -client-key", e);
	if (key_fd >= 0 && tls_identify(ctx, cert_fd, key_fd, "client", e) == 0)
		return ctx;
	tls_free(ctx);
	return NULL;
}

static int
shake(struct ssl_st *ssl, int fd, const char *address, struct err *e)
{
	uint64_t deadline_ms = clock_ms() + CONNECT_MS;
	short events = POLLIN;
	int r;

	while ((r = tls_shake(ssl, &events, e)) == 0)
		if ((r = wait_for(fd, events, deadline_ms)) < 0)
			return err_set(e, r, "TLS handshake with %s", address);
	return r < 0 ? err_prefix(e, "%s", address) : 0;
}

/* One direction of the relay. */
struct stream {
	char data[BLOCK];
	size_t len;
	bool begun, ended;
};

/* Adds what n says was read. Returns whether something has changed. */
static bool
take(struct stream *s, ssize_t n)
{
	if (n == -EAGAIN)
		return false;
	s->ended = n <= 0;
	s->len += n > 0 ? (size_t)n : 0;
	return true;
}

static bool
drop(struct stream *s, ssize_t n)
{
	if (n == -EAGAIN)
		return false;
	if (n <= 0)
		_exit(1);
	s->len -= (size_t)n;
	memmove(s->data, s->data + n, s->len);
	return true;
}

/* A request that the agent no longer reads is discarded; its answer is still read. */
static bool
drop_sent(struct stream *up, ssize_t n)
{
	return drop(up, n == -EAGAIN || n > 0 ? n : (ssize_t)up->len);
}

static ssize_t
result(ssize_t n)
{
	return n < 0 ? -errno : n;
}

/* With TLS 1.3 the agent refuses a certificate after the handshake. The command reads the reason as
 * if it were an answer. */
static void
answer_instead(struct stream *down, const char *why)
{
	char text[ERR_MSG_SIZE + 128];
	int n = snprintf(text, sizeof text,
	    "the agent ended the connection (%s): does it accept the certificate of -client-cert?",
	    why);

	down->len = (size_t)snprintf(down->data, sizeof down->data,
	    "HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n%s", n, text);
}

static bool
receive_down(struct ssl_st *ssl, struct stream *down)
{
	struct err e = { 0 };
	ssize_t n = tls_read(ssl, down->data + down->len, BLOCK - down->len, &e);

	if (n > 0)
		down->begun = true;
	if (n < 0 && n != -EAGAIN && !down->begun)
		answer_instead(down, e.msg);
	return take(down, n);
}

static bool
move(struct ssl_st *ssl, int local, struct stream *up, struct stream *down)
{
	struct err e = { 0 };
	bool moved = false;

	if (up->len < BLOCK && !up->ended)
		moved |= take(
		    up, result(recv(local, up->data + up->len, BLOCK - up->len, MSG_DONTWAIT)));
	if (down->len < BLOCK && !down->ended)
		moved |= receive_down(ssl, down);
	if (up->len > 0 && !down->ended)
		moved |= drop_sent(up, tls_write(ssl, up->data, up->len, &e));
	if (down->len > 0)
		moved |= drop(
		    down, result(send(local, down->data, down->len, MSG_NOSIGNAL | MSG_DONTWAIT)));
	return moved;
}

/* Passes bytes on until the command has closed its end, or everything from the agent is passed on.
 */
static void __attribute__((noreturn)) relay(struct ssl_st *ssl, int tcp, int local)
{
	static struct stream up, down;

	for (;;) {
		struct pollfd p[2];

		if (move(ssl, local, &up, &down))
			continue;
		if (up.ended || (down.ended && down.len == 0))
			break;
		p[0] = (struct pollfd){ .fd = local,
			.events =
			    (short)((up.len < BLOCK ? POLLIN : 0) | (down.len ? POLLOUT : 0)) };
		p[1] = (struct pollfd){ .fd = tcp,
			.events =
			    (short)((down.len < BLOCK ? POLLIN : 0) | (up.len ? POLLOUT : 0)) };
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
	}
	tls_end(ssl, true);
	_exit(0);
}

/* The relay is a grandchild, which init reaps: the command never waits for it. Signals of the
 * terminal are for the command, whose end also ends the relay. */
static int
start_relay(struct ssl_st *ssl, int tcp, struct err *e)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "make a socket pair");
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (fork() != 0)
			_exit(0);
		(void)signal(SIGPIPE, SIG_IGN);
		(void)setsid();
		(void)close(ends[0]);
		for (int fd = 0; fd < 3; fd++) /* a reader of the output must see its end */
			(void)close(fd);
		relay(ssl, tcp, ends[1]);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return err_set(e, -errno, "fork");
	}
	(void)waitpid(pid, NULL, 0);
	return ends[0];
}

static int
begin_tls(int tcp, const struct place *place, const char *address, struct err *e)
{
	struct ssl_ctx_st *ctx = make_context(e);
	struct ssl_st *ssl;
	int r;

	if (!ctx)
		return e->code;
	ssl = tls_begin(ctx, tcp, cli_tls.server_name ?: place->host);
	r = ssl ? shake(ssl, tcp, address, e) : err_say(e, -ENOMEM, "begin TLS");
	if (r == 0)
		r = start_relay(ssl, tcp, e);
	if (ssl)
		tls_end(ssl, false);
	tls_free(ctx);
	return r;
}

int
cli_tcp_connect(const char *address, struct err *e)
{
	cleanup_close int tcp = -1;
	struct place place;
	int r = split(address, &place, e);

	if (r < 0)
		return r;
	tcp = connect_any(address, &place, e);
	if (tcp < 0)
		return tcp;
	if (is_https(address))
		return begin_tls(tcp, &place, address, e);
	r = fd_set_nonblock(tcp, false);
	return r < 0 ? err_set(e, r, "connect to %s", address) : steal_fd(&tcp);
}
