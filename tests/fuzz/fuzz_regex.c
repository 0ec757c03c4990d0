// SPDX-License-Identifier: Apache-2.0
/* fuzz_regex.c: three lines are a pattern, a replacement and a text. Matches are inside the text,
 * in order, and of whole characters. */
#include <string.h>
#include <unistr.h>

#include "common/cleanup.h"
#include "lang/regex.h"
#include "tests/fuzz/fuzz.h"

struct search {
	struct arena *arena;
	const char *pattern, *by, *text;
	size_t len;
};

static void
check_matches(const struct search *s, struct regex *r)
{
	size_t from = 0, match[2] = { 0 }, end = 0;

	while (from <= s->len && regex_find(r, s->text, s->len, from, match)) {
		HOLDS(match[0] >= end && match[0] <= match[1] && match[1] <= s->len);
		for (int i = 0; i < 2; i++)
			HOLDS(match[i] == s->len || (s->text[match[i]] & 0xc0) != 0x80);
		end = match[1];
		from = regex_next(s->text, s->len, from, end);
	}
}

static void
run(void *search)
{
	const struct search *s = search;
	const char *why = NULL;
	struct regex *r = regex_compile(s->arena, s->pattern, strlen(s->pattern), &why);
	struct text replaced = { .arena = s->arena }, same = replaced;

	HOLDS(r || *why);
	if (!r)
		return;
	check_matches(s, r);
	regex_replace_all(r, s->text, s->len, s->by, strlen(s->by), false, &replaced);
	regex_replace_all(r, s->text, s->len, "$0", 2, false, &same);
	HOLDS(same.len == s->len && (s->len == 0 || memcmp(same.text, s->text, s->len) == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { .memory_max = 4 << 20, .steps_max = 200000, .depth_max = 10 };
	cleanup_free char *lines = strndup((const char *)data, size);
	char *rest = lines;
	struct search s = { .arena = &a };

	HOLDS(lines);
	s.pattern = strsep(&rest, "\n");
	s.by = rest ? strsep(&rest, "\n") : "$1";
	s.text = rest ? rest : "";
	s.len = strlen(s.text);
	if (!u8_check((const uint8_t *)s.text, s.len))
		(void)arena_try(&a, run, &s);
	arena_done(&a);
	return 0;
}
