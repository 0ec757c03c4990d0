// SPDX-License-Identifier: Apache-2.0
/* fuzz_api_filter.c: any text as an expression of ?filter=; a valid one is applied to an object. */
#include <string.h>

#include "supervisor/http/api_filter.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_with(api_filter_free) struct api_filter *f = NULL;
	char text[API_FILTER_MAX + 8];
	struct filter_budget budget = { 0 };
	json_t *object;
	struct err e = { 0 };

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (api_filter_parse(text, &budget, &f, &e) < 0) {
		HOLDS(e.msg[0]);
		return 0;
	}
	object = json_pack("{s:s, s:i, s:b, s:[s, s], s:{s:s}, s:n, s:[{s:[i]}]}", "A", "running",
	    "B", 5, "C", 1, "D", "x", "y", "E", "k", "v", "F", "G", "h", 7);
	if (api_filter_match(f, object, &e) < 0)
		HOLDS(e.msg[0]);
	json_decref(object);
	return 0;
}
