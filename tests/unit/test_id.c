// SPDX-License-Identifier: Apache-2.0
/* test_id.c: ids in both notations, and names that may become paths. */
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "tests/unit/unit.h"

START_TEST(hex_and_uuid_round_trip)
{
	for (int i = 0; i < 1000; i++) {
		struct id id = id_random(), back = { 0 };
		char hex[ID_HEX_SIZE], uuid[ID_UUID_SIZE];

		id_to_hex(&id, hex);
		ck_assert_uint_eq(strlen(hex), 32);
		ck_assert(id_from_hex(hex, &back) && id_equal(&id, &back));
		id_to_uuid(&id, uuid);
		ck_assert_uint_eq(strlen(uuid), 36);
		ck_assert(id_from_uuid(uuid, &back) && id_equal(&id, &back));
	}
}
END_TEST

START_TEST(uuids_are_version_4)
{
	for (int i = 0; i < 1000; i++) {
		struct id id = id_random_uuid();
		char uuid[ID_UUID_SIZE];

		id_to_uuid(&id, uuid);
		ck_assert_int_eq(uuid[14], '4');
		ck_assert(strchr("89ab", uuid[19]));
	}
}
END_TEST

static const char *const no_hex[] = {
	"",
	"0",
	"0123456789abcdef0123456789abcde",   /* 31 digits */
	"0123456789abcdef0123456789abcdef0", /* 33 digits */
	"0123456789ABCDEF0123456789abcdef",  /* a run has only one name */
	"0123456789abcdeg0123456789abcdef",
	"0123456789abcdef 123456789abcdef",
	"../../../../../../../../etc/pass",
};

static void
check_refused(bool (*read)(const char *text, struct id *ret), const char *text)
{
	struct id id = { { 42 } };

	ck_assert(!read(text, &id));
	ck_assert_int_eq(id.b[0], 42);
}

START_TEST(no_hex_is_refused)
{
	check_refused(id_from_hex, no_hex[_i]);
}
END_TEST

static const char *const no_uuid[] = {
	"",
	"01234567-89ab-cdef-0123-456789abcde",
	"01234567-89ab-cdef-0123-456789abcdef0",
	"0123456789ab-cdef-0123-456789abcdef",
	"01234567-89ab-cdef-0123-456789abcdeF",
	"01234567-89ab-cdef-0123456-789abcdef",
	"01234567--9ab-cdef-0123-456789abcdef",
	"0123456789abcdef0123456789abcdef",
	"------------------------------------",
};

START_TEST(no_uuid_is_refused)
{
	check_refused(id_from_uuid, no_uuid[_i]);
}
END_TEST

START_TEST(bytes_must_be_16_and_not_zero)
{
	uint8_t zero[17] = { 0 }, some[17] = { 1 };
	struct id id;

	ck_assert(!id_from_bytes(zero, 16, &id));
	ck_assert(!id_from_bytes(some, 0, &id));
	ck_assert(!id_from_bytes(some, 15, &id));
	ck_assert(!id_from_bytes(some, 17, &id));
	ck_assert(id_from_bytes(some, 16, &id) && !id_is_zero(&id));
}
END_TEST

START_TEST(a_component_of_a_path)
{
	static const char *const good[] = { "a", "web", "Web-1_2.x", "_", "-", "a..b", "0" };
	static const char *const bad[] = { "", ".", "..", ".hidden", "a/b", "/", "a b", "a\n",
		"\xc3\xa9", "a:b", "a\\b", "~" };
	char text[NAME_BYTES_MAX + 2];

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		ck_assert_msg(name_is_component(good[i]), "%s", good[i]);
	for (size_t i = 0; i < ELEMENTSOF(bad); i++)
		ck_assert_msg(!name_is_component(bad[i]), "%s", bad[i]);
	memset(text, 'a', sizeof text);
	text[NAME_BYTES_MAX] = '\0';
	ck_assert(name_is_component(text));
	text[NAME_BYTES_MAX] = 'a';
	text[NAME_BYTES_MAX + 1] = '\0';
	ck_assert(!name_is_component(text));
}
END_TEST

/* "alloc" would be the directory that all tasks share. */
START_TEST(no_task_is_called_alloc)
{
	ck_assert(!name_is_task("alloc"));
	ck_assert(name_is_component("alloc"));
	ck_assert(name_is_task("alloc1"));
}
END_TEST

START_TEST(the_boot_has_an_id)
{
	char boot[BOOT_ID_SIZE];
	struct id id;

	ck_assert_int_eq(boot_id_read(boot), 0);
	ck_assert(id_from_uuid(boot, &id));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, hex_and_uuid_round_trip);
	tcase_add_test(tc, uuids_are_version_4);
	tcase_add_loop_test(tc, no_hex_is_refused, 0, (int)ELEMENTSOF(no_hex));
	tcase_add_loop_test(tc, no_uuid_is_refused, 0, (int)ELEMENTSOF(no_uuid));
	tcase_add_test(tc, bytes_must_be_16_and_not_zero);
	tcase_add_test(tc, a_component_of_a_path);
	tcase_add_test(tc, no_task_is_called_alloc);
	tcase_add_test(tc, the_boot_has_an_id);
}

int
main(void)
{
	return unit_run("id", add);
}
