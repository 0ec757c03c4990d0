// SPDX-License-Identifier: Apache-2.0
/* test_run_ranges.c: two containers never have one range of ids, also if the database was lost. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exe_record.h"
#include "supervisor/driver/run_ranges.h"
#include "tests/unit/unit.h"

#define BOOT "01234567-89ab-4def-8123-456789abcdef"

START_TEST(each_range_is_given_once)
{
	struct run_ranges r = { 0 };
	uint32_t n = 0, range;

	while ((range = run_range_find(&r)) != 0)
		ck_assert_uint_eq(range, CONTAINER_RANGE_FIRST + n++);
	ck_assert_uint_eq(n, CONTAINER_RANGES - CONTAINER_RANGE_FIRST);
	run_range_free(&r, 3000);
	run_range_free(&r, CONTAINER_RANGES + 1000);
	ck_assert_uint_eq(run_range_find(&r), 3000);
	ck_assert_uint_eq(run_range_find(&r), 0);
}
END_TEST

START_TEST(ranges_that_no_container_has_are_not_taken)
{
	static const uint32_t wrong[] = { 0, 1, CONTAINER_RANGES, 65536, UINT32_MAX };
	struct run_ranges r = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
		ck_assert(!run_range_take(&r, wrong[i]));
	ck_assert_uint_eq(run_range_find(&r), CONTAINER_RANGE_FIRST);
}
END_TEST

static void
write_record(int dir, uint8_t first, uint32_t range, const char *boot)
{
	struct exe_record rec = { .magic = EXE_RECORD_MAGIC,
		.version = EXE_RECORD_VERSION,
		.size = EXE_RECORD_SIZE,
		.run = { first },
		.state = EXE_RUNNING,
		.id_range = range };
	cleanup_close int fd = -1;
	char name[40];

	(void)strcpy(rec.boot_id, boot);
	rec.sum = exe_record_sum(&rec);
	(void)snprintf(name, sizeof name, "%02x000000000000000000000000000000.rec", first);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, &rec, sizeof rec), (ssize_t)sizeof rec);
}

static bool
is_known(void *arg, const struct id *run)
{
	return run->b[0] == 2;
}

START_TEST(containers_that_the_database_does_not_have_keep_their_ranges)
{
	char path[] = "/tmp/ranges-XXXXXX";
	struct run_ranges r = { 0 };
	struct err e = { 0 };
	cleanup_close int dir = open(mkdtemp(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static const uint8_t runs[] = { 1, 2, 3, 4, 5 };

	write_record(dir, 1, 2, BOOT);
	write_record(dir, 2, 3, BOOT); /* known: its row has the range */
	write_record(dir, 3, 0, BOOT); /* no container */
	write_record(dir, 4, 4, "of-an-earlier-boot");
	write_record(dir, 5, 5, BOOT);
	ck_assert_int_eq(symlinkat("elsewhere", dir, "0600000000000000000000000000000a.rec"), 0);
	ck_assert_int_eq(run_ranges_read(&r, dir, BOOT, is_known, NULL, &e), 0);
	ck_assert_uint_eq(run_range_find(&r), 3);
	ck_assert_uint_eq(run_range_find(&r), 4);
	ck_assert_uint_eq(run_range_find(&r), 6);
	for (size_t i = 0; i < ELEMENTSOF(runs); i++) {
		char name[40];

		(void)snprintf(
		    name, sizeof name, "%02x000000000000000000000000000000.rec", runs[i]);
		ck_assert_int_eq(unlinkat(dir, name, 0), 0);
	}
	(void)unlinkat(dir, "0600000000000000000000000000000a.rec", 0);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, each_range_is_given_once);
	tcase_add_test(tc, ranges_that_no_container_has_are_not_taken);
	tcase_add_test(tc, containers_that_the_database_does_not_have_keep_their_ranges);
}

int
main(void)
{
	return unit_run("run_ranges", add);
}
