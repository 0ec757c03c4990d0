/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_parser.h: between the two halves of the parser: hcl_text.c reads characters, space and
 * strings, hcl.c parses values, members and blocks. Runs in: the launcher's configuration child,
 * supervisor.
 */
#ifndef DROVER_COMMON_HCL_PARSER_H
#define DROVER_COMMON_HCL_PARSER_H

#include <stdbool.h>

#include "common/hcl.h"

#define HCL_ARENA_MAX ((size_t)16 * 1024 * 1024) /* for all nodes and strings of one document */

struct hcl_parser {
	const char *name;
	const char *at, *end;
	struct hcl_pos pos;
	unsigned depth;
	bool json;
	char *arena;
	size_t arena_size, used;
	bool full;
	struct err *e;
};

static inline int
hcl_peek_at(const struct hcl_parser *p, size_t n)
{
	return n < (size_t)(p->end - p->at) ? (unsigned char)p->at[n] : -1;
}

static inline int
hcl_peek(const struct hcl_parser *p)
{
	return hcl_peek_at(p, 0);
}

static inline bool
hcl_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static inline bool
hcl_is_word_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool
hcl_is_word(int c)
{
	return hcl_is_word_start(c) || hcl_is_digit(c) || c == '-' || c == '.';
}

char hcl_take(struct hcl_parser *p);
/* Set the error sentence. hcl_fail_full() returns -E2BIG, the others -EINVAL. */
int hcl_fail_at(struct hcl_parser *p, struct hcl_pos pos, const char *sentence);
int hcl_fail_full(struct hcl_parser *p);
int hcl_expected(struct hcl_parser *p, const char *what);

/* Returns zeroed memory, or NULL when the arena is full; it then stays full. */
void *hcl_arena_take(struct hcl_parser *p, size_t size);
/* Append a character, or the NUL of a string, at the arena's end; nothing else may be allocated
 * while a string is read. start is the value of p->used before the first character. */
void hcl_put(struct hcl_parser *p, char c);
int hcl_put_end(struct hcl_parser *p, size_t start, const char **ret);

/* Skip space and comments. */
int hcl_skip_space(struct hcl_parser *p);
/* Each must be called at the first character of its construct. */
int hcl_parse_string(struct hcl_parser *p, const char **ret);
int hcl_parse_word(struct hcl_parser *p, const char **ret);
int hcl_parse_heredoc(struct hcl_parser *p, const char **ret);

#endif
