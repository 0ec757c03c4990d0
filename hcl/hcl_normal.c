// SPDX-License-Identifier: Apache-2.0
/* hcl_normal.c: strings in the normal form of values. Runs in: cli, job-parser. */
#include "hcl/hcl_normal.h"

#include <stdlib.h>
#include <uninorm.h>

#include "hcl/hcl_doc.h"

#define NORMAL_GROWTH 3

/* Whether all characters are below U+0300, which are in normal form; whose bytes are below 0xcc. */
static bool
is_plain(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0xcc)
			return false;
	return true;
}

/* A text that is not UTF-8 stays as it is. */
struct hcl_value *
hcl_normal_string(struct hcl *h, const char *s, size_t len)
{
	size_t room = NORMAL_GROWTH * len + 1;
	uint8_t *buffer, *normal;
	struct hcl_value *v;

	hcl_count_bytes(h, len);
	if (is_plain(s, len))
		return hcl_string(h, s, len);
	buffer = hcl_alloc(h, room);
	normal = u8_normalize(UNINORM_NFC, (const uint8_t *)s, len, buffer, &room);
	if (normal != buffer) {
		free(normal);
		return hcl_string(h, s, len);
	}
	v = hcl_string(h, "", 0);
	buffer[room] = '\0';
	v->string = (const char *)buffer;
	v->len = room;
	return v;
}

struct hcl_value *
hcl_text_value(struct text *t)
{
	struct hcl_value *v;

	if (!is_plain(t->text, t->len))
		return hcl_normal_string(hcl_of_arena(t->arena), t->text, t->len);
	v = hcl_new_object(hcl_of_arena(t->arena), struct hcl_value);
	v->kind = HCL_STRING;
	v->string = t->text ? t->text : "";
	v->len = t->len;
	return v;
}
