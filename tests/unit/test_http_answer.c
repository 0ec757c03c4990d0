/* SPDX-License-Identifier: Apache-2.0 */
/* test_http_answer.c: parses answers to checks, whole and byte by byte, and their redirects. Runs
 * in: unit tests. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/http_answer.h"
#include "supervisor/service/http_target.h"
#include "tests/unit/unit.h"

static const struct answer_case {
	const char *text;
	int r;   /* result of feeding it: 1 complete, 0 incomplete, -EBADMSG */
	int end; /* result of the connection's end after it, if r is 0 */
	int status;
	const char *body; /* or the error */
} answers[] = {
	{ "HTTP/1.1 200 OK\r\n\r\n", 1, 0, 200, "" },
	{ "HTTP/1.0 200\n\n", 1, 0, 200, "" },
	{ "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\ndown", 1, 0, 503, "down" },
	{ "HTTP/1.1 503 No\r\ncontent-length:4 \r\n\r\ndowntown", 1, 0, 503, "down" },
	{ "HTTP/1.1 503 No\r\n\r\ndown", 0, 1, 503, "down" },
	{ "HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\ndown", 0, -EBADMSG, 503, "unexpected EOF" },
	{ "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", 1, 0, 503, "" },
	{ "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ndo\r\n2;x=y\r\nwn\r\n0\r\n", 1,
	    0, 503, "down" },
	{ "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ndown\r\n0\r\n", -EBADMSG, 0,
	    503, "a chunk is longer than its size" },
	{ "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", -EBADMSG, 0, 503,
	    "a chunk has no size" },
	{ "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", -EBADMSG, 0,
	    503, "a chunk's size is out of range" },
	{ "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 None\r\n\r\n", 1, 0, 204, "" },
	{ "HTTP/1.1 302 There\r\nLocation: /x\r\n\r\n", 1, 0, 302, "" },
	{ "HTTP/1.1 302 There\r\n\r\nsee /x", 0, 1, 302, "see /x" },
	{ "HTTP/1.1 503 No\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", -EBADMSG, 0, 503,
	    "it has two lengths" },
	{ "HTTP/1.1 503 No\r\nContent-Length: -4\r\n\r\n", -EBADMSG, 0, 503,
	    "Content-Length is not a number" },
	{ "HTTP/1.1 503 No\r\nContent-Length: 99999999999999999999\r\n\r\n", -EBADMSG, 0, 503,
	    "Content-Length is not a number" },
	{ "HTTP/1.1 503 No\r\nno colon\r\n\r\n", -EBADMSG, 0, 503, "a header has no name" },
	{ "HTTP/1.1 600000\r\n\r\n", -EBADMSG, 0, 0, "its status is not a number of three digits" },
	{ "HTTP/1.1 012 x\r\n\r\n", -EBADMSG, 0, 12, "its status is below 100" },
	{ "HTTP/2 200\r\n\r\n", -EBADMSG, 0, 0, "it does not begin with HTTP/1.x and a status" },
	{ "SSH-2.0-none\r\n", -EBADMSG, 0, 0, "it does not begin with HTTP/1.x and a status" },
	{ "HTTP/1.1 200 OK\r\n", 0, -EBADMSG, 200, "unexpected EOF" },
	{ "", 0, -EBADMSG, 0, "EOF" },
};

/* Feeds pieces of `step` bytes, as the network may deliver them. */
static int
feed(struct http_answer *a, const char *text, size_t len, size_t step, struct err *e)
{
	size_t at = 0;
	int r = 0;

	while (at < len && r == 0) {
		size_t n = len - at < step ? len - at : step;

		r = http_answer_feed(a, text + at, n, e);
		at += n;
	}
	return r;
}

START_TEST(answers_are_read_alike_however_they_come)
{
	static const size_t steps[] = { 1, 2, 3, 7, 4096 };
	const struct answer_case *c = &answers[_i];
	static struct http_answer a;

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct err e = { 0 };
		int r;

		http_answer_init(&a, false);
		r = feed(&a, c->text, strlen(c->text), steps[i], &e);
		ck_assert_msg(r == c->r, "\"%s\": %d: %s", c->text, r, e.msg);
		if (r == 0) {
			r = http_answer_end(&a, &e);
			ck_assert_msg(r == c->end, "\"%s\": %d: %s", c->text, r, e.msg);
		}
		ck_assert_int_eq(a.status, c->status);
		if (r < 0)
			ck_assert_msg(strstr(e.msg, c->body), "\"%s\": %s", c->text, e.msg);
		else
			ck_assert_str_eq(a.body, c->body);
	}
}
END_TEST

