// SPDX-License-Identifier: Apache-2.0
/* test_log.c: lines for followers of the log: which lines they get, and that their end cannot block
 * a process. */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
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

static void
add(TCase *tc)
{
	tcase_add_test(tc, lines_up_to_the_wanted_level_are_packets);
	tcase_add_test(tc, a_full_socket_stops_nobody);
	tcase_add_test(tc, a_socket_without_a_reader_ends_nobody);
}

int
main(void)
{
	return unit_run("log", add);
}
