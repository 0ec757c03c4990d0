/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_class.c: the parts of regular expressions that match one character. Runs in: cli,
 * job-parser, template-renderer. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

#include "lang/pattern.h"

#define CODE_POINT_MAX 0x10ffff
#define PROPERTY_MAX   40 /* bytes of the name of a script or category */

void
pattern_add_char(struct text *out, uint32_t ch)
{
	char buf[16];

	(void)snprintf(buf, sizeof buf, ch < 0x80 && isalnum((int)ch) ? "%c" : "\\x{%x}", ch);
	text_add(out, buf);
}

static size_t
read_octal(const char *s, size_t len, uint32_t *ret)
{
	size_t n = 1;

	for (*ret = 0; n < 4 && n < len && s[n] >= '0' && s[n] <= '7'; n++)
		*ret = 8 * *ret + (uint32_t)(s[n] - '0');
	return n;
}

static size_t
read_hex(const char *s, size_t len, uint32_t *ret)
{
	bool braces = len > 2 && s[2] == '{';
	size_t first = braces ? 3 : 2, n = first, most = braces ? len : 4;

	for (*ret = 0; n < most && n < len && isxdigit((unsigned char)s[n]); n++) {
		char digit[2] = { s[n], '\0' };

		*ret = 16 * *ret + (uint32_t)strtoul(digit, NULL, 16);
		if (*ret > CODE_POINT_MAX)
			return 0;
	}
	if (!braces)
		return n == 4 ? n : 0;
	return n > first && n < len && s[n] == '}' ? n + 1 : 0;
}

size_t
pattern_escape(const char *s, size_t len, uint32_t *ret)
{
	static const char names[] = "a\af\fn\nr\rt\tv\v";
	char ch = len > 1 ? s[1] : 'a';

	if (len < 2)
		return 0;
	if (ch == '0' || (ch >= '1' && ch <= '7' && len > 2 && s[2] >= '0' && s[2] <= '7'))
		return read_octal(s, len, ret);
	if (ch == 'x')
		return read_hex(s, len, ret);
	for (const char *x = names; *x; x += 2)
		if (*x == ch) {
			*ret = (uint32_t)x[1];
			return 2;
		}
	if ((unsigned char)ch >= 0x80 || isalnum((unsigned char)ch))
		return 0;
	*ret = (uint32_t)ch;
	return 2;
}

/* The short name of a category of Unicode, such as "Lu", or NULL. Spaces, hyphens and underscores
 * in names do not count, nor does case. */
