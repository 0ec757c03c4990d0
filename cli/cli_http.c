// SPDX-License-Identifier: Apache-2.0
/* cli_http.c: an HTTP/1.1 client over a unix socket, one request per connection. Runs in: cli. */
#include "cli/cli_http.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"

#define HEADERS_MAX 200

static int
refuse_answer(struct err *e, const char *what)
{
	return err_say(e, -EPROTO, "the agent's answer is not HTTP: %s", what);
}

/* Digits only, in this base, and nothing after them. */
static int
parse_number(const char *text, int base, uint64_t *ret)
{
	char *end;

	if (*text == '\0' ||
	    strspn(text, base == 16 ? "0123456789abcdefABCDEF" : "0123456789") != strlen(text))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return errno ? -ERANGE : 0;
}

static int
on_status_line(struct cli_http_parser *p, const char *line, struct err *e)
{
	uint64_t status;
	char digits[4];

	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return refuse_answer(e, "it does not start with HTTP/1.1");
	(void)snprintf(digits, sizeof digits, "%.3s", line + 9);
	if (strlen(digits) != 3 || (line[12] != ' ' && line[12] != '\0') ||
	    parse_number(digits, 10, &status) < 0 || status < 100 || status > 599)
		return refuse_answer(e, "it has no status code");
	p->status_seen = (int)status;
	p->chunked = p->has_length = false;
	p->n_headers = 0;
	p->state = CLI_HTTP_HEADERS;
	return 0;
}

static int
take_length(struct cli_http_parser *p, const char *value, struct err *e)
{
	uint64_t length;

	if (parse_number(value, 10, &length) < 0 || (p->has_length && length != p->length))
		return refuse_answer(e, "its Content-Length is not a number");
	p->has_length = true;
	p->length = length;
	return 0;
}

static void
enter_body(struct cli_http_parser *p)
{
	/* Informational answers such as 100 Continue precede the final one. */
	if (p->status_seen < 200) {
		p->state = CLI_HTTP_STATUS_LINE;
		return;
	}
	p->status = p->status_seen;
	p->left = p->length;
	if (p->status == 204 || p->status == 304)
		p->state = CLI_HTTP_DONE;
	else if (p->chunked)
		p->state = CLI_HTTP_CHUNK_SIZE;
	else if (!p->has_length)
		p->state = CLI_HTTP_BODY_EOF;
	else
		p->state = p->left ? CLI_HTTP_BODY : CLI_HTTP_DONE;
}

static int
on_header(struct cli_http_parser *p, char *line, struct err *e)
{
	char *value = strchr(line, ':');

	if (*line == '\0') {
		enter_body(p);
		return 0;
	}
	if (++p->n_headers > HEADERS_MAX)
		return refuse_answer(e, "it has too many headers");
	if (!value || value == line)
		return refuse_answer(e, "a header has no name");
	*value++ = '\0';
	value += strspn(value, " \t");
	for (size_t n = strlen(value); n && (value[n - 1] == ' ' || value[n - 1] == '\t'); n--)
		value[n - 1] = '\0';
	if (strcasecmp(line, "Content-Length") == 0)
		return take_length(p, value, e);
	if (strcasecmp(line, "X-Nomad-NextToken") == 0 && strlen(value) < sizeof p->next_token)
		(void)strcpy(p->next_token, value);
	if (strcasecmp(line, "Transfer-Encoding") == 0) {
		if (strcasecmp(value, "chunked") != 0)
			return refuse_answer(e, "its Transfer-Encoding is not supported");
		p->chunked = true;
	}
	return 0;
}

static int
on_chunk_size(struct cli_http_parser *p, char *line, struct err *e)
{
	line[strcspn(line, "; \t")] = '\0';
	if (parse_number(line, 16, &p->left) < 0)
		return refuse_answer(e, "a chunk has no size");
	p->state = p->left ? CLI_HTTP_CHUNK : CLI_HTTP_TRAILERS;
	return 0;
}

