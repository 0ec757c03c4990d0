/* SPDX-License-Identifier: Apache-2.0 */
/* unit.h: the main function of unit tests. Runs in: unit tests. */
#ifndef DROVER_TESTS_UNIT_H
#define DROVER_TESTS_UNIT_H

#include <check.h>

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

#endif
