/* SPDX-License-Identifier: Apache-2.0 */
/* go_text.h: characters and quoted texts as Go has them. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_TEXT_H
#define DROVER_TEMPLATE_GO_TEXT_H

#include "lang/text.h"

#define GO_BAD_CHAR 0xfffdU
#define GO_CHAR_MAX 0x10ffffU

/* The character at s, of which `left` > 0 bytes exist, and its length: U+FFFD and 1 for what is no
 * UTF-8. */
uint32_t go_char(const char *s, size_t left, size_t *ret_len);
size_t go_count_chars(const char *s, size_t len);
/* Appends the character; U+FFFD for what is none. */
void go_add_char(struct text *out, uint32_t ch);

bool go_is_letter(uint32_t ch);
bool go_is_digit(uint32_t ch);
bool go_is_space(uint32_t ch); /* unicode.IsSpace */
bool go_is_print(uint32_t ch); /* strconv.IsPrint */

/* Appends the text as a string literal. */
void go_quote(struct text *out, const char *s, size_t len, bool ascii);
void go_quote_char(struct text *out, uint32_t ch, bool ascii);
/* Whether the text could be in back quotes. */
bool go_can_backquote(const char *s, size_t len);
/* Appends what a literal in double or back quotes means. Returns false if it is none. */
bool go_unquote(struct text *out, const char *s, size_t len);
/* Reads a character or an escape of a literal in this quote. Returns its length, or 0. *ret_byte:
 * it is \x41 or \101, a byte. */
size_t go_unquote_char(const char *s, size_t len, char quote, uint32_t *ret, bool *ret_byte);

/* Appends a number as strconv.FormatFloat does: verb is e, E, f, g, G, x, X or b; prec -1: as many
 * digits as tell it from other numbers. */
void go_add_float(struct text *out, double f, char verb, int prec);
/* strconv.ParseFloat. Returns 0, -EINVAL or -ERANGE (then *ret is infinite). */
int go_parse_float(struct arena *arena, const char *s, size_t len, double *ret);
/* strconv.ParseUint and ParseInt; base 0: as the literal says. 0, -EINVAL or -ERANGE. */
int go_parse_uint(const char *s, size_t len, int base, uint64_t *ret);
int go_parse_int(const char *s, size_t len, int base, int64_t *ret);

#endif
