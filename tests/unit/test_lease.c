// SPDX-License-Identifier: Apache-2.0
/* test_lease.c: when an alloc has to stop, and which lease pages are valid. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/lease.h"
#include "tests/unit/unit.h"

#define S 1000000000ull

START_TEST(limit_counts_from_the_last_beat)
{
	struct lease_page page = { .started = 10 * S, .last_ok = 100 * S };

	ck_assert_uint_eq(lease_deadline_ns(&page, 5000, 101 * S), 105 * S);
	ck_assert_uint_eq(lease_deadline_ns(&page, 1, 101 * S), 100 * S + 1000000);
}
END_TEST

/* A page from the future (a restored snapshot) must not extend the lease to more than one limit
 * from now. */
START_TEST(a_beat_ahead_of_now_counts_as_now)
{
	struct lease_page page = { .started = 10 * S, .last_ok = 100000 * S };

	ck_assert_uint_eq(lease_deadline_ns(&page, 5000, 101 * S), 106 * S);
	page = (struct lease_page){ .started = 100000 * S };
	ck_assert_uint_eq(lease_deadline_ns(&page, 90000, 101 * S), 191 * S);
}
END_TEST

START_TEST(before_the_first_beat_there_is_grace)
{
	struct lease_page page = { .started = 10 * S };

	ck_assert_uint_eq(lease_deadline_ns(&page, 5000, 11 * S), 60 * S);
	ck_assert_uint_eq(lease_deadline_ns(&page, 90000, 11 * S), 100 * S);
}
END_TEST

START_TEST(no_limit_overflows)
{
	struct lease_page page = { .started = 10 * S, .last_ok = 100 * S };

	ck_assert_uint_gt(lease_deadline_ns(&page, UINT64_MAX, 101 * S), UINT64_MAX / 2);
	ck_assert_uint_gt(lease_deadline_ns(&page, UINT64_MAX / 1000000, 101 * S), UINT64_MAX / 4);
	ck_assert_uint_gt(lease_deadline_ns(&page, UINT64_MAX / 2000000, 101 * S), UINT64_MAX / 4);
}
END_TEST

static int
page_fd(const struct lease_page *page, size_t len)
{
	int fd = memfd_create("lease", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, page, len, 0), (ssize_t)len);
	return fd;
}

START_TEST(a_page_is_read_and_moved)
{
	struct lease_page page = { .magic = LEASE_MAGIC, .started = 3 }, got, *lease;
	cleanup_close int fd = -1;

	ck_assert_int_eq(boot_id_read(page.boot_id), 0);
	fd = page_fd(&page, sizeof page);
	ck_assert_int_eq(lease_read(fd, &got), 0);
	ck_assert_uint_eq(got.started, 3);
	ck_assert_uint_eq(got.last_ok, 0);
	lease = lease_map(fd);
	ck_assert_ptr_nonnull(lease);
	lease_set_ok(lease, 77);
	ck_assert_int_eq(lease_read(fd, &got), 0);
	ck_assert_uint_eq(got.started, 3);
	ck_assert_uint_eq(got.last_ok, 77);
}
END_TEST

START_TEST(what_is_no_page_is_refused)
{
	struct lease_page page = { .magic = LEASE_MAGIC }, got = { .started = 42 };
	cleanup_close int cut = -1, foreign = -1, old = -1;

	ck_assert_int_eq(boot_id_read(page.boot_id), 0);
	for (size_t len = 0; len < sizeof page; len++) {
		close_p(&cut);
		cut = page_fd(&page, len);
		ck_assert_int_eq(lease_read(cut, &got), -EIO);
	}
	page.boot_id[0] ^= 1;
	old = page_fd(&page, sizeof page);
	ck_assert_int_eq(lease_read(old, &got), -EBADMSG);
	page.boot_id[0] ^= 1;
	page.magic ^= 1;
	foreign = page_fd(&page, sizeof page);
	ck_assert_int_eq(lease_read(foreign, &got), -EBADMSG);
	ck_assert_int_lt(lease_read(-1, &got), 0);
	ck_assert_uint_eq(got.started, 42);
}
END_TEST

START_TEST(boottime_goes_forward)
{
	uint64_t before = clock_boot_ns();

	ck_assert_uint_gt(before, 0);
	ck_assert_uint_ge(clock_boot_ns(), before);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, limit_counts_from_the_last_beat);
	tcase_add_test(tc, a_beat_ahead_of_now_counts_as_now);
	tcase_add_test(tc, before_the_first_beat_there_is_grace);
	tcase_add_test(tc, no_limit_overflows);
	tcase_add_test(tc, a_page_is_read_and_moved);
	tcase_add_test(tc, what_is_no_page_is_refused);
	tcase_add_test(tc, boottime_goes_forward);
}

int
main(void)
{
	return unit_run("lease", add);
}
