/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_problem.c: shows a problem with its line of the text. Runs in: cli, job-parser, supervisor
 * (ACL policies), the launcher's configuration child. */
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "hcl/hcl.h"

#define LINE_SHOWN_MAX 160 /* bytes of a source line that are shown */

struct hcl_position
hcl_position(const struct hcl_source *source, uint32_t byte)
{
	struct hcl_position p = { 1, 1 };

	for (uint32_t i = 0; i < byte && i < source->len; i++) {
		if (source->text[i] == '\n') {
			p.line++;
			p.column = 1;
		} else if (((unsigned char)source->text[i] & 0xc0) != 0x80) {
			p.column++;
		}
	}
	return p;
}

static bool
is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Appends the line around [from, to) and the marks below it. Tabs stay tabs in both lines, so that
 * the marks stand below their characters; control characters and bytes that are not UTF-8 become
 * "?". */
static char *
show_line(struct hcl *h, const char *head, const struct hcl_range *at, unsigned number)
{
	const struct hcl_source *s = at->source;
	uint32_t begin = at->from < s->len ? at->from : (uint32_t)s->len, end = begin;
	char *line, *marks, label[16];
	size_t n = 0, m = 0;

	while (begin > 0 && s->text[begin - 1] != '\n' && at->from - begin < LINE_SHOWN_MAX / 2)
		begin--;
	while (begin < end && is_continuation(s->text[begin]))
		begin++;
	while (end < s->len && s->text[end] != '\n' && end - begin < LINE_SHOWN_MAX)
		end++;
	while (end > begin && end < s->len && is_continuation(s->text[end]))
		end--;
	line = hcl_alloc(h, end - begin + 1);
	marks = hcl_alloc(h, end - begin + 2);
	for (uint32_t i = begin, len; i < end; i += len) {
		unsigned char c = (unsigned char)s->text[i];

		len = (uint32_t)utf8_char_length(s->text + i, end - i);
		if (len == 0 || (c < 0x20 && c != '\t') || c == 0x7f) {
			line[n++] = '?';
			len = 1;
		} else {
			memcpy(line + n, s->text + i, len);
			n += len;
		}
		if (i < at->from)
			marks[m++] = c == '\t' ? '\t' : ' ';
		else if (i == at->from || i < at->to)
			marks[m++] = '^';
	}
	if (at->from >= end)
		marks[m++] = '^';
	(void)snprintf(label, sizeof label, "%u", number);
	return hcl_printf(
	    h, "%s\n  %s | %s\n  %*s | %s", head, label, line, (int)strlen(label), "", marks);
}

char *
hcl_problem_line(struct hcl *h, const struct hcl_problem *p)
{
	const char *kind = p->warning ? "warning: " : "";
	struct hcl_position at;

	if (!p->at.source)
		return hcl_printf(h, "%s%s", kind, p->text);
	at = hcl_position(p->at.source, p->at.from);
	return hcl_printf(
	    h, "%s:%u:%u: %s%s", p->at.source->name, at.line, at.column, kind, p->text);
}

char *
hcl_problem_text(struct hcl *h, const struct hcl_problem *p)
{
	char *head = hcl_problem_line(h, p);

	return p->at.source
		   ? show_line(h, head, &p->at, hcl_position(p->at.source, p->at.from).line)
		   : head;
}
