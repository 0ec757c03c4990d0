// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_fet_redirect.c: urls of an artifact's source and of a server to which it redirects, one in
 * each of the first two lines. Runs in: a fuzzer.
 */
#include <string.h>
#include <strings.h>

#include "fetcher/fet_redirect.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *to;
	bool same;

	HOLDS(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	to = text + strcspn(text, "\n");
	if (*to)
		*to++ = '\0';
	same = fet_is_same_server(text, to);
	if (same) {
		HOLDS(fet_is_same_server(text, text) && fet_is_same_server(to, to));
		/* Only from http to https is one way alone permitted. */
		HOLDS(fet_is_same_server(to, text) ||
		      (strncasecmp(text, "http:", 5) == 0 && strncasecmp(to, "https:", 6) == 0));
	}
	free(text);
	return 0;
}
