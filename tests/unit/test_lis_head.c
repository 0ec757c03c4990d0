/* SPDX-License-Identifier: Apache-2.0 */
/* test_lis_head.c: parses requests of the listener's clients, and what the supervisor is asked for
 * them; and its answers. Runs in: unit tests. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "listener/lis_answer.h"
#include "listener/lis_gate.h"
#include "tests/unit/unit.h"

#define GET  "GET /v1/agent/health HTTP/1.1\r\n"
#define HOST "Host: x\r\n"

static const struct head_case {
	const char *text;
	int r;
	const char *why; /* a part of the sentence; or the target */
} heads[] = {
	{ GET HOST "\r\n", 1, "/v1/agent/health" },
	{ "GET / HTTP/1.0\r\n\r\n", 1, "/" },
	{ GET "HOST:x:80\r\nX: a\tb\r\n\r\n", 1, "/v1/agent/health" },
	{ GET HOST "Content-Length: 0\r\n\r\n", 1, "/v1/agent/health" },
	{ GET HOST "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n", 1,
	    "/v1/agent/health" },
	{ "", 0, NULL },
	{ "GET / HT", 0, NULL },
	{ GET HOST, 0, NULL },
	{ GET HOST "\r", 0, NULL },
	/* What is no HTTP. */
	{ "\x16\x03\x01", -400, "does not begin with a method" },
	{ "\r\n" GET HOST "\r\n", -400, "does not begin with a method" },
	{ "get / HTTP/1.1\r\n", -400, "does not begin with a method" },
	{ "GET\r\n", -400, "does not begin with a method, a path and a version" },
	{ "GET  / HTTP/1.1\r\n", -400, "does not begin with a method, a path and a version" },
	{ "GET /\r\n", -400, "does not begin with a method, a path and a version" },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -505, "only HTTP/1.1" },
	{ "GET / HTTP/1.10\r\n", -505, "only HTTP/1.1" },
	{ "GET / HTTP/1.1 \r\n", -505, "only HTTP/1.1" },
	{ "GET / ICY\r\n", -400, "a method, a path and a version" },
	/* Methods and targets. */
	{ "POST / HTTP/1.1\r\n", -405, "only GET and HEAD" },
	{ "OPTIONS * HTTP/1.1\r\n", -405, "only GET and HEAD" },
	{ "CONNECT a:1 HTTP/1.1\r\n", -405, "only GET and HEAD" },
	{ "GETX / HTTP/1.1\r\n", -405, "only GET and HEAD" },
	{ "GET http://x/v1/agent/health HTTP/1.1\r\n", -400, "does not begin with a slash" },
	{ "GET x HTTP/1.1\r\n", -400, "does not begin with a slash" },
	{ "GET /\x01 HTTP/1.1\r\n", -400, "a character that is not allowed" },
	{ "GET /\xc3\xa4 HTTP/1.1\r\n", -400, "a character that is not allowed" },
	/* Lines and headers. */
	{ "GET / HTTP/1.1\nHost: x\n\n", -400, "CR LF" },
	{ "GET /\r HTTP/1.1\r\n", -400, "CR LF" },
	{ GET HOST "A: b\rC: d\r\n\r\n", -400, "CR LF" },
	{ GET HOST " folded\r\n\r\n", -400, "no valid name" },
	{ GET "Host : x\r\n\r\n", -400, "no valid name" },
	{ GET ": x\r\n\r\n", -400, "no valid name" },
	{ GET HOST "no colon\r\n\r\n", -400, "no valid name" },
	{ GET HOST "A: \x01\r\n\r\n", -400, "control character" },
	{ GET "\r\n", -400, "one Host header" },
	{ GET HOST HOST "\r\n", -400, "one Host header" },
	{ GET "Host: a b\r\n\r\n", -400, "Host header is not valid" },
	{ GET "Host: a/b\r\n\r\n", -400, "Host header is not valid" },
	/* Bodies. */
	{ GET HOST "Content-Length: 1\r\n\r\n", -413, "has no body" },
	{ GET HOST "Content-Length: 0\r\nContent-Length: 0\r\n\r\n", -400, "length twice" },
	{ GET HOST "Content-Length: 0, 0\r\n\r\n", -400, "not a number" },
	{ GET HOST "Content-Length: +0\r\n\r\n", -400, "not a number" },
	{ GET HOST "Content-Length:\r\n\r\n", -400, "not a number" },
	{ GET HOST "Transfer-Encoding: chunked\r\n\r\n", -413, "has no body" },
	{ GET HOST "Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n", -400,
	    "length twice" },
	{ GET HOST "Expect: 100-continue\r\n\r\n", -417, "not supported" },
};