static const char *
find_category(const char *name)
{
	static const char *const names[][2] = { { "any", "Any" }, { "lc", "L&" },
		{ "casedletter", "L&" }, { "closepunctuation", "Pe" }, { "combiningmark", "M" },
		{ "connectorpunctuation", "Pc" }, { "control", "Cc" }, { "cntrl", "Cc" },
		{ "currencysymbol", "Sc" }, { "dashpunctuation", "Pd" }, { "decimalnumber", "Nd" },
		{ "digit", "Nd" }, { "enclosingmark", "Me" }, { "finalpunctuation", "Pf" },
		{ "format", "Cf" }, { "initialpunctuation", "Pi" }, { "letter", "L" },
		{ "letternumber", "Nl" }, { "lineseparator", "Zl" }, { "lowercaseletter", "Ll" },
		{ "mark", "M" }, { "mathsymbol", "Sm" }, { "modifierletter", "Lm" },
		{ "modifiersymbol", "Sk" }, { "nonspacingmark", "Mn" }, { "number", "N" },
		{ "openpunctuation", "Ps" }, { "other", "C" }, { "otherletter", "Lo" },
		{ "othernumber", "No" }, { "otherpunctuation", "Po" }, { "othersymbol", "So" },
		{ "paragraphseparator", "Zp" }, { "privateuse", "Co" }, { "punctuation", "P" },
		{ "punct", "P" }, { "separator", "Z" }, { "spaceseparator", "Zs" },
		{ "spacingmark", "Mc" }, { "surrogate", "Cs" }, { "symbol", "S" },
		{ "titlecaseletter", "Lt" }, { "unassigned", "Cn" }, { "uppercaseletter", "Lu" } };
	static const char *const letters[] = { "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm",
		"Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd",
		"Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i][0], name) == 0)
			return names[i][1];
	for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
		if (strcasecmp(letters[i], name) == 0)
			return letters[i];
	return NULL;
}

/* Translates the name of a category or script. Without regard to case, a category of letters of one
 * case has those of both. */
static const char *
name_property(struct arena *arena, const char *name, bool fold, bool negative)
{
	const char *category = find_category(name);

	if (strcmp(name, "ascii") == 0)
		return negative ? "[^\\x00-\\x7f]" : "[\\x00-\\x7f]";
	if (strcmp(name, "assigned") == 0)
		return negative ? "\\p{Cn}" : "\\P{Cn}";
	if (fold && category && *category == 'L' && category[1] && strchr("ult", category[1]))
		category = "L&";
	return arena_printf(arena, "\\%c{%s%s}", negative ? 'P' : 'p',
	    category ? "" : "sc:", category ? category : name);
}

static const char *
read_property(struct arena *arena, const char *s, size_t len, bool fold, bool inside,
    size_t *ret_len, const char **ret_why)
{
	bool negative = s[1] == 'P', braces = len > 2 && s[2] == '{';
	const char *end = braces ? memchr(s, '}', len) : s + 3, *at = s + 2 + braces, *made;
	char name[PROPERTY_MAX + 1] = "";
	size_t n = 0;

	*ret_why = "unknown category or script of characters";
	if (len < 3 || !end)
		return NULL;
	*ret_len = (size_t)(end - s) + braces;
	if (at < end && *at == '^') {
		negative = !negative;
		at++;
	}
	for (; at < end; at++) {
		if (n == PROPERTY_MAX || !(isalpha((unsigned char)*at) || strchr(" _-", *at)))
			return NULL;
		if (isalpha((unsigned char)*at))
			name[n++] = (char)tolower((unsigned char)*at);
	}
	if (n == 0)
		return NULL;
	*ret_why = NULL;
	made = name_property(arena, name, fold, negative);
	if (inside && *made == '[')
		return negative ? "\\x{80}-\\x{10ffff}" : "\\x00-\\x7f";
	return made;
}

/* \s does not have the vertical tab, other than in PCRE2. */
const char *
pattern_set(struct arena *arena, const char *s, size_t len, bool fold, bool inside, size_t *ret_len,
    const char **ret_why)
{
	char ch = len > 1 ? s[1] : '\0';

	*ret_why = NULL;
	*ret_len = 2;
	switch (ch) {
	case 'p':
	case 'P':
		return read_property(arena, s, len, fold, inside, ret_len, ret_why);
	case 'd':
		return inside ? "0-9" : "[0-9]";
	case 'D':
		return inside ? "\\D" : "[^0-9]";
	case 's':
		return inside ? "\\t\\n\\f\\r\\x20" : "[\\t\\n\\f\\r\\x20]";
	case 'S':
		return inside ? "\\S\\x{b}" : "[^\\t\\n\\f\\r\\x20]";
	case 'w':
		return inside ? "0-9A-Za-z_" : "[0-9A-Za-z_]";
	case 'W':
		return inside ? "\\W" : "[^0-9A-Za-z_]";
	default:
		return NULL;
	}
}

/* [:name:] or [:^name:] inside a set. Returns the length, or 0 if there is none here. */
static size_t
read_posix(struct text *out, const char *s, size_t len, const char **ret_why)
{
	static const char *const names[] = { "alnum", "alpha", "ascii", "blank", "cntrl", "digit",
		"graph", "lower", "print", "punct", "space", "upper", "word", "xdigit" };
	const char *end =
	    len > 2 && s[0] == '[' && s[1] == ':' ? memmem(s + 2, len - 2, ":]", 2) : NULL;
	const char *name = s + 2;
	size_t n;

	if (!end)
		return 0;
	name += *name == '^';
	n = (size_t)(end - name);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0) {
			text_bytes(out, s, (size_t)(end - s) + 2);
			return (size_t)(end - s) + 2;
		}
	*ret_why = "unknown name of a set of characters";
	return 0;
}

/* One character of a set, plain or escaped. Returns the length, or 0. */
static size_t
read_member(const char *s, size_t len, uint32_t *ret)
{
	ucs4_t ch;
	int n;

	if (len == 0)
		return 0;
	if (*s == '\\')
		return pattern_escape(s, len, ret);
	n = u8_mbtoucr(&ch, (const uint8_t *)s, len);
	*ret = ch;
	return n > 0 ? (size_t)n : 0;
}

static size_t
read_range(struct text *out, const char *s, size_t len, const char **ret_why)
{
	uint32_t low, high;
	size_t n = read_member(s, len, &low), more;

	*ret_why = "a set of characters has a wrong escape, or no end";
	if (n == 0)
		return 0;
	pattern_add_char(out, low);
	if (len - n >= 2 && s[n] == '-' && s[n + 1] != ']') {
		more = read_member(s + n + 1, len - n - 1, &high);
		if (more == 0)
			return 0;
		*ret_why = "a range of characters has its ends in the wrong order";
		if (high < low)
			return 0;
		text_add(out, "-");
		pattern_add_char(out, high);
		n += 1 + more;
	}
	*ret_why = NULL;
	return n;
}

size_t
pattern_class(struct text *out, const char *s, size_t len, bool fold, const char **ret_why)
{
	size_t at = len > 0 && *s == '^', some;
	const char *set;

	*ret_why = NULL;
	text_add(out, at > 0 ? "[^" : "[");
	for (bool first = true; at == len || s[at] != ']' || first; first = false, at += some) {
		arena_step(out->arena, 1);
		some = read_posix(out, s + at, len - at, ret_why);
		if (some == 0 && !*ret_why && at < len && s[at] == '\\') {
			set = pattern_set(out->arena, s + at, len - at, fold, true, &some, ret_why);
			if (set)
				text_add(out, set);
			else
				some = 0;
		}
		if (some == 0 && !*ret_why)
			some = read_range(out, s + at, len - at, ret_why);
		if (*ret_why)
			return 0;
	}
	text_add(out, "]");
	return at + 1;
}
