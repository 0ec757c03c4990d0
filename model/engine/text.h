/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: text that grows. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ENGINE_TEXT_H
#define DROVER_MODEL_ENGINE_TEXT_H

#include <stddef.h>

/* A growing text, NUL-terminated unless NULL; text_done() frees it. */
struct text {
	char *text;
	size_t len, size;
};

void text_append(struct text *t, const char *bytes, size_t len);
void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_json_string(struct text *t, const char *s); /* with quotes */
void text_done(struct text *t);

#endif
