// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_ren_values.c: values of a template, JSON up to the first newline, and the template after it,
 * as the supervisor sends both to template-renderer. Runs in: a fuzzer.
 */
#include <string.h>

#include "template-renderer/ren.h"
#include "tests/fuzz/fuzz.h"

static const struct template_limits limits = {
	.memory_bytes = 1 << 20, .output_bytes = 1 << 16, .steps = 20000, .depth = 60
};

static void
render(struct ren_values *v, const char *text, size_t len)
{
	const struct template_options options = { .limits = &limits };
	char *problem = NULL;
	struct template *t = template_parse(text, len, &options, &problem);
	const struct template_result *r;

	HOLDS((t != NULL) == (problem == NULL));
	if (t) {
		r = template_render(t, &v->data);
		HOLDS(r->problem ? *r->problem != '\0' : r->len <= limits.output_bytes);
	}
	free(problem);
	template_free(t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t len = newline ? (size_t)(newline - data) : size;
	json_t *json = json_loadb((const char *)data, len, JSON_REJECT_DUPLICATES, NULL);
	struct ren_values values;
	struct err e = { 0 };

	if (ren_values_read(&values, json, &e) < 0) {
		HOLDS(e.msg[0]);
	} else {
		render(&values, newline ? (const char *)newline + 1 : "",
		    newline ? size - len - 1 : 0);
		ren_values_done(&values);
	}
	json_decref(json);
	return 0;
}
