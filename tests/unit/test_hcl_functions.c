// SPDX-License-Identifier: Apache-2.0
/* test_hcl_functions.c: the functions of job files: fixtures/hcl_functions.txt has their calls and
 * results, which are those of Nomad's parser. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hcl/hcl_functions.h"
#include "tests/unit/fixture_pairs.h"
#include "tests/unit/hcl_evaluation.h"

/* Returns "= JSON", or "! SENTENCE" of the first problem; the caller frees it. */
static char *
result_of(const char *text, const struct hcl_limits *limits, const struct hcl_files *files)
{
	struct hcl *h = hcl_new(limits);
	struct hcl_source source = { "x", text, strlen(text) };
	struct hcl_scope scope = { .functions = &hcl_job_functions, .arg = (void *)files };
	struct evaluation x = { .scope = &scope };
	char *found;

	x.expr = hcl_parse_expr(h, &source);
	if (x.expr && hcl_try(h, evaluate, &x))
		ck_assert_int_gt(asprintf(&found, "= %s", x.json), 0);
	else
		ck_assert_int_gt(asprintf(&found, "! %s", hcl_problems(h)->text), 0);
	hcl_free(h);
	return found;
}

static void
check(const char *text, const char *expected, const struct hcl_files *files)
{
	char *found = result_of(text, &hcl_job_limits, files);

	fixture_compare(text, found, expected);
	free(found);
}

static void
check_without_files(const char *text, const char *expected)
{
	check(text, expected, NULL);
}

START_TEST(results)
{
	ck_assert_uint_gt(fixture_pairs(FIXTURES "/hcl_functions.txt", check_without_files), 300);
}
END_TEST

START_TEST(the_table_is_sorted)
{
	for (size_t i = 1; i < hcl_job_functions.n; i++)
		ck_assert_int_lt(
		    strcmp(hcl_job_functions.v[i - 1].name, hcl_job_functions.v[i].name), 0);
}
END_TEST

/* Each of these would take memory or time without a bound. */
START_TEST(large_results_are_refused)
{
	static const char *const calls[] = {
		"indent(1000000000, \"a\\nb\")",
		"setproduct([for i in range(1000): i], [for i in range(1000): i], range(1000))",
		"[for a in range(1000): [for b in range(1000): join(\",\", range(1000))]]",
		"format(\"%1000000000s\", \"a\")",
		"format(\"%.1000000f\", 1)",
		"bcrypt(\"a\", 20)",
		"replace(join(\"\", [for i in range(1000): \"a\"]), \"\", "
		"join(\"\", [for i in range(1000): \"b\"]))",
		"[for i in range(1000): regex_replace(join(\"\", [for i in range(1000): \"a\"]), "
		"\"(a|b)*c\", \"x\")]",
		"length(distinct([for i in range(1000): i]))",
		"jsonencode(yamldecode(\"a: &a [1,1,1,1,1,1,1,1,1,1]\\nb: &b "
		"[*a,*a,*a,*a,*a,*a,*a,*a,*a]"
		"\\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]"
		"\\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\"))",
	};
	const struct hcl_limits small = {
		.source_bytes = 4096, .memory_bytes = 1 << 20, .steps = 100000, .depth = 50
	};

	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		char *found = result_of(calls[i], &small, NULL);

		ck_assert_msg(
		    strncmp(found, "! the document needs too", 24) == 0, "%s: %s", calls[i], found);
		free(found);
	}
}
END_TEST

/* Values inside each other are limited also where a function makes them. */
START_TEST(deep_results_are_refused)
{
	static const char *const calls[] = {
		"jsondecode(join(\"\", [for i in range(1000): \"[\"]))",
		"yamldecode(join(\"\", [for i in range(1000): \"[\"]))",
		"yamldecode(join(\"\", [for i in range(1000): \"- \"]))",
		"regex_replace(\"a\", join(\"\", [for i in range(1000): \"(\"]), \"x\")",
		"regex_replace(\"a\", join(\"\", [for i in range(1000): \"(?:abcdef){1000}\"]), "
		"\"x\")",
		("jsonencode(jsondecode(format(\"%s1%s\", join(\"\", [for i in range(300): "
		 "\"[\"]), "
		 "join(\"\", [for i in range(300): \"]\"]))))"),
	};

	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		char *found = result_of(calls[i], &hcl_job_limits, NULL);

		ck_assert_msg(*found == '!', "%s: %s", calls[i], found);
		free(found);
	}
}
END_TEST

static void
write_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
	ck_assert_int_eq(close(fd), 0);
}

/* Makes a.txt, b.bin, sub/c.txt, sub/deep/d.txt, links to a.txt and sub, a link to itself and a
 * fifo. */
static int
make_tree(char *path)
{
	int dir;

	ck_assert_ptr_nonnull(mkdtemp(path));
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(mkdirat(dir, "sub", 0700), 0);
	ck_assert_int_eq(mkdirat(dir, "sub/deep", 0700), 0);
	write_file(dir, "a.txt", "h\xc3\xa4llo");
	write_file(dir, "b.bin", "\xff");
	write_file(dir, "sub/c.txt", "c");
	write_file(dir, "sub/deep/d.txt", "d");
	ck_assert_int_eq(symlinkat("a.txt", dir, "link.txt"), 0);
	ck_assert_int_eq(symlinkat("sub", dir, "dir"), 0);
	ck_assert_int_eq(symlinkat("loop", dir, "loop"), 0);
	ck_assert_int_eq(mkfifoat(dir, "fifo", 0600), 0);
	return dir;
}

