// SPDX-License-Identifier: Apache-2.0
/* scrape.c: makes the text of one reading of all metrics, piece by piece. Runs in: supervisor. */
#include "supervisor/metrics/scrape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/core/store.h"
#include "supervisor/metrics/metric_tasks.h"
#include "supervisor/metrics/metric_text.h"

#define PIECE_BYTES 16384
#define PIECE_ROWS  4096 /* rows of one piece, with and without a value */

struct scrape *
scrape_new(struct sup *sup, enum metric_format format)
{
	struct scrape *s = mem_new(struct scrape);
	int64_t opened_ns;

	s->sup = sup;
	s->format = format;
	(void)store_was_left(sup->store, &opened_ns);
	s->age_s = (clock_real_ns() - opened_ns) / NS_PER_S;
	if (s->age_s < 1)
		s->age_s = 1;
	metric_rows_begin(s);
	metric_tasks_begin(s);
	return s;
}

void
scrape_free(struct scrape *s)
{
	if (!s)
		return;
	metric_rows_end(s);
	metric_tasks_free(s);
	text_done(&s->head);
	text_done(&s->labels);
	text_done(&s->tail);
	text_done(&s->out);
	free(s);
}

static void
begin_family(struct scrape *s, const struct metric_family *f)
{
	if (!s->in_family)
		metric_text_family(s, f);
	s->in_family = true;
}

/* Prints values of so many tasks, from s->row on, as far as this piece has space. */
static void
print_tasks(struct scrape *s, const struct metric_family *f, size_t end)
{
	for (; s->row < end && s->out.len < PIECE_BYTES; s->row++) {
		struct metric_label_text labels;
		const double value = metric_tasks_value(s, f, s->row, &labels);

		if (isnan(value))
			continue;
		begin_family(s, f);
		metric_text_value(s, f, &labels, value);
	}
}

static void
print_row(struct scrape *s, const struct metric_family *f)
{
	struct metric_labels labels;
	struct metric_label_text text;
	const void *row = metric_row(s, f->rows, s->row, &labels);
	const struct histogram *h = row && f->histogram ? f->histogram(s, row) : NULL;
	const double value = row && f->value ? f->value(s, row) : NAN;

	if (!h && isnan(value))
		return;
	begin_family(s, f);
	s->labels.len = 0;
	metric_text_labels(s, &labels, &s->labels);
	text = (struct metric_label_text){ .text = s->labels.text, .len = s->labels.len };
	if (h)
		metric_text_histogram(s, &text, h);
	else
		metric_text_value(s, f, &text, value);
}

/* Goes on to the next family of this section. Returns false after the last. */
static bool
next_family(struct scrape *s)
{
	s->row = 0;
	s->in_family = false;
	for (s->family = s->family ? s->family + 1 : metric_families; s->family->name; s->family++)
		if ((s->format != METRIC_JSON || s->family->kind == s->section) &&
		    metric_is_wanted(s, s->family))
			return true;
	return false;
}

/* JSON has three sections, the other formats have one. Returns false after the last. */
static bool
next_section(struct scrape *s)
{
	if (!s->begun)
		metric_text_begin(s);
	else if (s->format != METRIC_JSON || s->section == METRIC_HISTOGRAM)
		return false;
	else
		s->section++;
	s->begun = true;
	s->family = NULL;
	metric_text_section(s, s->section);
	return true;
}

/* Goes on to the next row. Returns false at the end. */
static bool
next_row(struct scrape *s)
{
	while (!s->family || !s->family->name || s->row >= metric_rows_count(s, s->family)) {
		bool more = s->begun && (!s->family || s->family->name) && next_family(s);

		if (!more && !next_section(s))
			return false;
	}
	return true;
}

/* Prints values of one row, or of some tasks. Returns how many rows that were. */
static size_t
print_rows(struct scrape *s, const struct metric_family *f, size_t max)
{
	const size_t from = s->row, left = metric_rows_count(s, f) - from;

	if (f->rows == ROWS_TASK || f->rows == ROWS_USAGE)
		print_tasks(s, f, from + (left < max ? left : max));
	else
		print_row(s, f), s->row++;
	return s->row - from;
}

static void
fill_piece(struct scrape *s)
{
	s->out.len = s->at = 0;
	for (size_t n = 0; n < PIECE_ROWS && s->out.len < PIECE_BYTES && !s->ended;) {
		if (next_row(s)) {
			n += print_rows(s, s->family, PIECE_ROWS - n);
			continue;
		}
		metric_text_end(s);
		s->ended = true;
	}
}

/* Returns false if this turn was spent on visiting allocs. */
static bool
collect(struct scrape *s)
{
	if (s->collected)
		return true;
	s->collected = !metric_tasks_go_on(s);
	return false;
}

ssize_t
scrape_read(struct scrape *s, char *buf, size_t max)
{
	size_t n;

	if (!collect(s))
		return 0;
	while (s->at == s->out.len && !s->ended)
		fill_piece(s);
	n = s->out.len - s->at;
	if (n == 0)
		return -1;
	n = n < max ? n : max;
	memcpy(buf, s->out.text + s->at, n);
	s->at += n;
	return (ssize_t)n;
}

bool
scrape_piece(struct scrape *s, const char **ret, size_t *ret_len)
{
	*ret = NULL;
	*ret_len = 0;
	if (!collect(s))
		return true;
	s->at = s->out.len;
	while (s->at == s->out.len && !s->ended)
		fill_piece(s);
	*ret = s->out.text + s->at;
	*ret_len = s->out.len - s->at;
	s->at = s->out.len;
	return *ret_len > 0;
}
