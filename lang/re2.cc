/* SPDX-License-Identifier: Apache-2.0 */
/*
 * re2.cc: the library RE2, for C. Nothing here calls back into C, so that no longjmp() passes a
 * frame of C++. Runs in: cli, job-parser, template-renderer.
 */
#include "lang/re2.h"

#include <re2/re2.h>
#include <vector>

struct re2_program {
	re2::RE2 re;
	std::vector<re2::StringPiece> groups; /* of the last match */

	re2_program(re2::StringPiece pattern, const re2::RE2::Options &options)
	    : re(pattern, options), groups(1 + re.ok() * re.NumberOfCapturingGroups())
	{
	}
};

static const char *
sentence_of(re2::RE2::ErrorCode code)
{
	switch (code) {
	case re2::RE2::ErrorBadEscape:
		return "unknown escape";
	case re2::RE2::ErrorBadCharClass:
		return "a set of characters is wrong";
	case re2::RE2::ErrorBadCharRange:
		return "wrong range or unknown name of characters";
	case re2::RE2::ErrorMissingBracket:
		return "a set of characters has no end";
	case re2::RE2::ErrorMissingParen:
		return "a group has no end";
	case re2::RE2::ErrorUnexpectedParen:
		return "the end of a group has no beginning";
	case re2::RE2::ErrorTrailingBackslash:
		return "a backslash is the last character";
	case re2::RE2::ErrorRepeatArgument:
		return "there is nothing to repeat";
	case re2::RE2::ErrorRepeatSize:
		return "a repetition is larger than 1000, or from more to less";
	case re2::RE2::ErrorRepeatOp:
		return "a repetition follows another one";
	case re2::RE2::ErrorBadPerlOp:
		return "unknown flags or kind of a group";
	case re2::RE2::ErrorBadUTF8:
		return "this is no UTF-8";
	default:
		return "it cannot be compiled";
	}
}

struct re2_program *
re2_compile(const char *s, size_t len, size_t memory_max, struct re2_problem *ret_problem)
{
	re2::RE2::Options options;
	re2_program *p;

	options.set_log_errors(false);
	options.set_max_mem((int64_t)memory_max);
	p = new re2_program(re2::StringPiece(s, len), options);
	if (p->re.ok())
		return p;
	*ret_problem = {};
	ret_problem->too_large = p->re.error_code() == re2::RE2::ErrorPatternTooLarge;
	ret_problem->why = sentence_of(p->re.error_code());
	if (p->re.error_code() != re2::RE2::ErrorMissingParen &&
	    p->re.error_code() != re2::RE2::ErrorUnexpectedParen) /* there it is the pattern */
		ret_problem->part_len =
		    p->re.error_arg().copy(ret_problem->part, sizeof ret_problem->part);
	delete p;
	return nullptr;
}

void
re2_free(struct re2_program *p)
{
	delete p;
}

size_t
re2_size(const struct re2_program *p)
{
	return (size_t)p->re.ProgramSize();
}

size_t
re2_groups(const struct re2_program *p)
{
	return (size_t)p->re.NumberOfCapturingGroups();
}

/* Returns whether the byte at s continues a character. */
static bool
is_inside_character(const char *s)
{
	return ((unsigned char)*s & 0xc0) == 0x80;
}

/* RE2 finds matches without characters, of \B, also inside a character of several bytes; then the
 * search goes on after that. */
bool
re2_find(struct re2_program *p, const char *s, size_t len, size_t from, size_t *ret, size_t n)
{
	const re2::StringPiece text(s, len);
	re2::StringPiece *groups = p->groups.data();

	for (;; from++) {
		if (!p->re.Match(text, from, len, re2::RE2::UNANCHORED, groups, (int)n))
			return false;
		from = (size_t)(groups[0].data() - s);
		if (from == len || !is_inside_character(s + from))
			break;
	}
	for (size_t i = 0; i < n; i++) {
		bool set = groups[i].data() != nullptr;

		ret[2 * i] = set ? (size_t)(groups[i].data() - s) : RE2_UNSET;
		ret[2 * i + 1] = set ? ret[2 * i] + groups[i].size() : RE2_UNSET;
	}
	return true;
}
