// SPDX-License-Identifier: Apache-2.0
/* test_log.c: lines for followers of the log: which lines they get, and that their end cannot block
 * a process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "tests/unit/unit.h"

#define MANY 5000 /* lines: more than a socket holds */

static int ends[2];
static int32_t *wanted;

/* Leaves the socket as its worst holder could: blocking. */
static void
watch(int32_t level)
{
	int fd = memfd_create("log-level", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, sizeof *wanted), 0);
	wanted = mmap(NULL, sizeof *wanted, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(wanted, MAP_FAILED);
	*wanted = level;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	log_watch(ends[1], fd);
}

START_TEST(lines_up_to_the_wanted_level_are_packets)
{
	char line[2048];
	ssize_t n;

	watch(LOG_LEVEL_DEBUG);
	log_debug("one\ntwo %d", 3);
	n = recv(ends[0], line, sizeof line, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	ck_assert_mem_eq(line, "<7>drover: one?two 3\n", (size_t)n);
	log_debug("\xc2\x9b"
		  "31m \xc2\x80 \xc2\x9f \xc2\xa0 \xc3\x9b \xc2");
	n = recv(ends[0], line, sizeof line, MSG_DONTWAIT);
	ck_assert_int_gt(n, 0);
	ck_assert_mem_eq(line, "<7>drover: ??31m ?? ?? \xc2\xa0 \xc3\x9b \xc2\n", (size_t)n);
	*wanted = 0;
	log_debug("nobody");
	ck_assert_int_lt(recv(ends[0], line, sizeof line, MSG_DONTWAIT), 0);
}
END_TEST

START_TEST(a_full_socket_stops_nobody)
{
	watch(LOG_LEVEL_DEBUG);
	for (int i = 0; i < MANY; i++)
		log_debug("line %d", i);
	ck_assert_int_lt(send(ends[1], "x", 1, MSG_DONTWAIT), 0);
}
END_TEST

START_TEST(a_socket_without_a_reader_ends_nobody)
{
	watch(LOG_LEVEL_DEBUG);
	ck_assert_int_eq(shutdown(ends[0], SHUT_RD), 0);
	log_debug("nobody");
}
END_TEST

/* Prints one line to a file instead of stderr, and returns what is in the file. */
static char *
print_line(const char *text)
{
	static char line[8192];
	int fd = memfd_create("stderr", MFD_CLOEXEC), old = dup(STDERR_FILENO);
	ssize_t n;

	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	log_warn("%s", text);
	(void)dup2(old, STDERR_FILENO);
	(void)close(old);
	n = pread(fd, line, sizeof line - 1, 0);
	(void)close(fd);
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	return line;
}

START_TEST(a_line_has_the_local_time_with_its_zone)
{
	int n = 0;

	(void)setenv("TZ", "XST-5:30", 1);
	log_init("test", LOG_LEVEL_INFO);
	(void)sscanf(print_line("hello"),
	    "%*4d-%*2d-%*2dT%*2d:%*2d:%*2d.%*3d+0530 test: warn: hello\n%n", &n);
	ck_assert_int_gt(n, 0);
	(void)setenv("TZ", "XST+03:30", 1);
	log_init("test", LOG_LEVEL_INFO);
	ck_assert_ptr_nonnull(strstr(print_line("hello"), "-0330 test: warn: hello\n"));
}
END_TEST

static enum log_level got_level;
static char got_text[64];
static bool takes;

static bool
take_line(enum log_level level, const char *process, const char *text, size_t len)
{
	got_level = level;
	(void)snprintf(got_text, sizeof got_text, "%s|%.*s", process, (int)len, text);
	return takes;
}

START_TEST(lines_for_the_journal_go_to_its_writer)
{
	char stream[64];
	struct stat st;
	int fd = memfd_create("stderr", MFD_CLOEXEC), old = dup(STDERR_FILENO);

	ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
	    (unsigned long long)st.st_ino);
	(void)setenv("JOURNAL_STREAM", stream, 1);
	log_init("test", LOG_LEVEL_INFO);
	log_journal = take_line;
	takes = true;
	log_warn("one");
	takes = false;
	log_error("two");
	log_debug("not shown");
	(void)dup2(old, STDERR_FILENO);
	ck_assert_int_eq(got_level, LOG_LEVEL_ERROR);
	ck_assert_str_eq(got_text, "test|two");
	/* The line that the writer refused is on stderr, with the prefix. */
	memset(got_text, 0, sizeof got_text);
	ck_assert_int_gt(pread(fd, got_text, sizeof got_text - 1, 0), 0);
	ck_assert_str_eq(got_text, "<3>test: two\n");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, lines_up_to_the_wanted_level_are_packets);
	tcase_add_test(tc, a_full_socket_stops_nobody);
	tcase_add_test(tc, a_socket_without_a_reader_ends_nobody);
	tcase_add_test(tc, a_line_has_the_local_time_with_its_zone);
	tcase_add_test(tc, lines_for_the_journal_go_to_its_writer);
}

int
main(void)
{
	return unit_run("log", add);
}
