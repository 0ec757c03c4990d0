// SPDX-License-Identifier: Apache-2.0
/* test_alloc_fs.c: paths, modes and types as `alloc fs` shows them. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "supervisor/alloc/alloc_fs.h"
#include "tests/unit/unit.h"

START_TEST(paths_are_cleaned)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "/", "" },
		{ "///", "" },
		{ ".", "" },
		{ "a", "a" },
		{ "/a//b/./c/", "a/b/c" },
		{ "a/../b", "b" },
		{ "a/b/../../c", "c" },
		{ "a/..", "" },
		{ "a/b/..", "a" },
		{ "..a/...", "..a/..." },
		{ "/.a", ".a" },
	};
	char clean[64];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		ck_assert_int_eq(alloc_fs_clean(cases[i][0], clean, sizeof clean), 0);
		ck_assert_str_eq(clean, cases[i][1]);
	}
}
END_TEST

START_TEST(paths_that_leave_are_refused)
{
	static const char *const cases[] = { "..", "/..", "../a", "a/../..", "a/../../a", "./.." };
	char clean[64];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		ck_assert_int_eq(alloc_fs_clean(cases[i], clean, sizeof clean), -EXDEV);
}
END_TEST

START_TEST(paths_that_are_too_long_are_refused)
{
	char path[200], clean[64];

	memset(path, 'a', sizeof path);
	path[62] = '\0';
	ck_assert_int_eq(alloc_fs_clean(path, clean, sizeof clean), 0);
	path[62] = 'a';
	path[63] = '\0';
	ck_assert_int_eq(alloc_fs_clean(path, clean, sizeof clean), -ENAMETOOLONG);
	path[31] = '/';
	path[63] = 'a';
	path[64] = '\0';
	ck_assert_int_eq(alloc_fs_clean(path, clean, sizeof clean), -ENAMETOOLONG);
	/* Components that ".." removes do not count. */
	(void)strcpy(path + 63, "/../b");
	ck_assert_int_eq(alloc_fs_clean(path, clean, sizeof clean), 0);
	ck_assert_str_eq(clean + 31, "/b");
}
END_TEST

START_TEST(modes_look_as_in_go)
{
	static const struct {
		unsigned mode;
		const char *text;
	} cases[] = {
		{ S_IFREG | 0644, "-rw-r--r--" },
		{ S_IFREG | 04755, "urwxr-xr-x" },
		{ S_IFREG | 06755, "ugrwxr-xr-x" },
		{ S_IFDIR | 0711, "drwx--x--x" },
		{ S_IFDIR | 01777, "dtrwxrwxrwx" },
		{ S_IFDIR | 02755, "dgrwxr-xr-x" },
		{ S_IFLNK | 0777, "Lrwxrwxrwx" },
		{ S_IFIFO | 0600, "prw-------" },
		{ S_IFSOCK | 0, "S---------" },
		{ S_IFCHR | 0666, "Dcrw-rw-rw-" },
		{ S_IFBLK | 0660, "Drw-rw----" },
	};
	char text[ALLOC_FS_MODE_SIZE];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		alloc_fs_mode(cases[i].mode, text);
		ck_assert_str_eq(text, cases[i].text);
	}
	alloc_fs_mode(~0u, text); /* no such type; the text still fits */
}
END_TEST

START_TEST(types_come_from_name_or_bytes)
{
	ck_assert_str_eq(alloc_fs_type("a.JSON", "\0", 1), "application/json");
	ck_assert_str_eq(alloc_fs_type("a", "", 0), "text/plain; charset=utf-8");
	ck_assert_str_eq(alloc_fs_type("a.x", "h\t\r\n\xc3\xa4", 6), "text/plain; charset=utf-8");
	ck_assert_str_eq(alloc_fs_type("a.x", "a\0b", 3), "application/octet-stream");
	ck_assert_str_eq(alloc_fs_type("a", "\177ELF\2", 5), "application/octet-stream");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, paths_are_cleaned);
	tcase_add_test(tc, paths_that_leave_are_refused);
	tcase_add_test(tc, paths_that_are_too_long_are_refused);
	tcase_add_test(tc, modes_look_as_in_go);
	tcase_add_test(tc, types_come_from_name_or_bytes);
}

int
main(void)
{
	return unit_run("alloc_fs", add);
}
