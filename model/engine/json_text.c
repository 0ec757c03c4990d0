/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.c: texts of JSON values, with numbers as Go writes them. Runs in: supervisor,
 * job-parser, cli. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/decimal.h"
#include "model/engine/text.h"

/* The end of the string whose opening quote is at p. */
static const char *
string_end(const char *p)
{
	for (p++; *p != '"'; p++)
		p += *p == '\\';
	return p + 1;
}

/* Appends the number at p; returns its end. Jansson writes a real with a dot or an exponent. */
static const char *
append_number(struct text *t, const char *p)
{
	size_t len = strspn(p, "+-.0123456789eE");
	char buf[REAL_TEXT_SIZE];

	if (memchr(p, '.', len) || memchr(p, 'e', len))
		(void)real_format(strtod(p, NULL), buf);
	else
		buf[0] = '\0';
	text_append(t, buf[0] ? buf : p, buf[0] ? strlen(buf) : len);
	return p + len;
}

char *
json_text(const json_t *json, size_t flags)
{
	cleanup_free char *dumped = json_dumps(json, flags | JSON_ENCODE_ANY);
	struct text t = { 0 };
	const char *p = dumped;

	if (!dumped)
		return NULL;
	while (*p) {
		size_t n = strcspn(p, "\"-0123456789");

		text_append(&t, p, n);
		p += n;
		if (*p == '"') {
			const char *end = string_end(p);

			text_append(&t, p, (size_t)(end - p));
			p = end;
		} else if (*p) {
			p = append_number(&t, p);
		}
	}
	return t.text;
}
