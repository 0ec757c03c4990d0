// SPDX-License-Identifier: Apache-2.0
/* fuzz_task_spec.c: any bytes as a task spec. Its texts are inside it and end with a NUL, and
 * writing them again gives the same spec. */
#include <errno.h>
#include <string.h>

#include "common/spec.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_writer w = { 0 };
	struct spec_entry entry;
	size_t at = 0, before = 0;
	int r;

	while ((r = spec_next(data, size, &at, &entry)) == 1) {
		HOLDS(at > before && at <= size);
		before = at;
		HOLDS(entry.text[entry.len] == '\0');
		HOLDS(entry.tag == SPEC_FILE_DATA || strlen(entry.text) == entry.len);
		spec_add(&w, (enum spec_tag)entry.tag, entry.text, entry.len);
	}
	HOLDS(r == 0 || r == -EBADMSG);
	HOLDS(w.failed || (w.len == before && (before == 0 || memcmp(w.buf, data, before) == 0)));
	free(w.buf);
	return 0;
}
