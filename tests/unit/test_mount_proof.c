// SPDX-License-Identifier: Apache-2.0
/* test_mount_proof.c: the identity of a mount, field by field. Runs in: unit tests. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "common/cleanup.h"
#include "common/mount_proof.h"
#include "tests/unit/unit.h"

START_TEST(test_of_proc)
{
	cleanup_close int root = open("/proc", O_PATH | O_CLOEXEC),
			  below = open("/proc/self", O_PATH | O_CLOEXEC);
	struct mount_proof a, b;
	struct stat st;

	ck_assert_int_eq(mount_proof_take(root, &a), 0);
	ck_assert_int_eq(fstat(root, &st), 0);
	ck_assert_uint_eq(a.ino, st.st_ino);
	ck_assert_uint_eq(a.dev_major, major(st.st_dev));
	ck_assert_uint_eq(a.dev_minor, minor(st.st_dev));
	ck_assert_uint_eq(a.fs_type, 0x9fa0);
	ck_assert_int_eq(mount_proof_take(root, &b), 0);
	ck_assert_int_eq(mount_proof_compare(&a, &b), EXE_PROOF_NONE);
	ck_assert_int_eq(mount_proof_take(below, &b), -ENODEV);
	ck_assert_int_eq(mount_proof_take(-1, &b), -EBADF);
}
END_TEST

START_TEST(test_each_field)
{
	const struct mount_proof p = { .mnt_id = 9,
		.mnt_id_unique = true,
		.dev_major = 8,
		.dev_minor = 1,
		.ino = 2,
		.btime_sec = 3,
		.btime_nsec = 4,
		.fs_type = 5,
		.fs_id = 6,
		.fs_flags = 7,
		.is_block = true,
		.rdev_major = 8,
		.rdev_minor = 9 };
	struct mount_proof q;

#define DIFFERS(field, value, proof)                                                               \
	q = p;                                                                                     \
	q.field = (value);                                                                         \
	ck_assert_int_eq(mount_proof_compare(&p, &q), proof)

	ck_assert_int_eq(mount_proof_compare(&p, &p), EXE_PROOF_NONE);
	DIFFERS(mnt_id, 10, EXE_PROOF_MOUNT_ID);
	DIFFERS(mnt_id_unique, false, EXE_PROOF_MOUNT_ID);
	DIFFERS(dev_major, 9, EXE_PROOF_DEVICE);
	DIFFERS(dev_minor, 9, EXE_PROOF_DEVICE);
	DIFFERS(ino, 9, EXE_PROOF_INODE);
	DIFFERS(btime_sec, 9, EXE_PROOF_BIRTH);
	DIFFERS(btime_nsec, 9, EXE_PROOF_BIRTH);
	DIFFERS(fs_type, 9, EXE_PROOF_FS);
	DIFFERS(fs_id, 9, EXE_PROOF_FS);
	DIFFERS(fs_flags, 9, EXE_PROOF_FS);
	DIFFERS(is_block, false, EXE_PROOF_NODE);
	DIFFERS(rdev_major, 9, EXE_PROOF_NODE);
	DIFFERS(rdev_minor, 8, EXE_PROOF_NODE);
	q.fs_id = 9;
	ck_assert_int_eq(mount_identity_compare(&p, &q), EXE_PROOF_NODE);
	q.rdev_minor = 9;
	ck_assert_int_eq(mount_identity_compare(&p, &q), EXE_PROOF_NONE);
}
END_TEST

/* Before 6.8 the id of an unmounted mount may be given to the next one, but one with another id is
 * another mount all the same. */
START_TEST(test_a_plain_id_is_compared_too)
{
	const struct mount_proof p = { .mnt_id = 9, .ino = 3 };
	struct mount_proof q = p;

	q.mnt_id = 10;
	ck_assert_int_eq(mount_proof_compare(&p, &q), EXE_PROOF_MOUNT_ID);
	q.mnt_id = 9;
	q.ino = 4;
	ck_assert_int_eq(mount_proof_compare(&p, &q), EXE_PROOF_INODE);
}
END_TEST

START_TEST(test_of_a_device)
{
	cleanup_close int null = open("/dev/null", O_PATH | O_CLOEXEC);
	struct mount_proof p;

	/* A character device is none, unless it is mounted. */
	ck_assert_int_le(mount_identity_take(null, &p), 1);
	ck_assert_int_ne(mount_identity_take(null, &p), 0);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, test_of_proc);
	tcase_add_test(tc, test_each_field);
	tcase_add_test(tc, test_a_plain_id_is_compared_too);
	tcase_add_test(tc, test_of_a_device);
}

int
main(void)
{
	return unit_run("mount_proof", add);
}
