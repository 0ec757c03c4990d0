// SPDX-License-Identifier: Apache-2.0
/* test_mountinfo.c: lines of mountinfo, valid and invalid. Runs in: unit tests. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mountinfo.h"
#include "tests/unit/unit.h"

START_TEST(test_lines)
{
	char text[] = "22 1 254:0 / / rw,relatime shared:7 master:2 - ext4 /dev/vda rw,discard\n"
		      "43 22 0:40 /sub\\040dir /a\\040b\\134c\\011\\012\\043 rw - tmpfs none rw\n"
		      "44 22 0:41 / /last ro,nosuid unbindable - fuse.x src#1";
	char *at = text;
	struct mountinfo m;

	ck_assert_int_eq(mountinfo_next(&at, &m), 1);
	ck_assert_str_eq(m.target, "/");
	ck_assert_str_eq(m.type, "ext4");
	ck_assert_str_eq(m.options, "rw,discard");
	ck_assert_int_eq(mountinfo_next(&at, &m), 1);
	ck_assert_str_eq(m.target, "/a b\\c\t\n#");
	ck_assert_int_eq(mountinfo_next(&at, &m), 1);
	ck_assert_str_eq(m.target, "/last");
	ck_assert_str_eq(m.type, "fuse.x");
	ck_assert_str_eq(m.options, "");
	ck_assert_int_eq(mountinfo_next(&at, &m), 0);
	ck_assert_int_eq(mountinfo_next(&at, &m), 0);
}
END_TEST

static const char *const bad[] = {
	"\nx",
	"22 1 254:0 /",
	"22 1 254:0 / /",
	"22 1 254:0 / / rw",
	"22 1 254:0 / / rw -",
	"22 1 254:0 / / rw - ext4",
	"22 1 254:0 / / rw shared:1 ext4 /dev/vda rw",
	"22 1 254:0 / relative rw - ext4 /dev/vda rw",
};

START_TEST(test_a_bad_line_does_not_end_the_list)
{
	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		char text[256], *at = text;
		struct mountinfo m;

		(void)snprintf(
		    text, sizeof text, "%s\n1 1 0:1 / /good rw - proc proc rw\n", bad[i]);
		ck_assert_int_eq(mountinfo_next(&at, &m), -EBADMSG);
		while (mountinfo_next(&at, &m) == -EBADMSG)
			;
		ck_assert_str_eq(m.target, "/good");
		ck_assert_int_eq(mountinfo_next(&at, &m), 0);
	}
}
END_TEST

START_TEST(test_an_escape_that_is_cut_stays)
{
	char text[] =
	    "1 1 0:1 / /a\\04 rw - proc proc rw\n1 1 0:1 / /\\777\\08x rw - proc proc rw\n",
	     *at = text;
	struct mountinfo m;

	ck_assert_int_eq(mountinfo_next(&at, &m), 1);
	ck_assert_str_eq(m.target, "/a\\04");
	ck_assert_int_eq(mountinfo_next(&at, &m), 1);
	ck_assert_str_eq(m.target, "/\\777\\08x");
}
END_TEST

START_TEST(test_below)
{
	ck_assert_str_eq(mountinfo_below("/data/x/y", "/data"), "x/y");
	ck_assert_str_eq(mountinfo_below("/data", "/data"), "");
	ck_assert_ptr_null(mountinfo_below("/database", "/data"));
	ck_assert_ptr_null(mountinfo_below("/dat", "/data"));
	ck_assert_ptr_null(mountinfo_below("/", "/data"));
	ck_assert_str_eq(mountinfo_below("/data/x", ""), "data/x");
}
END_TEST

START_TEST(test_this_machine)
{
	cleanup_free char *text = NULL;
	struct mountinfo m;
	bool proc = false;
	int r;

	ck_assert_int_eq(mountinfo_read(&text), 0);
	for (char *at = text; (r = mountinfo_next(&at, &m)) != 0;) {
		ck_assert_int_eq(r, 1);
		proc |= strcmp(m.target, "/proc") == 0 && strcmp(m.type, "proc") == 0;
	}
	ck_assert(proc);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, test_lines);
	tcase_add_test(tc, test_a_bad_line_does_not_end_the_list);
	tcase_add_test(tc, test_an_escape_that_is_cut_stays);
	tcase_add_test(tc, test_below);
	tcase_add_test(tc, test_this_machine);
}

int
main(void)
{
	return unit_run("mountinfo", add);
}
