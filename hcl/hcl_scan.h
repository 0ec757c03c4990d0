/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_scan.h: tokens, for the parser. Runs in: cli, job-parser, supervisor (ACL policies), the
 * launcher's configuration child. */
#ifndef DROVER_HCL_HCL_SCAN_H
#define DROVER_HCL_HCL_SCAN_H

#include "hcl/hcl_ast.h"

/* Punctuation of one character is its character. */
enum hcl_token_kind {
	HCL_TOK_END = 0,
	HCL_TOK_NEWLINE = '\n',
	HCL_TOK_QUOTE = '"',
	HCL_TOK_WORD = 256,
	HCL_TOK_NUMBER,
	HCL_TOK_HEREDOC, /* << or <<- with its marker and the end of the line */
	HCL_TOK_EQUAL,   /* == */
	HCL_TOK_NOT_EQUAL,
	HCL_TOK_LESS_EQUAL,
	HCL_TOK_GREATER_EQUAL,
	HCL_TOK_AND,
	HCL_TOK_OR,
	HCL_TOK_ARROW,     /* => */
	HCL_TOK_ELLIPSIS,  /* ... */
	HCL_TOK_STRIP_END, /* ~} */
};

struct hcl_token {
	int kind;
	struct hcl_range at;
	bool space_before;
};

enum hcl_dialect {
	HCL_NATIVE, /* version 2 */
	HCL_OLD,    /* version 1: words may have dots, %{ is text */
	HCL_JSON,   /* texts have JSON's escapes, ${ is text */
};

struct hcl_parser {
	struct hcl *h;
	const struct hcl_source *source;
	struct hcl_token tok; /* the next token */
	uint32_t next;        /* the byte after it */
	uint32_t before;      /* the end of the token before it */
	enum hcl_dialect dialect;
	bool newlines; /* a line's end is a token; else it is space */
	bool literal;  /* in the older syntax: ${ in a text is text, and no error */
};

/* Reads the next token into p->tok. The token of a quote or heredoc ends with its opening. */
void hcl_scan(struct hcl_parser *p);
/* Continues at this byte, after a template that was read by characters. */
void hcl_scan_from(struct hcl_parser *p, uint32_t byte);

/* Sets whether lines' ends are tokens, and reads the current token again in that way. Returns the
 * former setting. */
bool hcl_scan_newlines(struct hcl_parser *p, bool on);

/* The length of the identifier at s, or 0. */
size_t hcl_word_length(const char *s, size_t len);

/* Adds "expected WHAT, found TOKEN" and leaves. */
void hcl_expected(struct hcl_parser *p, const char *what) __attribute__((noreturn));
/* Reads over a token of this kind, or leaves with "expected WHAT". */
void hcl_take(struct hcl_parser *p, int kind, const char *what);
/* Returns whether the token is this word. */
bool hcl_at_word(const struct hcl_parser *p, const char *word);
/* The text of the token, in the arena. */
char *hcl_token_text(struct hcl_parser *p);

/* Leaves with an error at the first byte of the source that is not UTF-8. */
void hcl_check_utf8(struct hcl *h, const struct hcl_source *source);
/* From here to the end of the token before the current one. */
struct hcl_range hcl_range_since(const struct hcl_parser *p, struct hcl_range from);

/* The parser's parts. Each is called at its first token and leaves after an error. */
const struct hcl_expr *hcl_read_expr(struct hcl_parser *p);
/* A quoted template or a heredoc; or, with only_text, one without ${ and %{, whose value is a
 * literal. */
const struct hcl_expr *hcl_read_template(struct hcl_parser *p);
const char *hcl_read_quoted_text(struct hcl_parser *p, const char *what);
/* The source from this byte on as a template without quotes, whose backslashes are text. */
const struct hcl_expr *hcl_read_whole_template(struct hcl_parser *p, uint32_t from);

#endif
