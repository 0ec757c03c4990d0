/* SPDX-License-Identifier: Apache-2.0 */
/* go_text.c: characters and quoted texts. Runs in: template-renderer. */
#include "template/go_text.h"

#include <stdio.h>
#include <string.h>
#include <unictype.h>
#include <unistr.h>

#include "common/utf8.h"

uint32_t
go_char(const char *s, size_t left, size_t *ret_len)
{
	size_t n = utf8_char_length(s, left);
	uint32_t ch;

	*ret_len = n > 0 ? n : 1;
	if (n == 0)
		return GO_BAD_CHAR;
	ch = (unsigned char)*s & (n == 1 ? 0x7f : 0x7f >> n);
	for (size_t i = 1; i < n; i++)
		ch = ch << 6 | ((unsigned char)s[i] & 0x3f);
	return ch;
}

size_t
go_count_chars(const char *s, size_t len)
{
	size_t count = 0, n;

	for (size_t i = 0; i < len; i += n, count++)
		(void)go_char(s + i, len - i, &n);
	return count;
}

static bool
is_char(uint32_t ch)
{
	return ch <= GO_CHAR_MAX && (ch < 0xd800 || ch > 0xdfff);
}

void
go_add_char(struct text *out, uint32_t ch)
{
	uint8_t bytes[6];
	int n = u8_uctomb(bytes, is_char(ch) ? ch : GO_BAD_CHAR, sizeof bytes);

	text_bytes(out, (const char *)bytes, (size_t)n);
}

bool
go_is_letter(uint32_t ch)
{
	return uc_is_general_category(ch, UC_LETTER);
}

bool
go_is_digit(uint32_t ch)
{
	return uc_is_general_category(ch, UC_DECIMAL_DIGIT_NUMBER);
}

bool
go_is_space(uint32_t ch)
{
	return (ch >= '\t' && ch <= '\r') || ch == ' ' || ch == 0x85 || ch == 0xa0 ||
	       (ch > 0xff && uc_is_property_white_space(ch));
}

bool
go_is_print(uint32_t ch)
{
	if (ch < 0x7f)
		return ch >= ' ';
	return is_char(ch) && ch != 0xad &&
	       (uc_is_general_category(ch, UC_LETTER) || uc_is_general_category(ch, UC_MARK) ||
		   uc_is_general_category(ch, UC_NUMBER) ||
		   uc_is_general_category(ch, UC_PUNCTUATION) ||
		   uc_is_general_category(ch, UC_SYMBOL));
}

static void
add_escaped(struct text *out, uint32_t ch, char quote, bool ascii)
{
	static const char names[] = "\aa\bb\ff\nn\rr\tt\vv";
	char buf[16];

	if (ch == (unsigned char)quote || ch == '\\') {
		text_bytes(out, (char[]){ '\\', (char)ch }, 2);
		return;
	}
	if (ascii ? ch < 0x80 && go_is_print(ch) : go_is_print(ch)) {
		go_add_char(out, ch);
		return;
	}
	for (const char *name = names; *name; name += 2)
		if ((unsigned char)*name == ch) {
			text_bytes(out, (char[]){ '\\', name[1] }, 2);
			return;
		}
	(void)snprintf(buf, sizeof buf,
	    ch < ' ' || ch == 0x7f ? "\\x%02x"
	    : ch < 0x10000         ? "\\u%04x"
				   : "\\U%08x",
	    ch);
	text_add(out, buf);
}

void
go_quote(struct text *out, const char *s, size_t len, bool ascii)
{
	char buf[8];
	size_t n;

	text_add(out, "\"");
	for (size_t i = 0; i < len; i += n) {
		uint32_t ch = go_char(s + i, len - i, &n);

		if (n == 1 && ch == GO_BAD_CHAR) {
			(void)snprintf(buf, sizeof buf, "\\x%02x", (unsigned char)s[i]);
			text_add(out, buf);
		} else {
			add_escaped(out, ch, '"', ascii);
		}
	}
	text_add(out, "\"");
}

void
go_quote_char(struct text *out, uint32_t ch, bool ascii)
{
	text_add(out, "'");
	add_escaped(out, is_char(ch) ? ch : GO_BAD_CHAR, '\'', ascii);
	text_add(out, "'");
}

bool
go_can_backquote(const char *s, size_t len)
{
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		uint32_t ch = go_char(s + i, len - i, &n);

		if (n > 1
			? ch == 0xfeff
			: ch == GO_BAD_CHAR || (ch < ' ' && ch != '\t') || ch == '`' || ch == 0x7f)
			return false;
	}
	return true;
}

static int
digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Reads n digits. */
static bool
read_digits(const char *s, size_t len, size_t n, int base, uint32_t *ret)
{
	uint32_t value = 0;

	if (len < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (digit_of(s[i]) >= base)
			return false;
		value = value * (uint32_t)base + (uint32_t)digit_of(s[i]);
	}
	*ret = value;
	return true;
}

/* The part after the backslash. */
static size_t
unquote_escape(const char *s, size_t len, char quote, uint32_t *ret, bool *ret_byte)
{
	static const char names[] = "a\ab\bf\fn\nr\rt\tv\v\\\\";

	if (len == 0)
		return 0;
	for (const char *name = names; *name; name += 2)
		if (*name == *s) {
			*ret = (unsigned char)name[1];
			return 1;
		}
	if (*s == '\'' || *s == '"') {
		*ret = (unsigned char)*s;
		return *s == quote ? 1 : 0;
	}
	if (*s == 'x') {
		*ret_byte = true;
		return read_digits(s + 1, len - 1, 2, 16, ret) ? 3 : 0;
	}
	if (*s == 'u' || *s == 'U') {
		size_t n = *s == 'u' ? 4 : 8;

		return read_digits(s + 1, len - 1, n, 16, ret) && is_char(*ret) ? n + 1 : 0;
	}
	*ret_byte = true;
	return read_digits(s, len, 3, 8, ret) && *ret <= 0xff ? 3 : 0;
}

size_t
go_unquote_char(const char *s, size_t len, char quote, uint32_t *ret, bool *ret_byte)
{
	size_t n;

	*ret_byte = false;
	if (len == 0 || (*s == quote && (quote == '\'' || quote == '"')))
		return 0;
	if (*s == '\\') {
		n = unquote_escape(s + 1, len - 1, quote, ret, ret_byte);
		return n > 0 ? n + 1 : 0;
	}
	*ret = go_char(s, len, &n);
	return n;
}

bool
go_unquote(struct text *out, const char *s, size_t len)
{
	size_t n;
	uint32_t ch;
	bool byte;

	text_add(out, "");
	if (len < 2 || s[0] != s[len - 1])
		return false;
	if (*s == '`') {
		for (size_t i = 1; i < len - 1; i++)
			if (s[i] != '\r')
				text_bytes(out, s + i, 1);
		return true;
	}
	for (size_t i = 1; i < len - 1; i += n) {
		n = go_unquote_char(s + i, len - 1 - i, '"', &ch, &byte);
		if (n == 0 || s[i] == '\n')
			return false;
		if (byte || ch < 0x80)
			text_bytes(out, (char[]){ (char)ch }, 1);
		else if (n == 1)
			text_bytes(out, s + i, 1); /* a byte that is no UTF-8 */
		else
			go_add_char(out, ch);
	}
	return true;
}