static int
on_line(struct cli_http_parser *p, char *line, struct err *e)
{
	switch (p->state) {
	case CLI_HTTP_STATUS_LINE:
		return on_status_line(p, line, e);
	case CLI_HTTP_HEADERS:
		return on_header(p, line, e);
	case CLI_HTTP_CHUNK_SIZE:
		return on_chunk_size(p, line, e);
	case CLI_HTTP_CHUNK_END:
		if (*line)
			return refuse_answer(e, "a chunk is longer than its size");
		p->state = CLI_HTTP_CHUNK_SIZE;
		return 0;
	default: /* CLI_HTTP_TRAILERS: trailers are skipped */
		if (*line == '\0')
			p->state = CLI_HTTP_DONE;
		else if (++p->n_headers > HEADERS_MAX)
			return refuse_answer(e, "it has too many trailers");
		return 0;
	}
}

/* Takes bytes up to the end of a line. Returns how many, or a negative errno. */
static ssize_t
feed_line(struct cli_http_parser *p, const char *data, size_t len, struct err *e)
{
	const char *end = memchr(data, '\n', len);
	size_t n = end ? (size_t)(end - data) : len;
	int r;

	if (n >= sizeof p->line - p->line_len)
		return refuse_answer(e, "a line is too long");
	if (memchr(data, '\0', n))
		return refuse_answer(e, "a line holds a NUL");
	memcpy(p->line + p->line_len, data, n);
	p->line_len += n;
	if (!end)
		return (ssize_t)n;
	if (p->line_len && p->line[p->line_len - 1] == '\r')
		p->line_len--;
	p->line[p->line_len] = '\0';
	p->line_len = 0;
	r = on_line(p, p->line, e);
	return r < 0 ? r : (ssize_t)n + 1;
}

static ssize_t
feed_body(struct cli_http_parser *p, const char *data, size_t len, struct err *e)
{
	int r;

	if (p->state != CLI_HTTP_BODY_EOF && len > p->left)
		len = (size_t)p->left;
	r = p->on_body(p->arg, data, len, e);
	if (r < 0)
		return r;
	if (p->state == CLI_HTTP_BODY_EOF)
		return (ssize_t)len;
	p->left -= len;
	if (p->left == 0)
		p->state = p->state == CLI_HTTP_BODY ? CLI_HTTP_DONE : CLI_HTTP_CHUNK_END;
	return (ssize_t)len;
}

void
cli_http_parser_init(struct cli_http_parser *p, cli_http_body_fn *on_body, void *arg)
{
	*p = (struct cli_http_parser){
		.state = CLI_HTTP_STATUS_LINE, .on_body = on_body, .arg = arg
	};
}

