/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: what a fuzz target is. It aborts when what it checks does not hold. Runs in: tests. */
#ifndef DROVER_TESTS_FUZZ_H
#define DROVER_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's own name; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(                                                                   \
			    stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
