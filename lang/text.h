/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: a text that grows in an arena. Runs in: cli, job-parser, template-renderer,
 * supervisor (ACL policies), the launcher's configuration child. */
#ifndef DROVER_LANG_TEXT_H
#define DROVER_LANG_TEXT_H

#include "lang/arena.h"

/* Starts as { .arena = a }. text has a NUL after its len bytes; it is NULL before the first
 * addition. */
struct text {
	struct arena *arena;
	char *text;
	size_t len, size;
};

void text_bytes(struct text *t, const char *bytes, size_t n);
void text_add(struct text *t, const char *s);

#endif
