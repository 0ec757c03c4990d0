/* SPDX-License-Identifier: Apache-2.0 */
/* go_format.c: texts and numbers with width, precision and flags. Runs in: template-renderer. */
#include <stdio.h>
#include <string.h>

#include "template/go_print.h"
#include "template/go_text.h"

static void
add_padding(struct go_printer *p, size_t n, bool zeros_possible)
{
	char some[64];

	memset(some, zeros_possible && p->zero && !p->minus ? '0' : ' ', sizeof some);
	arena_count_bytes(p->out->arena, n);
	for (size_t more; n > 0; n -= more) {
		more = n < sizeof some ? n : sizeof some;
		text_bytes(p->out, some, more);
	}
}

static void
pad_with(struct go_printer *p, const char *s, size_t len, bool zeros_possible)
{
	size_t chars, missing = 0;

	if (p->has_width && p->width > 0) {
		chars = go_count_chars(s, len);
		missing = (size_t)p->width > chars ? (size_t)p->width - chars : 0;
	}
	if (!p->minus)
		add_padding(p, missing, zeros_possible);
	text_bytes(p->out, s, len);
	if (p->minus)
		add_padding(p, missing, zeros_possible);
}

void
go_pad(struct go_printer *p, const char *s, size_t len)
{
	pad_with(p, s, len, true);
}

bool
go_format_bool(struct go_printer *p, bool b, uint32_t verb)
{
	if (verb != 't' && verb != 'v')
		return false;
	go_pad(p, b ? "true" : "false", b ? 4 : 5);
	return true;
}

/* The bytes of the text that the precision, a number of characters, leaves. */
static size_t
truncated(const struct go_printer *p, const char *s, size_t len)
{
	size_t i = 0, n;

	if (!p->has_prec)
		return len;
	for (int left = p->prec; i < len && left > 0; left--, i += n)
		(void)go_char(s + i, len - i, &n);
	return i;
}

static void
format_hex(struct go_printer *p, const char *s, size_t len, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	const char *prefix = upper ? "0X" : "0x";
	size_t n = p->has_prec && (size_t)p->prec < len ? (size_t)p->prec : len, width = 2 * n;
	size_t missing = 0;

	if (n > 0 && p->space)
		width = width * (p->sharp ? 2 : 1) + n - 1;
	else if (n > 0 && p->sharp)
		width += 2;
	if (p->has_width && (size_t)p->width > width)
		missing = (size_t)p->width - width;
	if (!p->minus || n == 0)
		add_padding(p, missing, true);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (i > 0 && p->space)
			text_add(p->out, " ");
		if (p->sharp && (i == 0 || p->space))
			text_add(p->out, prefix);
		text_bytes(p->out, (char[]){ digits[c >> 4], digits[c & 15] }, 2);
	}
	if (p->minus && n > 0)
		add_padding(p, missing, true);
}

static void
format_quoted(struct go_printer *p, const char *s, size_t len)
{
	struct text t = { .arena = p->out->arena };

	len = truncated(p, s, len);
	if (p->sharp && go_can_backquote(s, len)) {
		text_add(&t, "`");
		text_bytes(&t, s, len);
		text_add(&t, "`");
	} else {
		go_quote(&t, s, len, p->plus);
	}
	go_pad(p, t.text, t.len);
}

bool
go_format_string(struct go_printer *p, const char *s, size_t len, uint32_t verb)
{
	if (verb == 'q' || (verb == 'v' && p->sharp_v))
		format_quoted(p, s, len);
	else if (verb == 'v' || verb == 's')
		go_pad(p, s, truncated(p, s, len));
	else if (verb == 'x' || verb == 'X')
		format_hex(p, s, len, verb == 'X');
	else
		return false;
	return true;
}

/* U+0041, and the character itself in quotes for %#U. */
static void
format_unicode(struct go_printer *p, uint64_t u)
{
	struct text t = { .arena = p->out->arena };

	text_add(&t, arena_printf(t.arena, "U+%0*llX", p->has_prec && p->prec > 4 ? p->prec : 4,
			 (unsigned long long)u));
	if (p->sharp && u <= GO_CHAR_MAX && go_is_print((uint32_t)u)) {
		text_add(&t, " '");
		go_add_char(&t, (uint32_t)u);
		text_add(&t, "'");
	}
	pad_with(p, t.text, t.len, false);
}

static size_t
write_digits(char *end, uint64_t u, unsigned base, bool upper)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char *at = end;

	do
		*--at = digits[u % base];
	while ((u /= base) > 0);
	return (size_t)(end - at);
}

