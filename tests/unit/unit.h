/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h: the main function of unit tests. Runs in: unit tests. */
#ifndef DROVER_TESTS_UNIT_H
#define DROVER_TESTS_UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* Runs the tests that add() adds to the only case. Returns the exit code for main. */
static inline int
unit_run(const char *name, void (*add)(TCase *tc))
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	add(tc);
	tcase_set_timeout(tc, 60);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

/* Sets the n bools with which the struct at facts begins to the n lowest bits. Returns the others.
 */
static inline unsigned
unit_bools(void *facts, size_t n, unsigned bits)
{
	bool *b = facts;

	for (size_t i = 0; i < n; i++)
		b[i] = bits >> i & 1;
	return bits >> n;
}

#endif
