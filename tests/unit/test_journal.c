// SPDX-License-Identifier: Apache-2.0
/* test_journal.c: entries for the journal: fields, and values that try to be fields. */
#include <string.h>

#include "supervisor/core/journal.h"
#include "tests/unit/unit.h"

/* Returns the value of a field, or NULL. Fails if the entry is malformed. */
static const char *
find(const char *buf, size_t n, const char *name)
{
	static char value[4096];
	const char *found = NULL;

	for (const char *at = buf, *end = buf + n; at < end;) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));
		uint64_t len = 0;

		ck_assert_ptr_nonnull(eol);
		for (int i = 7; i >= 0; i--)
			len = len << 8 | (unsigned char)eol[1 + i];
		ck_assert_uint_lt(len, sizeof value);
		ck_assert_int_eq(eol[9 + len], '\n');
		if ((size_t)(eol - at) == strlen(name) && memcmp(at, name, strlen(name)) == 0) {
			ck_assert_ptr_null(found);
			memcpy(value, eol + 9, len);
			value[len] = '\0';
			found = value;
		}
		at = eol + 9 + len + 1;
	}
	return found;
}

START_TEST(an_entry_has_the_fields_that_apply)
{
	const struct journal_about about = {
		.alloc_id = "a1", .namespace = "default", .job = "web", .task = ""
	};
	char buf[4096];
	size_t n = journal_encode(
	    buf, sizeof buf, LOG_LEVEL_WARN, JOURNAL_TASK, &about, "supervisor: text");

	ck_assert_str_eq(find(buf, n, "MESSAGE"), "supervisor: text");
	ck_assert_str_eq(find(buf, n, "PRIORITY"), "4");
	ck_assert_str_eq(find(buf, n, "SYSLOG_IDENTIFIER"), "drover");
	ck_assert_str_eq(find(buf, n, "MESSAGE_ID"), "1fa316672a4648499063c6161d530db6");
	ck_assert_str_eq(find(buf, n, "DROVER_ALLOC_ID"), "a1");
	ck_assert_str_eq(find(buf, n, "DROVER_NAMESPACE"), "default");
	ck_assert_str_eq(find(buf, n, "DROVER_JOB"), "web");
	ck_assert_ptr_null(find(buf, n, "DROVER_TASK"));
	ck_assert_ptr_null(find(buf, n, "DROVER_VOLUME"));
	n = journal_encode(buf, sizeof buf, LOG_LEVEL_INFO, JOURNAL_NONE, NULL, "m");
	ck_assert_ptr_null(find(buf, n, "MESSAGE_ID"));
}
END_TEST

START_TEST(a_value_cannot_add_a_field)
{
	const struct journal_about about = { .job = "x\nPRIORITY=0\nMESSAGE\n" };
	char buf[4096];
	size_t n = journal_encode(buf, sizeof buf, LOG_LEVEL_INFO, JOURNAL_JOB, &about, "m");

	ck_assert_str_eq(find(buf, n, "PRIORITY"), "6");
	ck_assert_str_eq(find(buf, n, "DROVER_JOB"), about.job);
}
END_TEST

START_TEST(what_does_not_fit_is_left_out)
{
	char buf[160], longest[200];
	struct journal_about about = { .job = longest, .request = "r" };
	size_t n;

	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	n = journal_encode(buf, sizeof buf, LOG_LEVEL_INFO, JOURNAL_NONE, &about, "m");
	ck_assert_uint_le(n, sizeof buf);
	ck_assert_str_eq(find(buf, n, "DROVER_REQUEST"), "r");
	ck_assert_ptr_null(find(buf, n, "DROVER_JOB"));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, an_entry_has_the_fields_that_apply);
	tcase_add_test(tc, a_value_cannot_add_a_field);
	tcase_add_test(tc, what_does_not_fit_is_left_out);
}

int
main(void)
{
	return unit_run("journal", add);
}
