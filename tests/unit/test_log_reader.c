// SPDX-License-Identifier: Apache-2.0
/* test_log_reader.c: rotated files read as one text, from both ends, while they grow, rotate and
 * are removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "supervisor/api/log_reader.h"
#include "tests/unit/unit.h"

static char top[] = "/tmp/test_log_reader.XXXXXX";
static int top_fd, dir_fd;

static void
setup(void)
{
	(void)strcpy(top + sizeof top - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(mkdirat(top_fd, "logs", 0755), 0);
	dir_fd = openat(top_fd, "logs", O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(dir_fd, 0);
}

static void
teardown(void)
{
	int tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY);

	ck_assert_int_eq(tree_remove_at(tmp_fd, top + strlen("/tmp/")), 0);
	(void)close(tmp_fd);
	(void)close(dir_fd);
	(void)close(top_fd);
}

static void
append(const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_APPEND, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static void
begin(struct log_reader *r, bool from_end, uint64_t offset, bool follow)
{
	struct err e = { 0 };

	ck_assert_msg(
	    log_reader_open(r, dup(dir_fd), "web", "stdout", from_end, offset, follow, &e) == 0,
	    "%s", e.msg);
}

/* Reads everything that is there now; returns the last return value of read. */
static ssize_t
read_all(struct log_reader *r, char *ret, size_t size)
{
	struct log_chunk chunk;
	size_t at = 0;
	ssize_t n;

	do {
		n = log_reader_read(r, ret + at, size - 1 - at > 3 ? 3 : size - 1 - at, &chunk);
		at += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n == 0 && chunk.event));
	ret[at] = '\0';
	return n;
}

static void
expect(struct log_reader *r, const char *text, ssize_t end)
{
	char found[256];

	ck_assert_int_eq(read_all(r, found, sizeof found), end);
	ck_assert_str_eq(found, text);
}

static void
make_three(void)
{
	append("web.stdout.8", "aaaa\n");
	append("web.stdout.9", "bbbb\n");
	append("web.stdout.10", "cccc\n");
	append("web.stderr.8", "no\n");
	append("web.stdout.08", "no\n");
	append("web.stdout.x", "no\n");
	append("other.stdout.8", "no\n");
}

static const struct {
	bool from_end;
	uint64_t offset;
	const char *text;
} starts[] = {
	{ false, 0, "aaaa\nbbbb\ncccc\n" },
	{ false, 2, "aa\nbbbb\ncccc\n" },
	{ false, 5, "bbbb\ncccc\n" },
	{ false, 14, "\n" },
	{ false, 15, "" },
	{ false, UINT64_MAX, "" },
	{ true, 0, "" },
	{ true, 1, "\n" },
	{ true, 5, "cccc\n" },
	{ true, 6, "\ncccc\n" },
	{ true, 15, "aaaa\nbbbb\ncccc\n" },
	{ true, UINT64_MAX, "aaaa\nbbbb\ncccc\n" },
};

START_TEST(offsets_count_over_all_files_in_numeric_order)
{
	struct log_reader r;

	make_three();
	begin(&r, starts[_i].from_end, starts[_i].offset, false);
	expect(&r, starts[_i].text, -ENODATA);
	log_reader_done(&r);
}
END_TEST

START_TEST(without_follow_it_ends_at_the_newest_of_the_start)
{
	struct log_reader r;

	make_three();
	begin(&r, false, 0, false);
	append("web.stdout.11", "later\n");
	expect(&r, "aaaa\nbbbb\ncccc\n", -ENODATA);
	log_reader_done(&r);
}
END_TEST

START_TEST(following_sees_growth_and_the_next_file)
{
	struct log_reader r;

	append("web.stdout.0", "a\n");
	begin(&r, false, 0, true);
	expect(&r, "a\n", 0);
	append("web.stdout.0", "b\n");
	expect(&r, "b\n", 0);
	append("web.stdout.0", "the end of the old one\n");
	append("web.stdout.1", "c\n");
	expect(&r, "the end of the old one\nc\n", 0);
	log_reader_done(&r);
}
END_TEST

START_TEST(a_task_that_has_said_nothing_can_be_followed)
{
	struct log_reader r;

	begin(&r, true, 100, true);
	expect(&r, "", 0);
	append("web.stdout.0", "first\n");
	expect(&r, "first\n", 0);
	log_reader_done(&r);
	begin(&r, false, 0, false);
	expect(&r, "first\n", -ENODATA);
	log_reader_done(&r);
}
END_TEST

START_TEST(purged_files_are_skipped_and_said)
{
	struct log_reader r;
	struct log_chunk chunk;
	char buf[64];

	append("web.stdout.0", "a\n");
	begin(&r, false, 0, true);
	expect(&r, "a\n", 0);
	/* A slow reader: the file that it has open and the two after it are removed. */
	ck_assert_int_eq(unlinkat(dir_fd, "web.stdout.0", 0), 0);
	append("web.stdout.3", "d\n");
	ck_assert_int_eq(log_reader_read(&r, buf, sizeof buf, &chunk), 0);
	ck_assert_int_eq(chunk.event, LOG_EVENT_DELETED);
	ck_assert_uint_eq(chunk.index, 0);
	ck_assert_int_eq(log_reader_read(&r, buf, sizeof buf, &chunk), 2);
	ck_assert_uint_eq(chunk.index, 3);
	log_reader_done(&r);
}
END_TEST

START_TEST(a_truncated_file_is_read_from_its_start)
{
	struct log_reader r;
	struct log_chunk chunk;
	char buf[64];
	int fd;

	append("web.stdout.0", "0123456789\n");
	begin(&r, false, 0, true);
	expect(&r, "0123456789\n", 0);
	fd = openat(dir_fd, "web.stdout.0", O_WRONLY | O_TRUNC);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	append("web.stdout.0", "new\n");
	ck_assert_int_eq(log_reader_read(&r, buf, sizeof buf, &chunk), 4);
	ck_assert_int_eq(chunk.event, LOG_EVENT_TRUNCATED);
	ck_assert_int_eq(chunk.end, 4);
	log_reader_done(&r);
}
END_TEST

START_TEST(following_ends_with_the_directory)
{
	struct log_reader r;

	append("web.stdout.0", "a\n");
	begin(&r, false, 0, true);
	expect(&r, "a\n", 0);
	ck_assert_int_eq(tree_remove_at(top_fd, "logs"), 0);
	expect(&r, "", -ENODATA);
	log_reader_done(&r);
}
END_TEST

START_TEST(links_are_no_logs)
{
	struct log_reader r;

	ck_assert_int_eq(symlinkat("/etc/passwd", dir_fd, "web.stdout.0"), 0);
	begin(&r, false, 0, false);
	/* A link is neither listed nor opened when its number is requested. */
	ck_assert_int_eq(
	    log_reader_read(&r, (char[16]){ 0 }, 16, &(struct log_chunk){ 0 }), -ELOOP);
	log_reader_done(&r);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(
	    tc, offsets_count_over_all_files_in_numeric_order, 0, sizeof starts / sizeof starts[0]);
	tcase_add_test(tc, without_follow_it_ends_at_the_newest_of_the_start);
	tcase_add_test(tc, following_sees_growth_and_the_next_file);
	tcase_add_test(tc, a_task_that_has_said_nothing_can_be_followed);
	tcase_add_test(tc, purged_files_are_skipped_and_said);
	tcase_add_test(tc, a_truncated_file_is_read_from_its_start);
	tcase_add_test(tc, following_ends_with_the_directory);
	tcase_add_test(tc, links_are_no_logs);
}

int
main(void)
{
	return unit_run("log_reader", add);
}
