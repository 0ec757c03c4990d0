// SPDX-License-Identifier: Apache-2.0
/* fuzz_task_config.c: configurations of a task's driver as job-parser evaluates them: up to a zero
 * byte the configuration, after it the names. What is no JSON object is one text. */
#include <jansson.h>
#include <string.h>

#include "common/utf8.h"
#include "jobspec/task_config.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hcl_limits limits = {
		.source_bytes = 64 * 1024, .memory_bytes = 4 << 20, .steps = 100000, .depth = 60
	};
	const char *text = (const char *)data;
	size_t len = strnlen(text, size), result_len;
	json_t *config = json_loadb(text, len, 0, NULL), *made;
	json_t *values = len < size ? json_loadb(text + len + 1, size - len - 1, 0, NULL) : NULL;
	struct hcl *h = hcl_new(&limits);
	const char *result;

	if (!json_is_object(config)) {
		json_decref(config);
		config = json_pack("{s:o*}", "a", json_stringn(text, len));
	}
	result = task_config_evaluate(h, config, values, &result_len);
	if (result) {
		made = json_loadb(result, result_len, 0, NULL);
		HOLDS(json_is_object(made));
		HOLDS(json_object_size(made) == json_object_size(config));
		json_decref(made);
	} else {
		HOLDS(*task_config_problem(h));
	}
	json_decref(values);
	json_decref(config);
	hcl_free(h);
	return 0;
}
