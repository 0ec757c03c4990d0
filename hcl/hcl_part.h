/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_part.h: reads a quoted text or a heredoc as a list of parts: texts, and what ${ } and %{ }
 * say between them. Links without expressions and values. Runs in: cli, job-parser, supervisor (ACL
 * policies), the launcher's configuration child.
 */
#ifndef DROVER_HCL_HCL_PART_H
#define DROVER_HCL_HCL_PART_H

#include "hcl/hcl_scan.h"

enum hcl_part_kind {
	HCL_PART_TEXT,
	HCL_PART_VALUE,
	HCL_PART_IF,
	HCL_PART_ELSE,
	HCL_PART_ENDIF,
	HCL_PART_FOR,
	HCL_PART_ENDFOR,
	HCL_PART_END
};

struct hcl_part {
	enum hcl_part_kind kind;
	struct hcl_range at;
	char *text; /* HCL_PART_TEXT; len bytes */
	size_t len;
	const struct hcl_expr *expr; /* value, condition, or the list of a for */
	const char *key_name, *value_name;
	struct hcl_part *next;
};

struct hcl_reader {
	struct hcl_parser *p;
	/* Called at ${ or %{; NULL: they are text. */
	void (*read_sequence)(struct hcl_reader *r);
	uint32_t at;
	char *buf; /* the text part that is being read */
	size_t len, size;
	uint32_t text_from;
	struct hcl_part *first, **last; /* last starts as &first */
	struct hcl_part *previous;      /* the part at the end of the list */
	bool strip_next;                /* the next text loses its spaces at the front */
};

/* Reads the quoted text or heredoc at the parser's token. The list ends with HCL_PART_END; r->at is
 * the byte after the text. */
void hcl_read_parts(struct hcl_reader *r);
/* The same for the rest of the source, from r->at on, as a text without quotes. */
void hcl_read_all_parts(struct hcl_reader *r);

/* For read_sequence(): the byte at r->at + more, or -1 at the end; the range of the next n bytes.
 */
int hcl_reader_peek(const struct hcl_reader *r, uint32_t more);
struct hcl_range hcl_reader_here(const struct hcl_reader *r, uint32_t n);
/* Ends the text that was read so far, if there is any. */
void hcl_part_end_text(struct hcl_reader *r);
struct hcl_part *hcl_part_add(struct hcl_reader *r, enum hcl_part_kind kind, struct hcl_range at);
/* Removes the spaces at the end of a text. */
void hcl_part_strip(struct hcl_part *part);

#endif