static void
format_digits(struct go_printer *p, uint64_t u, bool is_signed, unsigned base, uint32_t verb)
{
	struct text t = { .arena = p->out->arena };
	bool negative = is_signed && (int64_t)u < 0;
	char digits[64];
	size_t n, least = 0;

	if (negative)
		u = -u;
	if (p->has_prec) {
		least = (size_t)p->prec;
		if (p->prec == 0 && u == 0) {
			add_padding(p, p->has_width ? (size_t)p->width : 0, false);
			return;
		}
	} else if (p->zero && !p->minus && p->has_width) {
		least = (size_t)p->width;
		if (least > 0 && (negative || p->plus || p->space))
			least--;
	}
	n = write_digits(digits + sizeof digits, u, base, verb == 'X');
	text_add(&t, negative ? "-" : p->plus ? "+" : p->space ? " " : "");
	if (verb == 'O')
		text_add(&t, "0o");
	if (p->sharp && base == 2)
		text_add(&t, "0b");
	if (p->sharp && base == 16)
		text_add(&t, verb == 'X' ? "0X" : "0x");
	if (p->sharp && base == 8 && n >= least && u != 0)
		text_add(&t, "0");
	arena_count_bytes(t.arena, least);
	for (size_t i = n; i < least; i++)
		text_add(&t, "0");
	text_bytes(&t, digits + sizeof digits - n, n);
	pad_with(p, t.text, t.len, false);
}

static void
format_char(struct go_printer *p, uint64_t u, bool quoted)
{
	struct text t = { .arena = p->out->arena };
	uint32_t ch = u > GO_CHAR_MAX ? GO_BAD_CHAR : (uint32_t)u;

	if (quoted)
		go_quote_char(&t, ch, p->plus);
	else
		go_add_char(&t, ch);
	go_pad(p, t.text, t.len);
}

bool
go_format_int(struct go_printer *p, uint64_t u, bool is_signed, uint32_t verb)
{
	bool sharp = p->sharp;

	switch (verb) {
	case 'v':
		p->sharp = sharp || (p->sharp_v && !is_signed);
		format_digits(p, u, is_signed, p->sharp_v && !is_signed ? 16 : 10, verb);
		p->sharp = sharp;
		return true;
	case 'd':
		format_digits(p, u, is_signed, 10, verb);
		return true;
	case 'b':
		format_digits(p, u, is_signed, 2, verb);
		return true;
	case 'o':
	case 'O':
		format_digits(p, u, is_signed, 8, verb);
		return true;
	case 'x':
	case 'X':
		format_digits(p, u, is_signed, 16, verb);
		return true;
	case 'c':
	case 'q':
		format_char(p, u, verb == 'q');
		return true;
	case 'U':
		format_unicode(p, u);
		return true;
	default:
		return false;
	}
}

/* %#v and the like: a point always, and trailing zeros for the digits that the precision has. */
static void
add_sharp(struct text *t, char verb, int prec)
{
	char *tail = NULL;
	int digits = strchr("vgGx", verb) ? (prec < 0 ? 6 : prec) : 0;
	bool point = false, nonzero = false;
	struct text more = { .arena = t->arena };

	for (char *c = t->text + 1; *c && !tail; c++) {
		if (*c == '.') {
			point = true;
		} else if (*c == 'p' || *c == 'P' ||
			   ((*c == 'e' || *c == 'E') && verb != 'x' && verb != 'X')) {
			tail = c;
		} else {
			nonzero |= *c != '0';
			digits -= nonzero;
		}
	}
	text_bytes(&more, t->text, tail ? (size_t)(tail - t->text) : t->len);
	if (!point) {
		if (more.len == 2 && more.text[1] == '0')
			digits--;
		text_add(&more, ".");
	}
	arena_count_bytes(t->arena, digits > 0 ? (size_t)digits : 0);
	for (; digits > 0; digits--)
		text_add(&more, "0");
	if (tail)
		text_add(&more, tail);
	*t = more;
}

static void
format_float(struct go_printer *p, double f, char verb, int prec)
{
	struct text t = { .arena = p->out->arena }, digits = t;
	bool shown;

	if (p->has_prec)
		prec = p->prec;
	arena_count_bytes(t.arena, prec > 0 ? (size_t)prec : 0);
	go_add_float(&digits, f, verb, prec);
	if (*digits.text != '-' && *digits.text != '+')
		text_add(&t, "+");
	text_bytes(&t, digits.text, digits.len);
	if (p->space && *t.text == '+' && !p->plus)
		*t.text = ' ';
	if (t.text[1] == 'I' || t.text[1] == 'N') {
		shown = t.text[1] == 'I' || p->space || p->plus;
		pad_with(p, t.text + !shown, t.len - !shown, false);
		return;
	}
	if (p->sharp && verb != 'b')
		add_sharp(&t, verb, prec);
	shown = p->plus || *t.text != '+';
	if (shown && p->zero && !p->minus && p->has_width && (size_t)p->width > t.len) {
		text_bytes(p->out, t.text, 1);
		add_padding(p, (size_t)p->width - t.len, true);
		text_bytes(p->out, t.text + 1, t.len - 1);
		return;
	}
	go_pad(p, t.text + !shown, t.len - !shown);
}

bool
go_format_float(struct go_printer *p, double f, uint32_t verb)
{
	if (verb == 'v')
		format_float(p, f, 'g', -1);
	else if (verb < 0x80 && verb && strchr("bgGxX", (int)verb))
		format_float(p, f, (char)verb, -1);
	else if (verb < 0x80 && verb && strchr("feEF", (int)verb))
		format_float(p, f, verb == 'F' ? 'f' : (char)verb, 6);
	else
		return false;
	return true;
}
