/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_encode.c: base64, URLs, and writing JSON. Runs in: cli, job-parser. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistr.h>

#include "common/base64.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "lang/text.h"

struct hcl_value *
hcl_fn_base64encode(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	char *text = hcl_alloc(c->h, BASE64_SIZE(s->len));

	hcl_count_bytes(c->h, s->len);
	return hcl_string(c->h, text, base64_encode(s->string, s->len, text));
}

static int
digit_of(char ch)
{
	if (ch >= 'A' && ch <= 'Z')
		return ch - 'A';
	if (ch >= 'a' && ch <= 'z')
		return ch - 'a' + 26;
	if (ch >= '0' && ch <= '9')
		return ch - '0' + 52;
	return ch == '+' ? 62 : ch == '/' ? 63 : -1;
}

/* Ends of lines do not count. The bits of the last digit that are no part of a byte may be
 * anything. */
bool
hcl_base64_bytes(struct hcl *h, const char *s, size_t len, char **ret, size_t *ret_len)
{
	char *bytes = hcl_alloc(h, len / 4 * 3 + 3);
	size_t n = 0, digits = 0, padding = 0;
	uint32_t bits = 0;

	hcl_count_bytes(h, len);
	for (size_t i = 0; i < len; i++) {
		int digit = digit_of(s[i]);

		if (s[i] == '\n' || s[i] == '\r')
			continue;
		if (s[i] == '=' && digits % 4 >= 2 && padding < 4 - digits % 4) {
			padding++;
			continue;
		}
		if (digit < 0 || padding > 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		if (digits++ % 4 > 0)
			bytes[n++] = (char)(bits >> (6 - 2 * ((digits - 1) % 4)));
	}
	*ret = bytes;
	*ret_len = n;
	return (digits + padding) % 4 == 0;
}

struct hcl_value *
hcl_fn_base64decode(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	char *bytes;
	size_t len;

	if (!hcl_base64_bytes(c->h, s->string, s->len, &bytes, &len))
		hcl_refuse_argument(c, 0, "this is not base64");
	if (u8_check((const uint8_t *)bytes, len))
		hcl_refuse_argument(c, 0, "the decoded bytes are not UTF-8");
	return hcl_normal_string(c->h, bytes, len);
}

/* As in a query: a space becomes "+". */
struct hcl_value *
hcl_fn_urlencode(struct hcl_call *c)
{
	const struct hcl_value *s = c->args[0];
	struct text t = { .arena = hcl_arena(c->h) };
	char buf[4];

	hcl_count_bytes(c->h, s->len);
	for (size_t i = 0; i < s->len; i++) {
		unsigned char ch = (unsigned char)s->string[i];

		if (ch == ' ')
			(void)snprintf(buf, sizeof buf, "+");
		else if (ch < 0x80 && (isalnum(ch) || (ch && strchr("-_.~", ch))))
			(void)snprintf(buf, sizeof buf, "%c", ch);
		else
			(void)snprintf(buf, sizeof buf, "%%%02X", ch);
		text_add(&t, buf);
	}
	return hcl_text_value(&t);
}

struct hcl_value *
hcl_fn_jsonencode(struct hcl_call *c)
{
	const char *json;
	size_t len;

	if (!hcl_is_wholly_known(c->args[0]))
		return hcl_unknown(c->h, &hcl_type_string);
	json = hcl_to_json(c->h, c->args[0], &len);
	return hcl_normal_string(c->h, json, len);
}
