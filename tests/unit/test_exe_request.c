// SPDX-License-Identifier: Apache-2.0
/* test_exe_request.c: what an executor accepts from a peer and from a spec, and what it rejects. */
/* link: executor */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/spec.h"
#include "executor/exe_start.h"
#include "tests/unit/fixture.h"
#include "tests/unit/unit.h"

#define HEAD(kind, bytes)                                                                          \
	{                                                                                          \
		.version = EXE_PROTO_VERSION, .type = (kind), .size = (bytes)                      \
	}

START_TEST(requests_of_version_1)
{
	const struct exe_signal signal = { .head = HEAD(EXE_SIGNAL, sizeof signal), .signal = 15 };
	const struct exe_stop stop = {
		.head = HEAD(EXE_STOP, sizeof stop), .signal = 2, .timeout_ms = 5000
	};
	const struct exe_stop own_way = { .head = HEAD(EXE_STOP, sizeof own_way) };
	const struct exe_lease lease = { .head = HEAD(EXE_LEASE, sizeof lease), .limit_ms = 30000 };
	struct exe_request r;

	ck_assert_int_eq(exe_request_parse(&signal, sizeof signal, &r), 0);
	ck_assert(r.type == EXE_SIGNAL && r.signal == 15);
	ck_assert_int_eq(exe_request_parse(&stop, sizeof stop, &r), 0);
	ck_assert(r.type == EXE_STOP && r.signal == 2 && r.value_ms == 5000);
	ck_assert_int_eq(exe_request_parse(&own_way, sizeof own_way, &r), 0);
	ck_assert(r.type == EXE_STOP && r.signal == 0);
	ck_assert_int_eq(exe_request_parse(&lease, sizeof lease, &r), 0);
	ck_assert(r.type == EXE_LEASE && r.value_ms == 30000);
}
END_TEST

/* Messages between supervisors of an earlier version and executors of this one, and vice versa. */
START_TEST(bytes_of_each_version)
{
	const struct exe_signal signal = { .head = { 1, EXE_SIGNAL, 16 }, .signal = 15 };
	const struct exe_stop stop = {
		.head = { 1, EXE_STOP, 24 }, .signal = 2, .timeout_ms = 5000
	};
	const struct exe_lease lease = { .head = { 1, EXE_LEASE, 16 }, .limit_ms = 30000 };
	const struct exe_lease later = { .head = { 2, EXE_LEASE, sizeof later },
		.limit_ms = 30000,
		.kill_signal = 15,
		.kill_timeout_ms = 25000 };
	const struct {
		const char *name;
		const void *want;
		size_t size;
		struct exe_request means;
	} known[] = {
		{ "exe_signal_v1.bin", &signal, 16, { .type = EXE_SIGNAL, .signal = 15 } },
		{ "exe_stop_v1.bin", &stop, 24,
		    { .type = EXE_STOP, .signal = 2, .value_ms = 5000 } },
		{ "exe_lease_v1.bin", &lease, 16, { .type = EXE_LEASE, .value_ms = 30000 } },
		{ "exe_lease_v2.bin", &later, sizeof later,
		    { .type = EXE_LEASE,
			.signal = 15,
			.value_ms = 30000,
			.kill_timeout_ms = 25000 } },
	};

	for (size_t i = 0; i < ELEMENTSOF(known); i++) {
		cleanup_free char *bytes = NULL;
		size_t len = read_fixture(known[i].name, &bytes);
		struct exe_request r;

		ck_assert_uint_eq(len, known[i].size);
		ck_assert_mem_eq(bytes, known[i].want, len);
		ck_assert_int_eq(exe_request_parse(bytes, len, &r), 0);
		ck_assert(r.type == known[i].means.type && r.signal == known[i].means.signal &&
			  r.value_ms == known[i].means.value_ms &&
			  r.kill_timeout_ms == known[i].means.kill_timeout_ms);
	}
}
END_TEST

/* A later version is longer; the additional bytes are ignored. */
START_TEST(a_later_version_is_understood)
{
	struct {
		struct exe_stop stop;
		uint64_t more[4];
	} later = { .stop = {
			.head = { 7, EXE_STOP, sizeof later }, .signal = 15, .timeout_ms = 1 } };
	struct exe_request r;

	ck_assert_int_eq(exe_request_parse(&later, sizeof later, &r), 0);
	ck_assert(r.signal == 15 && r.value_ms == 1);
}
END_TEST

/* A lease whose size is between two versions counts as version 1; the kill settings are read
 * completely or not at all. */
START_TEST(a_lease_says_how_to_kill)
{
	struct exe_lease lease = { .head = HEAD(EXE_LEASE, sizeof lease),
		.limit_ms = 7,
		.kill_signal = 15,
		.kill_timeout_ms = 9 };
	struct exe_request r;

	for (size_t len = 0; len <= sizeof lease; len++) {
		bool whole = len == sizeof lease;

		lease.head.size = (uint32_t)len;
		if (len < EXE_LEASE_V1_SIZE) {
			ck_assert_int_eq(exe_request_parse(&lease, len, &r), -EBADMSG);
			continue;
		}
		ck_assert_int_eq(exe_request_parse(&lease, len, &r), 0);
		ck_assert(r.value_ms == 7 && r.signal == (whole ? 15 : 0) &&
			  r.kill_timeout_ms == (whole ? 9 : 0));
	}
	lease.kill_signal = 65;
	ck_assert_int_eq(exe_request_parse(&lease, sizeof lease, &r), -EBADMSG);
}
END_TEST

