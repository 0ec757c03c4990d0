// SPDX-License-Identifier: Apache-2.0
/* lis_head.c: parses the head of a client's request. Runs in: listener. */
#include "listener/lis_head.h"

#include <string.h>
#include <strings.h>

#define HEADERS_MAX 64
#define METHOD_MAX  16

/* The state of the parser between two lines of a head. */
struct reading {
	struct lis_head *head;
	const char **why;
	unsigned n_headers, n_hosts, n_lengths;
	bool old; /* HTTP/1.0 */
	bool encoded, chunked, expects, has_body;
	bool api; /* more is permitted */
};

static int
refuse(const struct reading *r, int status, const char *why)
{
	*r->why = why;
	return -status;
}

static bool
is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool
is_value_char(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static bool
equals(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* Returns whether word is an element of a list with commas; parameters after ';' are ignored. */
static bool
has_element(const char *value, size_t len, const char *word)
{
	while (len > 0) {
		const char *comma = memchr(value, ',', len);
		size_t n = comma ? (size_t)(comma - value) : len, used = comma ? n + 1 : n;
		const char *end = memchr(value, ';', n);
		const char *at = value;

		n = end ? (size_t)(end - value) : n;
		while (n > 0 && (*at == ' ' || *at == '\t'))
			at++, n--;
		while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
			n--;
		if (equals(at, n, word))
			return true;
		value += used;
		len -= used;
	}
	return false;
}

/* --- headers --- */

static int
on_host(struct reading *r, const char *value, size_t len)
{
	r->n_hosts++;
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(value[i]) && !strchr(":[]", value[i]))
			return refuse(r, 400, "the Host header is not valid");
	return 0;
}

static int
on_connection(struct reading *r, const char *value, size_t len)
{
	if (has_element(value, len, "close"))
		r->head->keeps = false;
	return 0;
}

static int
on_length(struct reading *r, const char *value, size_t len)
{
	r->n_lengths++;
	for (size_t i = 0; i < len; i++) {
		if (value[i] < '0' || value[i] > '9')
			return refuse(r, 400, "Content-Length is not a number");
		r->has_body |= value[i] != '0';
	}
	return len > 0 ? 0 : refuse(r, 400, "Content-Length is not a number");
}

static int
on_encoding(struct reading *r, const char *value, size_t len)
{
	r->encoded = true;
	r->chunked = equals(value, len, "chunked");
	return 0;
}

static int
on_expect(struct reading *r, const char *value, size_t len)
{
	r->expects = !r->api || !equals(value, len, "100-continue");
	return 0;
}

static int
on_accept(struct reading *r, const char *value, size_t len)
{
	if (has_element(value, len, "application/openmetrics-text"))
		r->head->accept = LIS_ACCEPT_OPENMETRICS;
	else if (r->head->accept == LIS_ACCEPT_ANY && has_element(value, len, "text/plain"))
		r->head->accept = LIS_ACCEPT_TEXT;
	return 0;
}

static int
set_token(struct reading *r, const char *token, size_t len)
{
	if (r->head->token)
		return refuse(r, 400, "the request has more than one token");
	r->head->token = token;
	r->head->token_len = len;
	return 0;
}

static int
on_nomad_token(struct reading *r, const char *value, size_t len)
{
	return set_token(r, value, len);
}

static int
on_authorization(struct reading *r, const char *value, size_t len)
{
	static const char scheme[] = "Bearer ";
	const size_t n = sizeof scheme - 1;

	if (len < n || strncasecmp(value, scheme, n) != 0)
		return set_token(r, value, 0); /* another scheme is no valid token */
	return set_token(r, value + n, len - n);
}

/* All others, such as Upgrade, are ignored: nothing of them is passed on. */
static const struct {
	const char *name;
	int (*fn)(struct reading *r, const char *value, size_t len);
} headers[] = {
	{ "host", on_host },
	{ "connection", on_connection },
	{ "content-length", on_length },
	{ "transfer-encoding", on_encoding },
	{ "expect", on_expect },
	{ "accept", on_accept },
	{ "authorization", on_authorization },
	{ "x-nomad-token", on_nomad_token },
};

static int
read_header(struct reading *r, const char *line, size_t len)
{
	size_t name_len = 0, n;
	const char *value;

	if (++r->n_headers > HEADERS_MAX)
		return refuse(r, 431, "the request has more than 64 headers");
	while (name_len < len && is_token_char(line[name_len]))
		name_len++;
	/* Also a line that begins with a space, which older programs append to the one before. */
	if (name_len == 0 || name_len == len || line[name_len] != ':')
		return refuse(r, 400, "a header has no valid name");
	value = line + name_len + 1;
	n = len - name_len - 1;
	while (n > 0 && (*value == ' ' || *value == '\t'))
		value++, n--;
	while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		n--;
	for (size_t i = 0; i < n; i++)
		if (!is_value_char(value[i]))
			return refuse(r, 400, "a header's value has a control character");
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
		if (equals(line, name_len, headers[i].name))
			return headers[i].fn(r, value, n);
	return 0;
}

/* --- the first line --- */

static int
read_method(struct reading *r, const char *method, size_t len)
{
	static const char *const writing[] = { "PUT", "POST", "DELETE" };

	r->head->is_head = len == 4 && memcmp(method, "HEAD", 4) == 0;
	if (r->head->is_head || (len == 3 && memcmp(method, "GET", 3) == 0))
		return 0;
	r->head->writes = true;
	for (size_t i = 0; r->api && i < sizeof writing / sizeof writing[0]; i++)
		if (strlen(writing[i]) == len && memcmp(method, writing[i], len) == 0)
			return 0;
	return refuse(r, 405,
	    r->api ? "only GET, HEAD, PUT, POST and DELETE are answered at this address"
		   : "only GET and HEAD are answered at this address");
}

static int
read_version(struct reading *r, const char *version, size_t len)
{
	if (len == 8 && memcmp(version, "HTTP/1.1", 8) == 0) {
		r->head->keeps = true;
		return 0;
	}
	r->old = len == 8 && memcmp(version, "HTTP/1.0", 8) == 0;
	if (r->old)
		return 0;
	return len > 5 && memcmp(version, "HTTP/", 5) == 0
		   ? refuse(r, 505, "only HTTP/1.1 and HTTP/1.0 are understood")
		   : refuse(
			 r, 400, "the request does not begin with a method, a path and a version");
}

static int
read_first(struct reading *r, const char *line, size_t len)
{
	const char *space = memchr(line, ' ', len), *second;
	size_t method_len = space ? (size_t)(space - line) : len, rest = len - method_len;
	int status;

	second = space ? memchr(space + 1, ' ', rest - 1) : NULL;
	if (!second || method_len == 0 || method_len > METHOD_MAX)
		return refuse(
		    r, 400, "the request does not begin with a method, a path and a version");
	status = read_version(r, second + 1, len - (size_t)(second + 1 - line));
	if (status == 0)
		status = read_method(r, line, method_len);
	if (status < 0)
		return status;
	r->head->target = space + 1;
	r->head->target_len = (size_t)(second - r->head->target);
	if (!r->api && r->head->target_len > LIS_TARGET_MAX)
		return refuse(r, 414, "the path is longer than 1024 bytes");
	for (size_t i = 0; i < r->head->target_len; i++)
		if (r->head->target[i] <= ' ' || r->head->target[i] >= 0x7f)
			return refuse(r, 400, "the path has a character that is not allowed");
	return r->head->target_len > 0 && r->head->target[0] == '/'
		   ? 0
		   : refuse(r, 400, "the path does not begin with a slash");
}

/* --- lines --- */

static int
check_all(const struct reading *r)
{
	if (r->n_hosts > 1 || (r->n_hosts == 0 && !r->old))
		return refuse(r, 400, "the request must have one Host header");
	if (r->n_lengths > 1 || (r->n_lengths > 0 && r->encoded))
		return refuse(r, 400, "the request says its length twice");
	if (r->api && r->encoded && !r->chunked)
		return refuse(r, 400, "Transfer-Encoding has another value than chunked");
	r->head->writes |= r->encoded || r->has_body;
	if (!r->api && (r->encoded || r->has_body))
		return refuse(r, 413, "a request at this address has no body");
	return r->expects ? refuse(r, 417, "the request expects what is not supported") : 1;
}

/* Returns the length of the line without its end, -1 without one, or -2 if it does not end with
 * CR LF. */
static long
find_line(const char *at, size_t len)
{
	const char *end = memchr(at, '\n', len);
	size_t n;

	if (!end)
		return -1;
	n = (size_t)(end - at);
	return n > 0 && at[n - 1] == '\r' && !memchr(at, '\r', n - 1) ? (long)n - 1 : -2;
}

int
lis_head_parse(const char *buf, size_t len, bool api, struct lis_head *ret, const char **ret_why)
{
	struct lis_head head = { 0 };
	struct reading r = { .head = &head, .why = ret_why, .api = api };
	size_t at = 0;
	int status = 0;

	/* Another protocol, such as TLS, is refused at its first byte. */
	if (len > 0 && (buf[0] < 'A' || buf[0] > 'Z'))
		return refuse(&r, 400, "the request does not begin with a method");
	for (bool first = true; status == 0; first = false) {
		long n = find_line(buf + at, len - at);

		if (n == -1)
			return len < LIS_HEAD_MAX
				   ? 0
				   : refuse(&r, 431, "the head is longer than 8 KiB");
		if (n == -2)
			return refuse(&r, 400, "a line does not end with CR LF");
		if (n == 0 && !first)
			status = check_all(&r);
		else if (first)
			status = read_first(&r, buf + at, (size_t)n);
		else
			status = read_header(&r, buf + at, (size_t)n);
		at += (size_t)n + 2;
	}
	head.len = at;
	if (status > 0)
		*ret = head;
	return status;
}
