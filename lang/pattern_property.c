/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_property.c: the names of categories and scripts of characters in regular expressions,
 * translated for RE2. Runs in: cli, job-parser, template-renderer. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unictype.h>

#include "lang/pattern.h"

#define CODE_POINT_MAX 0x10ffff
#define NAME_MAX       40 /* bytes of the name of a script or category */
#define ASSIGNED       "\\pL\\pM\\pN\\pP\\pS\\pZ"

/* Sets for which RE2 has no name, as members of a set, and the sets of all other characters; ? is
 * for the characters that are unassigned. */
static const char *const sets[][3] = {
	{ "ascii", "\\x00-\\x7f", "\\x80-\\x{10ffff}" },
	{ "assigned", ASSIGNED "\\pC", "?" },
	{ "cn", "?", ASSIGNED "\\pC" },
	{ "c", "\\pC?", ASSIGNED },
	{ "lc", "\\p{Lu}\\p{Ll}\\p{Lt}", "\\p{Lm}\\p{Lo}\\pM\\pN\\pP\\pS\\pZ\\pC?" },
};

/* Other names of categories. */
static const char *const names[][2] = { { "casedletter", "lc" }, { "closepunctuation", "pe" },
	{ "cntrl", "cc" }, { "combiningmark", "m" }, { "connectorpunctuation", "pc" },
	{ "control", "cc" }, { "currencysymbol", "sc" }, { "dashpunctuation", "pd" },
	{ "decimalnumber", "nd" }, { "digit", "nd" }, { "enclosingmark", "me" },
	{ "finalpunctuation", "pf" }, { "format", "cf" }, { "initialpunctuation", "pi" },
	{ "letter", "l" }, { "letternumber", "nl" }, { "lineseparator", "zl" },
	{ "lowercaseletter", "ll" }, { "mark", "m" }, { "mathsymbol", "sm" },
	{ "modifierletter", "lm" }, { "modifiersymbol", "sk" }, { "nonspacingmark", "mn" },
	{ "number", "n" }, { "openpunctuation", "ps" }, { "other", "c" }, { "otherletter", "lo" },
	{ "othernumber", "no" }, { "otherpunctuation", "po" }, { "othersymbol", "so" },
	{ "paragraphseparator", "zp" }, { "privateuse", "co" }, { "punct", "p" },
	{ "punctuation", "p" }, { "separator", "z" }, { "spaceseparator", "zs" },
	{ "spacingmark", "mc" }, { "surrogate", "cs" }, { "symbol", "s" },
	{ "titlecaseletter", "lt" }, { "unassigned", "cn" }, { "uppercaseletter", "lu" } };

static const char *const categories[] = { "Any", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo",
	"Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi",
	"Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs" };

/* Compares a lower-case name without spaces, hyphens and underscores with one that may have them.
 */
static bool
is_name(const char *name, const char *other)
{
	for (; *other; other++) {
		if (strchr(" -_", *other))
			continue;
		if (*name++ != tolower((unsigned char)*other))
			return false;
	}
	return *name == '\0';
}

/* RE2's name of a category or script, or NULL. */
static const char *
find_name(const char *name)
{
	const uc_script_t *scripts;
	size_t n;

	for (size_t i = 0; i < sizeof categories / sizeof categories[0]; i++)
		if (is_name(name, categories[i]))
			return categories[i];
	uc_all_scripts(&scripts, &n);
	for (size_t i = 0; i < n; i++)
		if (is_name(name, scripts[i].name))
			return scripts[i].name;
	return NULL;
}

static void
add_unassigned(struct text *out)
{
	char range[32];
	ucs4_t end;

	arena_count_bytes(out->arena, CODE_POINT_MAX);
	for (ucs4_t ch = 0; ch <= CODE_POINT_MAX; ch = end + 1) {
		for (end = ch; end <= CODE_POINT_MAX && uc_is_general_category(end, UC_UNASSIGNED);
		     end++)
			;
		if (end == ch)
			continue;
		(void)snprintf(range, sizeof range, "\\x{%x}-\\x{%x}", ch, end - 1);
		text_add(out, range);
	}
}

static void
add_set(struct text *out, const char *members, bool inside, bool negative)
{
	if (!inside)
		text_add(out, negative ? "[^" : "[");
	for (; *members; members++) {
		if (*members == '?')
			add_unassigned(out);
		else
			text_bytes(out, members, 1);
	}
	if (!inside)
		text_add(out, "]");
}

/* Returns false if there is no such name. */
static bool
add_named(struct text *out, const char *name, bool inside, bool negative)
{
	const char *found;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i][0], name) == 0)
			name = names[i][1];
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		if (strcmp(sets[i][0], name) == 0) {
			add_set(out, sets[i][inside && negative ? 2 : 1], inside, negative);
			return true;
		}
	found = find_name(name);
	if (!found)
		return false;
	text_add(out, negative ? "\\P{" : "\\p{");
	text_add(out, found);
	text_add(out, "}");
	return true;
}

size_t
pattern_property(struct text *out, const char *s, size_t len, bool inside)
{
	bool negative = s[1] == 'P', braces = len > 2 && s[2] == '{';
	const char *end = braces ? memchr(s, '}', len) : s + 3, *at = s + 2 + braces;
	char name[NAME_MAX + 1] = "";
	size_t n = 0;

	if (len < 3 || !end)
		return 0;
	if (braces && *at == '^') {
		negative = !negative;
		at++;
	}
	for (; at < end; at++) {
		if (strchr(" -_", *at))
			continue;
		if (n == NAME_MAX || !isalpha((unsigned char)*at))
			return 0;
		name[n++] = (char)tolower((unsigned char)*at);
	}
	return n > 0 && add_named(out, name, inside, negative) ? (size_t)(end - s) + braces : 0;
}