START_TEST(heads_are_parsed_strictly)
{
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		const struct head_case *c = &heads[i];
		struct lis_head head = { 0 };
		const char *why = "";
		int r = lis_head_parse(c->text, strlen(c->text), false, &head, &why);

		ck_assert_msg(r == c->r, "%s: %d, %s", c->text, r, why);
		if (r < 0)
			ck_assert_msg(strstr(why, c->why) != NULL, "%s: %s", c->text, why);
		if (r <= 0)
			continue;
		ck_assert_uint_eq(head.len, strlen(c->text));
		ck_assert_uint_eq(head.target_len, strlen(c->why));
		ck_assert_int_eq(strncmp(head.target, c->why, head.target_len), 0);
		/* No shorter text is complete, or is refused. */
		for (size_t n = 0; n < strlen(c->text); n++)
			ck_assert_int_eq(lis_head_parse(c->text, n, false, &head, &why), 0);
	}
}
END_TEST

START_TEST(heads_have_limits)
{
	static char text[LIS_HEAD_MAX + 1];
	struct lis_head head;
	const char *why;
	size_t n;

	ck_assert_int_eq(
	    lis_head_parse("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 25, false, &head, &why), -400);
	memset(text, 'x', sizeof text);
	memcpy(text, "GET /", 5);
	ck_assert_int_eq(lis_head_parse(text, LIS_HEAD_MAX - 1, false, &head, &why), 0);
	ck_assert_int_eq(lis_head_parse(text, LIS_HEAD_MAX, false, &head, &why), -431);
	(void)strcpy(text + 5 + LIS_TARGET_MAX, " HTTP/1.0\r\n\r\n");
	ck_assert_int_eq(lis_head_parse(text, strlen(text), false, &head, &why), -414);
	n = (size_t)sprintf(text, "GET / HTTP/1.0\r\n");
	for (int i = 0; i < 65; i++)
		n += (size_t)sprintf(text + n, "A: b\r\n");
	ck_assert_int_eq(lis_head_parse(text, n, false, &head, &why), -431);
}
END_TEST

START_TEST(what_a_head_says_about_its_connection)
{
	static const struct {
		const char *text;
		bool keeps, is_head;
		enum lis_accept accept;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: x\r\n\r\n", true, false, LIS_ACCEPT_ANY },
		{ "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: x , Close\r\n\r\n", false, true,
		    LIS_ACCEPT_ANY },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\nAccept: */*\r\n\r\n", false, false,
		    LIS_ACCEPT_ANY },
		{ "GET / HTTP/1.1\r\nHost: x\r\nAccept: "
		  "text/plain,application/openmetrics-text;version=1.0.0;q=0.5\r\n\r\n",
		    true, false, LIS_ACCEPT_OPENMETRICS },
		{ "GET / HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-textx, "
		  "text/plain;version=0.0.4\r\n\r\n",
		    true, false, LIS_ACCEPT_TEXT },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct lis_head head;
		const char *why;

		ck_assert_int_eq(
		    lis_head_parse(cases[i].text, strlen(cases[i].text), false, &head, &why), 1);
		ck_assert_int_eq(head.keeps, cases[i].keeps);
		ck_assert_int_eq(head.is_head, cases[i].is_head);
		ck_assert_int_eq(head.accept, cases[i].accept);
	}
}
END_TEST

START_TEST(only_what_the_table_has_is_asked)
{
	static const struct {
		const char *target;
		int r;
		const char *asked;
		enum lis_kind kind;
	} cases[] = {
		{ "/v1/agent/health", 0, "/v1/agent/health", LIS_HEALTH },
		{ "/v1/agent/health?", 0, "/v1/agent/health", LIS_HEALTH },
		{ "/v1/agent/health?deep=0", 0, "/v1/agent/health", LIS_HEALTH },
		{ "/v1/agent/health?type=client&deep=true", 0,
		    "/v1/agent/health?deep=1&type=client", LIS_PROBE },
		{ "/v1/metrics", 0, "/v1/metrics", LIS_METRICS },
		{ "/v1/metrics?pretty&format=prometheus", 0,
		    "/v1/metrics?format=prometheus&pretty=1", LIS_METRICS },
		{ "/v1/metrics?format=json", 0, "/v1/metrics?format=json", LIS_METRICS },
		{ "/v1/metrics?format=x", -400, NULL, 0 },
		{ "/v1/metrics?format=prometheus&format=prometheus", -400, NULL, 0 },
		{ "/v1/metrics?deep=1", -400, NULL, 0 },
		{ "/v1/metrics?&", -400, NULL, 0 },
		{ "/v1/metrics?format=prometheus%0d%0aX:y", -400, NULL, 0 },
		{ "/v1/agent/health/", -404, NULL, 0 },
		{ "/v1/agent/health%00", -404, NULL, 0 },
		{ "/v1/agent/../agent/health", -404, NULL, 0 },
		{ "//v1/metrics", -404, NULL, 0 },
		{ "/v1/jobs", -404, NULL, 0 },
		{ "/", -404, NULL, 0 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct lis_head head = { .target = cases[i].target,
			.target_len = strlen(cases[i].target) };
		struct lis_question q;
		const char *why;
		int r = lis_gate_check(&head, &q, &why);

		ck_assert_msg(r == cases[i].r, "%s: %d", cases[i].target, r);
		if (r < 0)
			continue;
		ck_assert_str_eq(q.target, cases[i].asked);
		ck_assert_int_eq(q.kind, cases[i].kind);
	}
}
END_TEST

#define OK "HTTP/1.1 200 OK\r\n"

static const struct answer_case {
	const char *text;
	int r;
	const char *body; /* or a part of the error */
} answers[] = {
	{ OK "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 1, "{}" },
	{ OK "content-length:  0\r\nContent-Type: application/json\r\n\r\n", 1, "" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0A\r\n0123456789\r\n0\r\n\r\n", 1,
	    "ab0123456789" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1, "" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n", 0, NULL },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n\r\n", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nab", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2\nab", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n-2\r\nab", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n000000001\r\na", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n", -EBADMSG, "invalid chunk" },
	{ OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nx", -EBADMSG, "longer than it says" },
	{ OK "Content-Length: 2\r\n\r\n{", 0, NULL },
	{ OK "Content-Length: 2\r\n", 0, NULL },
	{ OK "Content-Length: 1\r\n\r\n{}", -EBADMSG, "longer than it says" },
	{ OK "\r\n", -EBADMSG, "no valid length" },
	{ OK "Content-Length: x\r\n\r\n", -EBADMSG, "no valid length" },
	{ OK "Content-Length: 67108865\r\n\r\n", -EFBIG, "larger than 64 MiB" },
	{ OK "Content-Length: 9999999999999\r\n\r\n", -EBADMSG, "no valid length" },
	{ OK "Content-Length: 2\r\nX: \x01\r\n\r\n{}", -EBADMSG, "not text" },
	{ OK "Content-Length: 2\nX: y\r\n\r\n{}", -EBADMSG, "not text" },
	{ "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", -EBADMSG, "status 99" },
	{ "HTTP/1.1 1000\r\nContent-Length: 0\r\n\r\n", -EBADMSG, "no status" },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", -EBADMSG, "no status" },
	{ "\r\n\r\n", -EBADMSG, "no status" },
};

/* Feeds pieces of `step` bytes. */
static int
feed(struct lis_reader *r, const char *text, size_t step, struct err *e)
{
	size_t len = strlen(text), at = 0;
	int result = 0;

	for (; at < len && result == 0; at += step)
		result = lis_reader_feed(r, text + at, len - at < step ? len - at : step, e);
	return result;
}

START_TEST(answers_are_read_in_pieces_of_any_size)
{
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
		for (size_t step = 1; step < 70; step += 7) {
			static struct lis_reader reader;
			struct err e = { 0 };
			int r = feed(&reader, answers[i].text, step, &e);
			struct lis_answer *a;

			/* A surplus byte may come after the end. */
			if (r == 1 && answers[i].r < 0)
				ck_assert_ptr_nonnull(strstr(answers[i].body, "longer"));
			else
				ck_assert_msg(
				    r == answers[i].r, "%s: %d %s", answers[i].text, r, e.msg);
			if (r < 0)
				ck_assert_msg(strstr(e.msg, answers[i].body) != NULL, "%s", e.msg);
			if (r != 1) {
				lis_reader_done(&reader);
				continue;
			}
			a = lis_reader_take(&reader);
			ck_assert_uint_eq(lis_answers_held(), a->size);
			if (answers[i].r == 1)
				ck_assert_msg(a->len == strlen(answers[i].body) &&
						  memcmp(a->body, answers[i].body, a->len) == 0,
				    "%s", answers[i].text);
			lis_answer_unref(a);
			ck_assert_uint_eq(lis_answers_held(), 0);
		}
}
END_TEST

START_TEST(the_head_of_an_answer_has_a_limit)
{
	static struct lis_reader reader;
	static char text[2 * LIS_ANSWER_HEAD_MAX];
	struct err e = { 0 };

	memset(text, 'x', sizeof text - 1);
	ck_assert_int_eq(feed(&reader, text, 1000, &e), -EBADMSG);
	lis_reader_done(&reader);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, heads_are_parsed_strictly);
	tcase_add_test(tc, heads_have_limits);
	tcase_add_test(tc, what_a_head_says_about_its_connection);
	tcase_add_test(tc, only_what_the_table_has_is_asked);
	tcase_add_test(tc, answers_are_read_in_pieces_of_any_size);
	tcase_add_test(tc, the_head_of_an_answer_has_a_limit);
}

int
main(void)
{
	return unit_run("requests to the listener", add);
}
