// SPDX-License-Identifier: Apache-2.0
/* filter_pattern.c: matches regular expressions with PCRE2, within limits. Runs in: supervisor. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "supervisor/http/filter_pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"

#define PATTERN_MAX   1024
#define NESTED_MAX    50
#define STEPS_MAX     1000000 /* from each character of a text */
#define HEAP_MAX_KIB  1024
#define STEPS_TO_LOOK 256 /* one may go through the whole text */

/* As in Go, $ does not match before a final newline. \C, which could split a character, is
 * disabled. on_step() is called before each part of a pattern. */
#define OPTIONS                                                                                    \
	(PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |    \
	    PCRE2_AUTO_CALLOUT)

struct filter_pattern {
	char *text;
	pcre2_code *code;
	pcre2_match_context *limits;
	pcre2_match_data *data;
	unsigned steps;
	int64_t until_ns;
};

int64_t
filter_pattern_now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* PCRE2 restarts its step count at each character, and a single step may take long. */
static int
on_step(pcre2_callout_block *at, void *pattern)
{
	struct filter_pattern *p = pattern;

	(void)at;
	if (++p->steps % STEPS_TO_LOOK != 0 || filter_pattern_now_ns() < p->until_ns)
		return 0;
	return PCRE2_ERROR_CALLOUT;
}

void
filter_pattern_free(struct filter_pattern *p)
{
	if (!p)
		return;
	pcre2_match_data_free(p->data);
	pcre2_match_context_free(p->limits);
	pcre2_code_free(p->code);
	free(p->text);
	free(p);
}

DEFINE_CLEANUP(pcre2_compile_context *, pcre2_compile_context_free);

static int
compile(struct filter_pattern *p, struct err *e)
{
	cleanup_with(pcre2_compile_context_free) pcre2_compile_context *bounds =
	    mem_need(pcre2_compile_context_create(NULL));
	unsigned char why[128];
	size_t at;
	int code;

	(void)pcre2_set_max_pattern_length(bounds, PATTERN_MAX);
	(void)pcre2_set_parens_nest_limit(bounds, NESTED_MAX);
	p->code = pcre2_compile((PCRE2_SPTR)p->text, strlen(p->text), OPTIONS, &code, &at, bounds);
	if (p->code)
		return 0;
	(void)pcre2_get_error_message(code, why, sizeof why);
	return err_say(e, -EINVAL, "filter: the pattern \"%.80s\" is invalid at byte %zu: %s",
	    p->text, at, (const char *)why);
}

int
filter_pattern_new(const char *text, struct filter_pattern **ret, struct err *e)
{
	cleanup_with(filter_pattern_free) struct filter_pattern *p = mem_new(struct filter_pattern);
	int r;

	p->text = mem_strdup(text);
	r = compile(p, e);
	if (r < 0)
		return r;
	p->limits = mem_need(pcre2_match_context_create(NULL));
	p->data = mem_need(pcre2_match_data_create(1, NULL));
	(void)pcre2_set_match_limit(p->limits, STEPS_MAX);
	(void)pcre2_set_heap_limit(p->limits, HEAP_MAX_KIB);
	(void)pcre2_set_callout(p->limits, on_step, p);
	*ret = steal_ptr(&p);
	return 0;
}

int
filter_pattern_fits(struct filter_pattern *p, const char *text, int64_t until_ns, struct err *e)
{
	int n;

	p->until_ns = until_ns;
	n = pcre2_match(p->code, (PCRE2_SPTR)text, strlen(text), 0, 0, p->data, p->limits);
	if (n >= 0)
		return 1;
	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	if (n == PCRE2_ERROR_NOMEMORY)
		return err_set(e, -ENOMEM, "match a text against a pattern");
	return err_say(
	    e, -EINVAL, "filter: the pattern \"%.80s\" takes too long to match a text", p->text);
}
