/* SPDX-License-Identifier: Apache-2.0 */
/* fixture_pairs.h: reads a fixture of two lines for each case: an input, and "= RESULT" or
 * "! SENTENCE". Runs in: unit tests. */
#ifndef DROVER_TESTS_UNIT_FIXTURE_PAIRS_H
#define DROVER_TESTS_UNIT_FIXTURE_PAIRS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static inline bool
fixture_line(FILE *f, char **line, size_t *size)
{
	ssize_t n = getline(line, size, f);

	if (n > 0 && (*line)[n - 1] == '\n')
		(*line)[n - 1] = '\0';
	return n >= 0;
}

/* Fails unless `found` is the result, or begins with the sentence. */
static inline void
fixture_compare(const char *input, const char *found, const char *expected)
{
	if (*found != *expected ||
	    (*found == '=' ? strcmp(found, expected)
			   : strncmp(found, expected, strlen(expected))) != 0)
		ck_abort_msg("%s\n  is %s\n  not %s", input, found, expected);
}

/* Calls check for each pair; empty lines and those with # are skipped. Returns their number. */
static inline size_t
fixture_pairs(const char *path, void (*check)(const char *input, const char *expected))
{
	char *input = NULL, *expected = NULL;
	size_t input_size = 0, expected_size = 0, n = 0;
	FILE *f = fopen(path, "re");

	ck_assert_ptr_nonnull(f);
	while (fixture_line(f, &input, &input_size)) {
		if (!*input || *input == '#')
			continue;
		ck_assert(fixture_line(f, &expected, &expected_size));
		check(input, expected);
		n++;
	}
	free(input);
	free(expected);
	(void)fclose(f);
	return n;
}

#endif
