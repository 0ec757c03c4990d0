/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: text that grows, and JSON as text. Runs in: supervisor, job-parser, cli. */
#ifndef DROVER_MODEL_ENGINE_TEXT_H
#define DROVER_MODEL_ENGINE_TEXT_H

#include <jansson.h>
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

/* As json_dumps() with JSON_ENCODE_ANY, but reals are as short as Go writes them: 0.1, not
 * 0.10000000000000001. The caller frees it. */
char *json_text(const json_t *json, size_t flags);

#endif