START_TEST(what_is_none)
{
	struct exe_stop stop = { .head = HEAD(EXE_STOP, sizeof stop), .signal = 15 };
	struct exe_request r = { .signal = 42 };

	for (size_t len = 0; len < sizeof stop; len++) {
		ck_assert_int_eq(exe_request_parse(&stop, len, &r), -EBADMSG);
		stop.head.size = (uint32_t)len;
		ck_assert_int_eq(exe_request_parse(&stop, len, &r), -EBADMSG);
		stop.head.size = sizeof stop;
	}
	stop.head.version = 0;
	ck_assert_int_eq(exe_request_parse(&stop, sizeof stop, &r), -EBADMSG);
	stop.head.version = 1;
	for (uint16_t type = 0; type < 100; type++) {
		stop.head.type = type;
		if (type < EXE_SIGNAL || type > EXE_LEASE)
			ck_assert_int_eq(exe_request_parse(&stop, sizeof stop, &r), -EBADMSG);
	}
	stop.head.type = EXE_STOP;
	stop.signal = 65;
	ck_assert_int_eq(exe_request_parse(&stop, sizeof stop, &r), -EBADMSG);
	stop.signal = UINT32_MAX;
	ck_assert_int_eq(exe_request_parse(&stop, sizeof stop, &r), -EBADMSG);
	ck_assert_uint_eq(r.signal, 42);
}
END_TEST

static int
read_spec(const enum spec_tag *tags, const char *const *texts, size_t n, struct exe_spec *ret)
{
	struct spec_writer w = { 0 };
	int r;

	for (size_t i = 0; i < n; i++)
		spec_add_str(&w, tags[i], texts[i]);
	ck_assert_int_eq(w.failed, 0);
	memset(ret, 0, sizeof *ret);
	r = exe_spec_read(w.buf, w.len, ret);
	free(w.buf);
	return r;
}

START_TEST(a_spec_is_counted_and_checked)
{
	const enum spec_tag tags[] = { SPEC_COMMAND, SPEC_ARG, SPEC_ARG, SPEC_ENV, SPEC_CWD,
		SPEC_FILE, SPEC_FILE_DATA };
	const char *texts[] = { "sh", "-c", "x", "A=b", "/", "600 -1 -1 secrets/token", "sesame" };
	const struct {
		size_t at;
		const char *text;
	} bad[] = { { 0, "" }, { 3, "no-equals" }, { 3, "=x" }, { 4, "relative" }, { 5, "token" },
		{ 5, "600 -1 -1 .." }, { 5, "600 -1 -1 local/" }, { 5, "600 -1 -1 local//a" },
		{ 5, "600 -1 -1 local/.." }, { 5, "600 -1 -1 local/a/../b" },
		{ 5, "600 -1 -1 local/./b" }, { 5, "600 -1 -1 /local/a" }, { 5, "600 -1 -1 " },
		{ 5, "600 -1 -1" }, { 5, "600 -1 local/a" }, { 5, "600 -2 -1 local/a" },
		{ 5, "600 -1 4294967296 local/a" }, { 5, "4755 -1 -1 local/a" },
		{ 5, "8 -1 -1 local/a" }, { 5, "x" } };
	struct exe_spec s;

	ck_assert_int_eq(read_spec(tags, texts, ELEMENTSOF(tags), &s), 0);
	ck_assert(s.n_args == 2 && s.n_env == 1);
	texts[5] = "1 0 4294967295 local/a/b/.c d";
	ck_assert_int_eq(read_spec(tags, texts, ELEMENTSOF(tags), &s), 0);
	ck_assert_int_eq(
	    read_spec(tags, texts, ELEMENTSOF(tags) - 1, &s), -EBADMSG); /* a secret without data */
	/* No command: for a session of kind file; the reader of the set-up decides. */
	ck_assert_int_eq(read_spec(tags + 1, texts + 1, 2, &s), 0);
	ck_assert_ptr_null(s.command);
	ck_assert_int_eq(read_spec(tags + 6, texts + 6, 1, &s), -EBADMSG); /* data without a name */
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		const char *good = texts[bad[i].at];

		texts[bad[i].at] = bad[i].text;
		ck_assert_int_eq(read_spec(tags, texts, ELEMENTSOF(tags), &s), -EBADMSG);
		texts[bad[i].at] = good;
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, requests_of_version_1);
	tcase_add_test(tc, bytes_of_each_version);
	tcase_add_test(tc, a_later_version_is_understood);
	tcase_add_test(tc, a_lease_says_how_to_kill);
	tcase_add_test(tc, what_is_none);
	tcase_add_test(tc, a_spec_is_counted_and_checked);
}

int
main(void)
{
	return unit_run("exe_request", add);
}
