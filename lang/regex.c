/* SPDX-License-Identifier: Apache-2.0 */
/* regex.c: matches of a regular expression, with RE2. Runs in: cli, job-parser,
 * template-renderer. */
#include "lang/regex.h"

#include <string.h>
#include <unictype.h>
#include <unistr.h>

#include "common/cleanup.h"
#include "lang/pattern.h"
#include "lang/re2.h"

#define GROUP_MAX 100000000 /* larger numbers in a replacement are names, as in the original */

/* Bytes for a program and the states of its matches. Twice as much is tried until the program fits,
 * and until there is memory for so many states that none are made again and again. */
#define PROGRAM_LEAST      ((size_t)64 << 10)
#define PROGRAM_MOST       ((size_t)32 << 20)
#define STATES_INSTRUCTION ((size_t)768) /* for each instruction */
#define STATES_MOST        ((size_t)4 << 20)
/* Bytes that RE2 needs for a while to parse a byte of a pattern, and the name of a category. */
#define PARSE_BYTE     128
#define PARSE_CATEGORY ((size_t)32 << 10)
/* The steps of a search. RE2 reads a byte in 1 to 4 ns. It needs up to 2 ns for each instruction
 * where a pattern has too many states to remember, and where the groups of a match are wanted; but
 * in a large program most instructions are alternatives, of which few are tried. Bytes after a
 * match that were read to see whether it goes on are not known here; in workers the limit of their
 * time bounds them, in the cli nothing does. */
#define INSTRUCTIONS_MAX      ((size_t)4096)
#define INSTRUCTIONS_PER_READ 16 /* as much as one more byte */
#define INSTRUCTIONS_PER_STEP 64 /* of each byte of a match with groups */

struct regex {
	struct arena *arena;
	struct pattern pattern;
	struct re2_program *program;
	size_t size;     /* instructions, at most INSTRUCTIONS_MAX */
	size_t n_groups; /* without the match */
	size_t *groups;  /* of the match that is replaced */
	const char *s;
};

static void
free_program(void *regex)
{
	re2_free(((struct regex *)regex)->program);
}

/* The memory that parsing the pattern takes meanwhile. */
static size_t
parsing_memory(const struct text *pattern)
{
	size_t n = PARSE_BYTE * pattern->len;

	for (size_t i = 0; i + 1 < pattern->len; i++)
		n += pattern->text[i] == '\\' && strchr("pP", pattern->text[i + 1]) ? PARSE_CATEGORY
										    : 0;
	return n;
}

static bool
has_memory_for_states(const struct regex *r, size_t memory)
{
	return memory >= STATES_MOST || memory >= STATES_INSTRUCTION * re2_size(r->program);
}

/* Compiles with as much memory as is needed. Returns false with *ret_problem. */
static bool
compile(struct regex *r, struct re2_problem *ret_problem)
{
	const struct text *pattern = &r->pattern.text;
	size_t meanwhile = parsing_memory(pattern);

	for (size_t most = PROGRAM_LEAST; most <= PROGRAM_MOST; most *= 2) {
		arena_count_bytes(r->arena, most / 4);
		arena_count_memory(r->arena, most + meanwhile);
		r->program = re2_compile(pattern->text, pattern->len, most, ret_problem);
		r->arena->memory -= meanwhile;
		if (r->program && has_memory_for_states(r, most))
			return true;
		r->arena->memory -= most;
		if (!r->program && !ret_problem->too_large)
			return false;
		re2_free(steal_ptr(&r->program));
	}
	return false;
}

/* Says where, if the wrong part is at one place of the expression. */
static const char *
describe(struct arena *arena, const struct re2_problem *problem, const char *s, size_t len)
{
	const char *at = NULL, *other = NULL;

	if (problem->too_large)
		return "it is too large";
	if (problem->part_len > 0)
		at = memmem(s, len, problem->part, problem->part_len);
	if (at)
		other =
		    memmem(at + 1, len - (size_t)(at + 1 - s), problem->part, problem->part_len);
	if (!at || other)
		return problem->why;
	return arena_printf(arena, "%s, at byte %zu", problem->why, (size_t)(at - s));
}

struct regex *
regex_compile(struct arena *arena, const char *s, size_t len, const char **ret_why)
{
	struct regex *r = arena_new(arena, struct regex);
	struct re2_problem problem;
	size_t at = 0;

	r->arena = arena;
	arena_at_end(arena, free_program, r);
	arena_count_bytes(arena, 16 * len);
	*ret_why = pattern_translate(arena, s, len, &r->pattern, &at);
	if (*ret_why) {
		*ret_why = arena_printf(arena, "%s, at byte %zu", *ret_why, at);
		return NULL;
	}
	if (!compile(r, &problem)) {
		*ret_why = describe(arena, &problem, s, len);
		return NULL;
	}
	r->size = re2_size(r->program);
	if (r->size > INSTRUCTIONS_MAX)
		r->size = INSTRUCTIONS_MAX;
	r->n_groups = re2_groups(r->program);
	r->groups = arena_alloc(arena, 2 * (r->n_groups + 1) * sizeof *r->groups);
	return r;
}

