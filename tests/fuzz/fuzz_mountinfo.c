// SPDX-License-Identifier: Apache-2.0
/* fuzz_mountinfo.c: the parser of mountinfo, with any text. Runs in: a fuzzer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mountinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *at = text;
	struct mountinfo m;
	size_t lines = 0;
	int r;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	while ((r = mountinfo_next(&at, &m)) != 0) {
		if (++lines > size + 1)
			abort(); /* it does not terminate */
		if (r < 0)
			continue;
		/* Each string ends inside the text, and a target is an absolute path. */
		if (m.target < text || m.target + strlen(m.target) > text + size ||
		    m.target[0] != '/' || m.type + strlen(m.type) > text + size ||
		    (m.options[0] && m.options + strlen(m.options) > text + size) ||
		    !mountinfo_below(m.target, ""))
			abort();
	}
	free(text);
	return 0;
}