START_TEST(no_more_is_kept_than_is_needed)
{
	static struct http_answer a;
	static char big[1 << 20];
	struct err e = { 0 };

	memset(big, 'x', sizeof big);
	big[10] = '\0';
	http_answer_init(&a, false);
	ck_assert_int_eq(feed(&a, "HTTP/1.1 500 x\r\n\r\n", 18, 18, &e), 0);
	ck_assert_int_eq(http_answer_feed(&a, big, sizeof big, &e), 1);
	ck_assert_uint_eq(a.body_len, HTTP_BODY_KEPT);
	ck_assert_uint_eq(strlen(a.body), HTTP_BODY_KEPT);
	ck_assert_int_eq(a.body[10], ' ');
	/* Endless lines, and an endless number of lines. */
	http_answer_init(&a, false);
	ck_assert_int_eq(feed(&a, "HTTP/1.1 500 x\r\n", 16, 16, &e), 0);
	ck_assert_int_eq(http_answer_feed(&a, big + 20, HTTP_LINE_MAX, &e), -EBADMSG);
	http_answer_init(&a, false);
	ck_assert_int_eq(feed(&a, "HTTP/1.1 500 x\r\n", 16, 16, &e), 0);
	for (int i = 0; i < HTTP_HEAD_MAX / 8 - 2; i++)
		ck_assert_int_eq(http_answer_feed(&a, "a: bcd\r\n", 8, &e), 0);
	ck_assert_int_eq(http_answer_feed(&a, "a: bcd\r\n", 8, &e), -EBADMSG);
	/* The answer to HEAD has no body, whatever its length says. */
	http_answer_init(&a, true);
	ck_assert_int_eq(feed(&a, "HTTP/1.1 500 x\r\nContent-Length: 9\r\n\r\n", 37, 1, &e), 1);
}
END_TEST

static const struct redirect_case {
	const char *path, *location, *addr, *to; /* to: the path, or the error */
} redirects[] = {
	{ "/a/b?c=d", "/x?y=z", "192.0.2.1:8080", "/x?y=z" },
	{ "/a/b?c=d/e", "x", "192.0.2.1:8080", "/a/x" },
	{ "/a/b?c=d", "?q", "192.0.2.1:8080", "/a/b?q" },
	{ "/a", "http://192.0.2.2", "192.0.2.2:80", "/" },
	{ "/a", "HTTP://192.0.2.2:81?x#y", "192.0.2.2:81", "/?x" },
	{ "/a", "//[2001:db8::1]:82/z z", "[2001:db8::1]:82", "/z%20z" },
	{ "/a", "http://[::1]/", "[::1]:80", "/" },
	{ "/a", "https://192.0.2.2/", "192.0.2.2:443", "/" },
	{ "/a", "HTTPS://192.0.2.2:81/x", "192.0.2.2:81", "/x" },
	{ "/a", "ftp://192.0.2.2/", NULL, "which is not http" },
	{ "/a", "http://example.org/", NULL, "\"example.org\" is not an IP address" },
	{ "/a", "http://192.0.2.2:99999/", NULL, "invalid port 0" },
	{ "/a", "/u?next=http://192.0.2.9/", "192.0.2.1:8080", "/u?next=http://192.0.2.9/" },
};

START_TEST(redirects_lead_somewhere_or_say_why_not)
{
	const struct redirect_case *c = &redirects[_i];
	char addr[CHECK_ADDR_SIZE];
	struct http_target t = { 0 };
	struct err e = { 0 };
	int r;

	ck_assert_int_eq(check_addr_parse("192.0.2.1", 8080, &t.addr, &e), 0);
	ck_assert_int_eq(http_target_set_path(&t, c->path, &e), 0);
	r = http_target_follow(&t, c->location, &e);
	if (!c->addr) {
		ck_assert_int_eq(r, -EINVAL);
		ck_assert_msg(strstr(e.msg, c->to), "%s", e.msg);
		ck_assert_str_eq(t.path, c->path);
		return;
	}
	ck_assert_msg(r == 0, "%s", e.msg);
	check_addr_format(&t.addr, addr);
	ck_assert_str_eq(addr, c->addr);
	ck_assert_str_eq(t.path, c->to);
	ck_assert_int_eq(t.tls, strncasecmp(c->location, "https:", 6) == 0);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, answers_are_read_alike_however_they_come, 0, ELEMENTSOF(answers));
	tcase_add_test(tc, no_more_is_kept_than_is_needed);
	tcase_add_loop_test(tc, redirects_lead_somewhere_or_say_why_not, 0, ELEMENTSOF(redirects));
}

int
main(void)
{
	return unit_run("http answers", add);
}
