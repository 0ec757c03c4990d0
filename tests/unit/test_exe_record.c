// SPDX-License-Identifier: Apache-2.0
/*
 * test_exe_record.c: compares a run's id and record and the messages of its executor with bytes
 * that were recorded with version 1: executors outlive upgrades, so these may never change.
 * Messages to the executor are in test_exe_request.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exe_record.h"
#include "common/id.h"
#include "tests/unit/fixture.h"
#include "tests/unit/unit.h"

static const uint8_t run[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const uint8_t alloc[16] = { 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };

static struct exe_record
recorded(void)
{
	struct exe_record r = {
		.magic = EXE_RECORD_MAGIC,
		.version = 1,
		.size = EXE_RECORD_SIZE,
		.boot_id = "01234567-89ab-4def-8123-456789abcdef",
		.state = EXE_ENDED,
		.step = EXE_STEP_PIPES,
		.error = EACCES,
		.detail = EXE_PROOF_INODE << 16 | 3,
		.executor_pid = 1001,
		.task_pid = 1002,
		.task_start_ticks = 123456789012,
		.started_boot_ns = 1111111111111,
		.started_real_ns = 1700000000123456789,
		.flags = EXE_END_OOM | EXE_END_KILLED | EXE_END_SYNCED,
		.exit_signal = 9,
		.ended_boot_ns = 2222222222222,
		.ended_real_ns = 1700000001123456789,
		.lease_limit_ms = 5000,
		.lease_last_ok_ns = 2222222000000,
		.lease_late_ns = 333333,
	};

	memcpy(r.run, run, sizeof run);
	memcpy(r.alloc, alloc, sizeof alloc);
	r.sum = exe_record_sum(&r);
	return r;
}

/* Compares the message, which gets the run's id, with the recorded bytes of this size. */
static void
check_fixture(const char *file, uint8_t *id, const void *want, size_t size)
{
	cleanup_free char *bytes = NULL;

	memcpy(id, run, sizeof run);
	ck_assert_uint_eq(read_fixture(file, &bytes), size);
	ck_assert_mem_eq(bytes, want, size);
}

/* The bytes in rows, messages and records, and the name in every path of the run. */
START_TEST(run_id_of_version_1)
{
	cleanup_free char *bytes = NULL;
	size_t len = read_fixture("run_id_v1.bin", &bytes);
	char name[ID_HEX_SIZE] = "", hex[ID_HEX_SIZE];
	struct id id, parsed;

	ck_assert_uint_eq(len, ID_BYTES + ID_HEX_SIZE - 1);
	memcpy(name, bytes + ID_BYTES, ID_HEX_SIZE - 1);
	ck_assert(id_from_bytes(bytes, ID_BYTES, &id));
	ck_assert_mem_eq(id.b, run, sizeof run);
	id_to_hex(&id, hex);
	ck_assert_str_eq(hex, name);
	ck_assert(id_from_hex(name, &parsed) && id_equal(&parsed, &id));
}
END_TEST

START_TEST(record_of_version_1)
{
	struct exe_record want = recorded(), got;
	cleanup_free char *bytes = NULL;
	size_t len = read_fixture("exe_record_v1.bin", &bytes);

	ck_assert_uint_eq(len, EXE_RECORD_SIZE);
	ck_assert_mem_eq(bytes, &want, len);
	ck_assert_int_eq(exe_record_parse(bytes, len, run, &got), 0);
	ck_assert_mem_eq(&got, &want, sizeof got);
}
END_TEST

/* STATE has the form of HELLO. */
START_TEST(hello_and_state_of_version_1)
{
	struct exe_hello want = {
		.head = { .version = 1, .type = EXE_HELLO, .size = 96 },
		.state = EXE_RUNNING,
		.executor_pid = 1001,
		.task_pid = 1002,
		.task_start_ticks = 123456789012,
		.started_boot_ns = 1111111111111,
		.started_real_ns = 1700000000123456789,
		.lease_dev = 27,
		.lease_ino = 4711,
		.lease_ms = 5000,
	};

	check_fixture("exe_hello_v1.bin", want.run, &want, 96);
	want.head.type = EXE_STATE;
	want.state = EXE_STOPPING;
	check_fixture("exe_state_v1.bin", want.run, &want, 96);
}
END_TEST

START_TEST(hello_of_version_2)
{
	struct exe_hello want = {
		.head = { .version = 2, .type = EXE_HELLO, .size = sizeof want },
		.state = EXE_RUNNING,
		.executor_pid = 1001,
		.task_pid = 1002,
		.task_start_ticks = 123456789012,
		.started_boot_ns = 1111111111111,
		.started_real_ns = 1700000000123456789,
		.lease_dev = 27,
		.lease_ino = 4711,
		.lease_ms = 5000,
		.kill_signal = 15,
		.kill_timeout_ms = 25000,
	};

	check_fixture("exe_hello_v2.bin", want.run, &want, sizeof want);
}
END_TEST

START_TEST(exited_of_version_1)
{
	struct exe_exited want = {
		.head = { .version = 1, .type = EXE_EXITED, .size = 80 },
		.flags = EXE_END_OOM | EXE_END_KILLED | EXE_END_SYNCED,
		.exit_signal = 9,
		.ended_boot_ns = 2222222222222,
		.ended_real_ns = 1700000001123456789,
		.lease_limit_ms = 5000,
		.lease_last_ok_ns = 2222222000000,
		.lease_late_ns = 333333,
	};

	check_fixture("exe_exited_v1.bin", want.run, &want, 80);
}
END_TEST

START_TEST(no_bit_may_turn)
{
	struct exe_record r = recorded(), got = { .state = 42 };
	uint8_t *b = (uint8_t *)&r;

	for (size_t bit = 0; bit < sizeof r * 8; bit++) {
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(exe_record_parse(&r, sizeof r, run, &got), -EBADMSG);
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	ck_assert_uint_eq(got.state, 42);
	ck_assert_int_eq(exe_record_parse(&r, sizeof r, run, &got), 0);
}
END_TEST

START_TEST(no_cut_and_no_foreign_record)
{
	struct exe_record r = recorded(), got;

	for (size_t len = 0; len < sizeof r; len++)
		ck_assert_int_eq(exe_record_parse(&r, len, run, &got), -EBADMSG);
	ck_assert_int_eq(exe_record_parse(&r, sizeof r, alloc, &got), -EBADMSG);
}
END_TEST

/* The checksum is right, but the text has no NUL: the parser adds one. */
START_TEST(the_boot_id_ends)
{
	struct exe_record r = recorded(), got;

	memset(r.boot_id, 'a', sizeof r.boot_id);
	r.sum = exe_record_sum(&r);
	ck_assert_int_eq(exe_record_parse(&r, sizeof r, run, &got), 0);
	ck_assert_uint_lt(strnlen(got.boot_id, sizeof got.boot_id), sizeof got.boot_id);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, run_id_of_version_1);
	tcase_add_test(tc, record_of_version_1);
	tcase_add_test(tc, hello_and_state_of_version_1);
	tcase_add_test(tc, hello_of_version_2);
	tcase_add_test(tc, exited_of_version_1);
	tcase_add_test(tc, no_bit_may_turn);
	tcase_add_test(tc, no_cut_and_no_foreign_record);
	tcase_add_test(tc, the_boot_id_ends);
}

int
main(void)
{
	return unit_run("exe_record", add);
}
