/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: the interface of a fuzz target, which aborts when a check fails. Runs in: tests. */
#ifndef DROVER_TESTS_FUZZ_H
#define DROVER_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's entry point; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(                                                                   \
			    stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

#endif
