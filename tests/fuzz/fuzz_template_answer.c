// SPDX-License-Identifier: Apache-2.0
/* fuzz_template_answer.c: any bytes as an answer of template-renderer to the supervisor. */
#include <string.h>

#include "supervisor/alloc/template_values.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;
	json_t *head = template_answer_read((const char *)data, size, &at), *need;
	const json_t *needs = json_object_get(head, "needs");
	size_t i;

	if (!head)
		return 0;
	HOLDS(at > 0 && at <= size && data[at - 1] == '\n');
	HOLDS(json_is_array(needs) && json_array_size(needs) <= 512);
	json_array_foreach (needs, i, need) {
		const char *name = template_need_name(need);

		HOLDS(strlen(name) <= 512 && template_needs_have(needs, name));
	}
	json_decref(head);
	return 0;
}