static void
remove_tree(int dir, const char *path)
{
	static const char *const names[] = { "sub/deep/d.txt", "sub/c.txt", "a.txt", "b.bin",
		"link.txt", "dir", "loop", "fifo" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		ck_assert_int_eq(unlinkat(dir, names[i], 0), 0);
	ck_assert_int_eq(unlinkat(dir, "sub/deep", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(dir, "sub", AT_REMOVEDIR), 0);
	ck_assert_int_eq(close(dir), 0);
	ck_assert_int_eq(rmdir(path), 0);
}

START_TEST(files)
{
	static const char *const cases[][2] = {
		{ "file(\"a.txt\")", "= \"hällo\"" },
		{ "file(\"./sub/../link.txt\")", "= \"hällo\"" },
		{ "file(\"b.bin\")", "! file(): " },
		{ "file(\"nothing\")", "! file(): cannot read " },
		{ "file(\"sub\")", "! file(): " },
		{ "file(\"fifo\")", "! file(): " },
		{ "file(\"/dev/zero\")", "! file(): /dev/zero is not a regular file" },
		{ "file(\"loop\")", "! file(): cannot read " },
		{ "file(\"~x/a\")", "! file(): only ~ alone" },
		{ "file(\"a\\u0000b\")", "! file(): a path must not contain a NUL" },
		{ "filebase64(\"b.bin\")", "= \"/w==\"" },
		{ "filebase64(\"a.txt\")", "= \"aMOkbGxv\"" },
		{ "filebase64(\"nothing\")", "! filebase64(): cannot read " },
		{ "filebase64(\"fifo\")", "! filebase64(): " },
		{ "fileexists(\"a.txt\")", "= true" },
		{ "fileexists(\"nothing\")", "= false" },
		{ "fileexists(\"sub\")", "! fileexists(): " },
		{ "fileexists(\"loop\")", "! fileexists(): cannot access " },
		{ "fileset(\".\", \"*.txt\")", "= [\"a.txt\",\"link.txt\"]" },
		{ "fileset(\".\", \"sub/**\")", "= [\"sub/c.txt\",\"sub/deep/d.txt\"]" },
		{ "fileset(\"sub\", \"**/*.txt\")", "= [\"c.txt\",\"deep/d.txt\"]" },
		{ "fileset(\".\", \"dir/*\")", "= [\"dir/c.txt\"]" },
		{ "fileset(\".\", \"{a,link}.{txt,md}\")", "= [\"a.txt\",\"link.txt\"]" },
		{ "fileset(\".\", \"[^b-z].txt\")", "= [\"a.txt\"]" },
		{ "fileset(\".\", \"nothing/*\")", "= []" },
		{ "fileset(\".\", \"[a\")", "! fileset(): wrong pattern" },
		{ "fileset(\".\", \"{a\")", "! fileset(): wrong pattern" },
		{ "basename(\"/a/b/\")", "= \"b\"" },
		{ "basename(\"\")", "= \".\"" },
		{ "basename(\"//\")", "= \"/\"" },
		{ "basename(\"a\")", "= \"a\"" },
		{ "dirname(\"/a/b/\")", "= \"/a/b\"" },
		{ "dirname(\"a\")", "= \".\"" },
		{ "dirname(\"/a\")", "= \"/\"" },
		{ "dirname(\"a/../b/c\")", "= \"b\"" },
		{ "abspath(\"/a/../b//c/.\")", "= \"/b/c\"" },
		{ "abspath(\"/..\")", "= \"/\"" },
		{ "substr(abspath(\"x\"), 0, 1)", "= \"/\"" },
		{ "abspath(\"\") == abspath(\".\")", "= true" },
		{ "pathexpand(\"~/x/../y\")", "= \"/home/somebody/y\"" },
		{ "pathexpand(\"~\")", "= \"/home/somebody\"" },
		{ "pathexpand(\"a/~\")", "= \"a/~\"" },
		{ "pathexpand(\"~x\")", "! pathexpand(): only ~ alone" },
	};
	char path[] = "/tmp/drover-test-XXXXXX";
	int dir = make_tree(path);
	const struct hcl_files allowed = { path, true }, refused = { path, false };

	ck_assert_int_eq(setenv("HOME", "/home/somebody", 1), 0);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		check(cases[i][0], cases[i][1], &allowed);
		if (*cases[i][1] == '=' && !strstr(cases[i][0], "abspath("))
			check(cases[i][0], "! ", &refused);
	}
	remove_tree(dir, path);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, results);
	tcase_add_test(tc, the_table_is_sorted);
	tcase_add_test(tc, large_results_are_refused);
	tcase_add_test(tc, deep_results_are_refused);
	tcase_add_test(tc, files);
}

int
main(void)
{
	return unit_run("hcl_functions", add);
}
