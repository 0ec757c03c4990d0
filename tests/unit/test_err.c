// SPDX-License-Identifier: Apache-2.0
/* test_err.c: sentences, truncated where they do not fit, and errno, which is kept. */
#include <errno.h>
#include <string.h>

#include "common/err.h"
#include "tests/unit/unit.h"

START_TEST(set_appends_the_reason)
{
	struct err e = { 0 };

	errno = EBADF;
	ck_assert_int_eq(err_set(&e, -ENOENT, "open %s", "foo"), -ENOENT);
	ck_assert_int_eq(e.code, -ENOENT);
	ck_assert_str_eq(e.msg, "open foo: No such file or directory");
	ck_assert_int_eq(errno, EBADF);
}
END_TEST

START_TEST(say_is_the_whole_sentence)
{
	struct err e = { 0 };

	ck_assert_int_eq(err_say(&e, -EPERM, "%d is not allowed", 7), -EPERM);
	ck_assert_str_eq(e.msg, "7 is not allowed");
}
END_TEST

START_TEST(prefix_goes_before)
{
	struct err e = { 0 };

	(void)err_set(&e, -EIO, "read");
	ck_assert_int_eq(err_prefix(&e, "task %s", "web"), -EIO);
	ck_assert_str_eq(e.msg, "task web: read: Input/output error");
}
END_TEST

START_TEST(nobody_has_to_listen)
{
	ck_assert_int_eq(err_set(NULL, -EIO, "x"), -EIO);
	ck_assert_int_eq(err_say(NULL, -EIO, "x"), -EIO);
	ck_assert_int_lt(err_prefix(NULL, "x"), 0);
}
END_TEST

START_TEST(an_unknown_number_is_no_crash)
{
	struct err e = { 0 };

	ck_assert_int_eq(err_set(&e, -99999, "x"), -99999);
	ck_assert_str_eq(e.msg, "x: unknown error");
}
END_TEST

START_TEST(what_is_too_long_is_cut)
{
	char text[3 * ERR_MSG_SIZE];
	struct err e = { 0 };

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	(void)err_set(&e, -EIO, "%s", text);
	ck_assert_uint_eq(strlen(e.msg), ERR_MSG_SIZE - 1);
	(void)err_say(&e, -EIO, "%s", text);
	ck_assert_uint_eq(strlen(e.msg), ERR_MSG_SIZE - 1);
	(void)err_prefix(&e, "%s", "in front");
	ck_assert_uint_eq(strlen(e.msg), ERR_MSG_SIZE - 1);
	ck_assert(strncmp(e.msg, "in front: aaa", 13) == 0);
	/* One byte is left: the reason does not fit, and the text ends with a NUL. */
	text[ERR_MSG_SIZE - 2] = '\0';
	(void)err_set(&e, -EIO, "%s", text);
	ck_assert_uint_eq(strlen(e.msg), ERR_MSG_SIZE - 1);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, set_appends_the_reason);
	tcase_add_test(tc, say_is_the_whole_sentence);
	tcase_add_test(tc, prefix_goes_before);
	tcase_add_test(tc, nobody_has_to_listen);
	tcase_add_test(tc, an_unknown_number_is_no_crash);
	tcase_add_test(tc, what_is_too_long_is_cut);
}

int
main(void)
{
	return unit_run("err", add);
}