int
cli_http_parser_feed(struct cli_http_parser *p, const void *data, size_t len, struct err *e)
{
	const char *at = data;
	ssize_t n;

	while (len && p->state != CLI_HTTP_DONE) {
		if (p->state == CLI_HTTP_BODY || p->state == CLI_HTTP_BODY_EOF ||
		    p->state == CLI_HTTP_CHUNK)
			n = feed_body(p, at, len, e);
		else
			n = feed_line(p, at, len, e);
		if (n < 0)
			return (int)n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int
cli_http_parser_end(struct cli_http_parser *p, struct err *e)
{
	if (p->state == CLI_HTTP_BODY_EOF)
		p->state = CLI_HTTP_DONE;
	if (p->state == CLI_HTTP_DONE)
		return 0;
	if (p->status_seen == 0 && p->line_len == 0)
		return err_say(e, -ECONNRESET, "the agent closed the connection without an answer");
	return err_say(e, -ECONNRESET, "the agent's answer was cut off");
}

/* sun_path holds 107 bytes: a longer path is opened up to its directory and named below
 * /proc/self/fd. */
static int
fill_address(const char *path, struct sockaddr_un *sun, int *ret_dir_fd, struct err *e)
{
	cleanup_close int dir_fd = -1;
	cleanup_free char *dir = NULL;
	const char *slash = strrchr(path, '/');
	int n;

	sun->sun_family = AF_UNIX;
	if (strlen(path) < sizeof sun->sun_path) {
		(void)strcpy(sun->sun_path, path);
		return 0;
	}
	dir = slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return err_set(e, -errno, "open %s", dir);
	n = snprintf(sun->sun_path, sizeof sun->sun_path, "/proc/self/fd/%d/%s", dir_fd,
	    slash ? slash + 1 : path);
	if (n < 0 || (size_t)n >= sizeof sun->sun_path)
		return err_set(e, -ENAMETOOLONG, "connect to %s", path);
	*ret_dir_fd = steal_fd(&dir_fd);
	return 0;
}

int
cli_http_connect(const char *path, struct err *e)
{
	static const struct timeval connect_timeout = { .tv_sec = 10 };
	cleanup_close int dir_fd = -1, fd = -1;
	struct sockaddr_un sun = { 0 };
	int r;

	r = fill_address(path, &sun, &dir_fd, e);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(e, -errno, "make a socket");
	/* connect(2) waits while the backlog is full, for as long as a send may take. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &connect_timeout, sizeof connect_timeout);
	if (connect(fd, (struct sockaddr *)&sun, sizeof sun) < 0)
		return err_set(e, -errno, "connect to %s", path);
	return steal_fd(&fd);
}

/* 0 when fd is ready for events, -ETIMEDOUT, or -errno. */
static int
wait_ready(int fd, short events, uint64_t deadline_ms, struct err *e)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	uint64_t now;
	int timeout, r;

	do {
		now = clock_ms();
		timeout = deadline_ms == UINT64_MAX ? -1 : 0;
		if (timeout == 0 && deadline_ms > now)
			timeout =
			    deadline_ms - now < INT32_MAX ? (int)(deadline_ms - now) : INT32_MAX;
		r = poll(&pfd, 1, timeout);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_set(e, -errno, "wait for the agent");
	if (r == 0)
		return err_say(
		    e, -ETIMEDOUT, "the agent accepted the request but did not answer in time");
	return 0;
}

static int
send_all(int fd, const char *data, size_t len, uint64_t deadline_ms, struct err *e)
{
	ssize_t n;
	int r;

	while (len) {
		n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			r = wait_ready(fd, POLLOUT, deadline_ms, e);
			if (r < 0)
				return r;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "send to the agent");
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The token comes from DROVER_TOKEN or NOMAD_TOKEN. */
int
cli_http_token(char **ret, struct err *e)
{
	const char *token = getenv("DROVER_TOKEN");

	if (!token || !*token)
		token = getenv("NOMAD_TOKEN");
	if (!token)
		token = "";
	for (const char *c = token; *c; c++)
		if (*c <= ' ' || *c >= 0x7f)
			return err_say(e, -EINVAL,
			    "the token contains a character that is not printable ASCII, or a "
			    "space");
	*ret = mem_printf("%s%s%s", *token ? "X-Nomad-Token: " : "", token, *token ? "\r\n" : "");
	return 0;
}

int
cli_http_send(int fd, const char *method, const char *target, const char *headers, const char *body,
    size_t len, uint64_t deadline_ms, struct err *e)
{
	cleanup_free char *head = NULL, *token = NULL;
	int r;

	r = cli_http_token(&token, e);
	if (r < 0)
		return r;
	if (body)
		head = mem_printf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s"
				  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		    method, target, token, headers ?: "", len);
	else
		head =
		    mem_printf("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s%s\r\n",
			method, target, token, headers ?: "");
	r = send_all(fd, head, strlen(head), deadline_ms, e);
	/* An agent that refuses a large body answers before it has read it: the answer is then
	 * still to be read. */
	if (r == 0 && body)
		r = send_all(fd, body, len, deadline_ms, e);
	return r;
}

int
cli_http_recv(int fd, struct cli_http_parser *p, uint64_t deadline_ms, struct err *e)
{
	char buf[64 * 1024];
	ssize_t n;
	int r;

	r = wait_ready(fd, POLLIN, deadline_ms, e);
	if (r < 0)
		return r;
	n = recv(fd, buf, sizeof buf, 0);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n < 0)
		return err_set(e, -errno, "read the agent's answer");
	r = n ? cli_http_parser_feed(p, buf, (size_t)n, e) : cli_http_parser_end(p, e);
	if (r < 0)
		return r;
	return p->state == CLI_HTTP_DONE;
}
