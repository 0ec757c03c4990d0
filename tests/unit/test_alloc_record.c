// SPDX-License-Identifier: Apache-2.0
/* test_alloc_record.c: the record beside an alloc: rows of earlier versions, and a round trip. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/alloc/alloc_record.h"

/* A row as version 1.0 wrote it. */
static const char old_row[] =
    "{\"done\":false,\"destroy\":true,\"kill_after\":1700000000000000000,\"tasks\":{"
    "\"web\":{\"count\":3,\"started\":1699999999000000000},\"log\":{\"count\":0,\"started\":7}},"
    "\"identities\":[{\"task\":\"web\",\"name\":\"vault\",\"token\":\"ey.x.y\",\"signed\":5,"
    "\"life\":3600000000000,\"given\":true}],"
    "\"checks\":{\"0123\":{\"ID\":\"0123\",\"Status\":\"success\",\"StatusCode\":200,"
    "\"Output\":\"ok\",\"Timestamp\":9}}}";

static void
check_old_row(const struct alloc_record *rec)
{
	ck_assert(!rec->done);
	ck_assert(rec->destroy);
	ck_assert_int_eq(rec->kill_after_ns, 1700000000000000000);
	ck_assert_uint_eq(rec->tasks.n, 2);
	ck_assert_str_eq(rec->tasks.v[0].key, "web");
	ck_assert_int_eq(rec->tasks.v[0].value.count, 3);
	ck_assert_int_eq(rec->tasks.v[0].value.started_ns, 1699999999000000000);
	ck_assert_uint_eq(rec->identities.n, 1);
	ck_assert_str_eq(rec->identities.v[0].task, "web");
	ck_assert_str_eq(rec->identities.v[0].name, "vault");
	ck_assert_str_eq(rec->identities.v[0].token, "ey.x.y");
	ck_assert_int_eq(rec->identities.v[0].signed_ns, 5);
	ck_assert_int_eq(rec->identities.v[0].life_ns, 3600000000000);
	ck_assert(rec->identities.v[0].given);
	ck_assert_uint_eq(rec->checks.by_id.n, 1);
	ck_assert_str_eq(rec->checks.by_id.v[0].key, "0123");
	ck_assert_int_eq(rec->checks.by_id.v[0].value.status, CHECK_SUCCESS);
	ck_assert_str_eq(rec->checks.by_id.v[0].value.output, "ok");
}

START_TEST(a_row_of_an_earlier_version_and_its_round_trip)
{
	struct sup_alloc sa = { .client_json = strdup(old_row) };
	struct alloc_record rec;
	struct text t = { 0 };

	alloc_record_init(&rec);
	alloc_record_read(&sa, &rec);
	check_old_row(&rec);
	model_to_text(&alloc_record_type, &rec, MODEL_COMPACT, &t);
	alloc_record_done(&rec);
	free(sa.client_json);
	sa.client_json = t.text;
	alloc_record_read(&sa, &rec);
	check_old_row(&rec);
	alloc_record_done(&rec);
	free(sa.client_json);
}
END_TEST

/* Such a row is of an alloc that the servers had, but this node did not know. */
START_TEST(a_row_with_one_key)
{
	struct sup_alloc sa = { .client_json = (char *)(uintptr_t) "{\"done\":true}" };
	struct alloc_record rec;

	alloc_record_init(&rec);
	alloc_record_read(&sa, &rec);
	ck_assert(rec.done);
	ck_assert(!rec.destroy);
	ck_assert_uint_eq(rec.tasks.n, 0);
	alloc_record_done(&rec);
}
END_TEST

static const char *const empty[] = { NULL, "", "{", "[]", "{\"tasks\":7}" };

START_TEST(no_record_and_one_that_cannot_be_read_are_empty)
{
	struct sup_alloc sa = { .client_json = (char *)(uintptr_t)empty[_i] };
	struct alloc_record rec;

	alloc_record_init(&rec);
	alloc_record_read(&sa, &rec);
	ck_assert(!rec.done && !rec.destroy && rec.tasks.n == 0);
	alloc_record_done(&rec);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_row_of_an_earlier_version_and_its_round_trip);
	tcase_add_test(tc, a_row_with_one_key);
	tcase_add_loop_test(
	    tc, no_record_and_one_that_cannot_be_read_are_empty, 0, ELEMENTSOF(empty));
}

int
main(void)
{
	return unit_run("alloc_record", add);
}
