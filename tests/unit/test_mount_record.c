// SPDX-License-Identifier: Apache-2.0
/* test_mount_record.c: names of volumes' directories. Runs in: unit tests. link: supervisor */
#include <string.h>

#include "supervisor/volume/mount_record.h"
#include "tests/unit/unit.h"

static const char *
name_of(const char *namespace, const char *id)
{
	static char names[4][NAME_BYTES_MAX + 1];
	static size_t next;
	char *name = names[next++ % ELEMENTSOF(names)];

	mount_record_name(name, namespace, id);
	ck_assert_msg(name_is_component(name), "%s", name);
	return name;
}

static const char *
repeated(const char *text, size_t n)
{
	static char bufs[4][1025];
	static size_t next;
	char *buf = bufs[next++ % ELEMENTSOF(bufs)];

	buf[0] = '\0';
	while (n-- > 0)
		strcat(buf, text);
	return buf;
}

START_TEST(test_short_ids_are_encoded_as_they_always_were)
{
	ck_assert_str_eq(name_of("default", "data"), "data");
	ck_assert_str_eq(name_of("", "my_data[0]"), "my_5fdata_5b0_5d");
	ck_assert_str_eq(name_of("team", "data"), "team_2fdata");
	ck_assert_str_eq(name_of("default", "../x"), "_2e._2fx");
	ck_assert_str_eq(name_of("default", "\xc3\xbc"), "_c3_bc");
	ck_assert_str_eq(name_of("default", repeated("x", 128)), repeated("x", 128));
	ck_assert_str_eq(name_of("default", repeated("_", 42)), repeated("_5f", 42));
}
END_TEST

START_TEST(test_long_ids_stay_different)
{
	const char *a = name_of("default", repeated("_", 120)),
		   *b = name_of("default", repeated("_", 121)),
		   *c = name_of("team", repeated("_", 120)),
		   *d = name_of("default", repeated("\xe2\x82\xac", 100));

	ck_assert_str_ne(a, b);
	ck_assert_str_ne(a, c);
	ck_assert_uint_le(strlen(a), NAME_BYTES_MAX);
	ck_assert(strncmp(a, repeated("_5f", 20), 60) == 0);
	ck_assert(strncmp(d, "_e2_82_ac", 9) == 0);
	ck_assert_str_eq(a, name_of("", repeated("_", 120)));
	/* A short id that is the name of a long one is encoded itself. */
	ck_assert_str_ne(name_of("default", a), a);
	/* Namespace and id are hashed apart. */
	ck_assert_str_ne(name_of(repeated("n", 100), repeated("n", 100)),
	    name_of(repeated("n", 99), repeated("n", 101)));
	ck_assert_str_ne(name_of("default", repeated("x", 129)), repeated("x", 128));
}
END_TEST

/* The digest is that of "default", a NUL and the id. */
START_TEST(test_the_digest_is_sha256)
{
	ck_assert_str_eq(name_of("default", repeated("x", 129)),
	    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx__"
	    "812efa98a392226a635f509621c6e12cc9d80141d976fd3b539ee2ac67fb0a2d");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, test_short_ids_are_encoded_as_they_always_were);
	tcase_add_test(tc, test_long_ids_stay_different);
	tcase_add_test(tc, test_the_digest_is_sha256);
}

int
main(void)
{
	return unit_run("mount_record", add);
}
