// SPDX-License-Identifier: Apache-2.0
/* test_hcl_functions.c: the functions of job files: fixtures/hcl_functions.txt has their calls and
 * results, which are those of Nomad's parser. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcl/hcl_functions.h"
#include "tests/unit/unit.h"

struct evaluation {
	const struct hcl_expr *expr;
	const struct hcl_scope *scope;
	const char *json;
};

static void
evaluate(struct hcl *h, void *arg)
{
	struct evaluation *x = arg;
	size_t len;

	x->json = hcl_to_json(h, hcl_eval(h, x->expr, x->scope), &len);
}

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

	if (*found != *expected ||
	    (*found == '=' ? strcmp(found, expected)
			   : strncmp(found, expected, strlen(expected))) != 0)
		ck_abort_msg("%s\n  is %s\n  not %s", text, found, expected);
	free(found);
}

static bool
read_line(FILE *f, char **line, size_t *size)
{
	ssize_t n = getline(line, size, f);

	if (n > 0 && (*line)[n - 1] == '\n')
		(*line)[n - 1] = '\0';
	return n >= 0;
}

START_TEST(results)
{
	char *call = NULL, *expected = NULL;
	size_t call_size = 0, expected_size = 0, n = 0;
	FILE *f = fopen(FIXTURES "/hcl_functions.txt", "re");

	ck_assert_ptr_nonnull(f);
	while (read_line(f, &call, &call_size)) {
		if (!*call || *call == '#')
			continue;
		ck_assert(read_line(f, &expected, &expected_size));
		check(call, expected, NULL);
		n++;
	}
	ck_assert_uint_gt(n, 300);
	free(call);
	free(expected);
	(void)fclose(f);
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

static void
add(TCase *tc)
{
	tcase_add_test(tc, results);
	tcase_add_test(tc, the_table_is_sorted);
	tcase_add_test(tc, large_results_are_refused);
}

int
main(void)
{
	return unit_run("hcl_functions", add);
}
