// SPDX-License-Identifier: Apache-2.0
/* fuzz_duration.c: any text as a duration; a valid one is printed and parsed again. */
#include <string.h>

#include "common/duration.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256], printed[DURATION_SIZE];
	struct err e = { 0 };
	int64_t ns, again;

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (duration_parse(text, &ns, &e) < 0) {
		HOLDS(e.msg[0]);
		return 0;
	}
	duration_format(ns, printed);
	HOLDS(duration_parse(printed, &again, NULL) == 0 && again == ns);
	return 0;
}