/* Finds n groups, of which the match is the first. */
static bool
find(struct regex *r, const char *s, size_t len, size_t from, size_t *groups, size_t n)
{
	bool found = re2_find(r->program, s ? s : "", len, from, groups, n);
	size_t read = (found ? groups[1] : len) - from;

	arena_count_bytes(r->arena, read + read * r->size / INSTRUCTIONS_PER_READ);
	if (n > 1 && found)
		arena_step(r->arena, (groups[1] - groups[0]) * r->size / INSTRUCTIONS_PER_STEP);
	return found;
}

bool
regex_find(struct regex *r, const char *s, size_t len, size_t from, size_t ret[2])
{
	return find(r, s, len, from, ret, 1);
}

static void
add_group(struct regex *r, size_t i, struct text *out)
{
	const size_t *group = r->groups + 2 * i;

	if (i <= r->n_groups && *group != RE2_UNSET)
		text_bytes(out, r->s + group[0], group[1] - group[0]);
}

/* Of groups with one name, the first that matched. */
static void
add_named_group(struct regex *r, const char *name, size_t len, struct text *out)
{
	const struct pattern_name *x;

	STAILQ_FOREACH (x, &r->pattern.names, entry) {
		arena_step(r->arena, 1);
		if (x->group <= r->n_groups && x->len == len && memcmp(x->name, name, len) == 0 &&
		    r->groups[2 * x->group] != RE2_UNSET) {
			add_group(r, x->group, out);
			return;
		}
	}
}

/* The length of the letters, digits and underscores at s. */
static size_t
name_length(const char *s, size_t len)
{
	size_t n = 0;
	ucs4_t ch;

	while (n < len) {
		int some = u8_mbtoucr(&ch, (const uint8_t *)s + n, len - n);

		if (some <= 0 || !(ch == '_' || uc_is_general_category(ch, UC_LETTER) ||
				     uc_is_general_category(ch, UC_DECIMAL_DIGIT_NUMBER)))
			break;
		n += (size_t)some;
	}
	return n;
}

static bool
is_group_number(const char *name, size_t len, size_t *ret)
{
	*ret = 0;
	if (len > 1 && *name == '0')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (name[i] < '0' || name[i] > '9' || *ret >= GROUP_MAX)
			return false;
		*ret = 10 * *ret + (size_t)(name[i] - '0');
	}
	return true;
}

/* $1, $name, ${1} or ${name} after the dollar. Returns its length, or 0 if it is none. */
static size_t
expand_group(struct regex *r, const char *s, size_t len, struct text *out)
{
	bool braces = len > 0 && *s == '{';
	const char *name = s + braces;
	size_t n = name_length(name, len - braces), number;

	if (n == 0 || (braces && (n + 1 >= len || name[n] != '}')))
		return 0;
	if (is_group_number(name, n, &number))
		add_group(r, number, out);
	else
		add_named_group(r, name, n, out);
	return n + (braces ? 2 : 0);
}

static void
expand(struct regex *r, const char *s, size_t left, struct text *out)
{
	const char *dollar;
	size_t n;

	while ((dollar = memchr(s, '$', left))) {
		arena_step(r->arena, 1);
		text_bytes(out, s, (size_t)(dollar - s));
		left -= (size_t)(dollar - s) + 1;
		s = dollar + 1;
		if (left > 0 && *s == '$')
			n = 1;
		else
			n = expand_group(r, s, left, out);
		if (n == 0 || *s == '$')
			text_add(out, "$");
		s += n;
		left -= n;
	}
	text_bytes(out, s, left);
}

size_t
regex_next(const char *s, size_t len, size_t from, size_t m_end)
{
	ucs4_t ch;
	size_t width =
	    from < len ? (size_t)u8_mbtouc(&ch, (const uint8_t *)s + from, len - from) : 1;

	return from + width > m_end ? from + width : m_end;
}

/* An empty match right after another match is not replaced. */
void
regex_replace_all(struct regex *r, const char *s, size_t len, const char *by, size_t by_len,
    bool literal, struct text *out)
{
	size_t done = 0, from = 0, *m = r->groups;
	bool expands = !literal && by_len > 0 && memchr(by, '$', by_len);
	size_t n = expands ? r->n_groups + 1 : 1;

	r->s = s;
	while (from <= len && find(r, s, len, from, m, n)) {
		text_bytes(out, s + done, m[0] - done);
		if (m[1] > done || m[0] == 0) {
			if (expands)
				expand(r, by, by_len, out);
			else
				text_bytes(out, by, by_len);
		}
		done = m[1];
		from = regex_next(s, len, from, m[1]);
	}
	text_bytes(out, s + done, len - done);
}
