// SPDX-License-Identifier: Apache-2.0
/* test_check_tls.c: any message from check-helper, also from one that was taken over, becomes an
 * HTTP answer or an error sentence. */
#include <errno.h>
#include <string.h>

#include "supervisor/service/check_tls.h"
#include "tests/unit/unit.h"

static uint8_t bytes[HTTP_TARGET_MAX + HTTP_BODY_KEPT];
static struct http_answer answer;

static ChkHttpsAskRep
made(size_t location_len, size_t body_len)
{
	ChkHttpsAskRep rep = CHK_HTTPS_ASK_REP__INIT;

	memset(bytes, 'x', sizeof bytes);
	memset(&answer, 0xff, sizeof answer);
	rep.status = 503;
	rep.location = (ProtobufCBinaryData){ location_len, location_len ? bytes : NULL };
	rep.body = (ProtobufCBinaryData){ body_len, body_len ? bytes : NULL };
	return rep;
}

START_TEST(what_fits_is_taken)
{
	ChkHttpsAskRep rep = made(HTTP_TARGET_MAX - 1, HTTP_BODY_KEPT);
	struct err e = { 0 };

	ck_assert_int_eq(check_tls_take(&rep, &answer, &e), 0);
	ck_assert_int_eq(answer.status, 503);
	ck_assert_uint_eq(strlen(answer.location), HTTP_TARGET_MAX - 1);
	ck_assert_uint_eq(answer.body_len, HTTP_BODY_KEPT);
	ck_assert_uint_eq(strlen(answer.body), HTTP_BODY_KEPT);
	rep = made(0, 0);
	ck_assert_int_eq(check_tls_take(&rep, &answer, &e), 0);
	ck_assert_str_eq(answer.location, "");
	ck_assert_uint_eq(answer.body_len, 0);
}
END_TEST

START_TEST(what_does_not_fit_is_no_answer)
{
	ChkHttpsAskRep rep = made(HTTP_TARGET_MAX, 0);
	struct err e = { 0 };

	ck_assert_int_eq(check_tls_take(&rep, &answer, &e), -EBADMSG);
	rep = made(0, HTTP_BODY_KEPT + 1);
	ck_assert_int_eq(check_tls_take(&rep, &answer, &e), -EBADMSG);
	ck_assert_str_eq(e.msg, "the answer of check-helper is too long");
}
END_TEST

START_TEST(a_failure_is_its_sentence)
{
	static const unsigned steps[] = { CHK_STEP__CHK_STEP_SHAKE, CHK_STEP__CHK_STEP_ANSWER, 99 };
	ChkHttpsAskRep rep = made(0, 0);
	struct err e = { 0 };

	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		rep.step = (ChkStep)steps[i];
		rep.error = "it is %s%n";
		ck_assert_int_eq(check_tls_take(&rep, &answer, &e), -EBADMSG);
		ck_assert_str_eq(e.msg, "it is %s%n");
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, what_fits_is_taken);
	tcase_add_test(tc, what_does_not_fit_is_no_answer);
	tcase_add_test(tc, a_failure_is_its_sentence);
}

int
main(void)
{
	return unit_run("check_tls", add);
}
