// SPDX-License-Identifier: Apache-2.0
/* fuzz_cron.c: any text as a cron expression; each matching time is later than the one before. */
#include <string.h>

#include "model/cron.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t at = 1767225600, next; /* 2026 */
	char text[CRON_TEXT_MAX + 8];
	struct err e = { 0 };
	struct cron c;

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (cron_parse(text, &c, &e) < 0) {
		HOLDS(e.msg[0]);
		return 0;
	}
	for (int i = 0; i < 3 && (next = cron_next(&c, "", at)) != -1; i++) {
		HOLDS(next > at);
		at = next;
	}
	(void)cron_next(&c, "Europe/Berlin", at);
	return 0;
}
