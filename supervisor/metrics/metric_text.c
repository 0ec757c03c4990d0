// SPDX-License-Identifier: Apache-2.0
/* metric_text.c: metrics as Nomad's JSON, in Prometheus' format and as OpenMetrics. Runs in:
 * supervisor. */
#include "supervisor/metrics/metric_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/utf8.h"
#include "model/engine/walk.h"
#include "supervisor/core/histogram.h"

#define NAME_SIZE  128 /* the table has no longer name */
#define NUMBER_MAX 32

static void
append_to(struct text *to, const char *text)
{
	text_append(to, text, strlen(text));
}

static void
append(struct scrape *s, const char *text)
{
	append_to(&s->out, text);
}

/* Writes the digits of n, at least so many. Returns their end. */
static char *
put_digits(char *to, uint64_t n, unsigned least)
{
	char digits[20], *at = digits + sizeof digits;

	for (; n > 0 || least > 0; n /= 10, least -= least > 0)
		*--at = (char)('0' + n % 10);
	return mempcpy(to, at, (size_t)(digits + sizeof digits - at));
}

/* Writes the number, of at most NUMBER_MAX bytes, and returns its end. printf costs more than the
 * rest of a line, so it is left to numbers that are rare; nine decimals are nanoseconds. */
static char *
put_number(char *to, double v)
{
	uint64_t billionths;

	if (v >= 0 && v < 9e15 && v == floor(v))
		return put_digits(to, (uint64_t)v, 1);
	if (!(v >= 1e-3 && v < 1e6))
		return to + snprintf(to, NUMBER_MAX, "%.15g", isfinite(v) ? v : 0);
	billionths = (uint64_t)(v * 1e9 + 0.5);
	to = put_digits(to, billionths / 1000000000, 1);
	if (billionths % 1000000000 == 0)
		return to;
	*to++ = '.';
	to = put_digits(to, billionths % 1000000000, 9);
	while (to[-1] == '0')
		to--;
	return to;
}

static char *
put_labels(char *to, const struct metric_label_text *l)
{
	if (!l->alloc_id)
		return l->len > 0 ? mempcpy(to, l->text, l->len) : to;
	to = mempcpy(to, l->text, l->id_at);
	to = mempcpy(to, l->alloc_id, METRIC_ALLOC_ID);
	return mempcpy(to, l->text + l->id_at, l->len - l->id_at);
}

/* Appends what a line of the family begins with, labels, and the number between two texts. Most of
 * an answer is made here. */
static void
append_line(struct scrape *s, const char *suffix, const struct metric_label_text *labels,
    const char *before, double v, const char *after)
{
	const size_t texts = strlen(suffix) + strlen(before) + strlen(after);
	char *to =
	    text_room(&s->out, s->head.len + labels->len + METRIC_ALLOC_ID + NUMBER_MAX + texts);

	to = mempcpy(to, s->head.text, s->head.len);
	to = stpcpy(to, suffix);
	to = put_labels(to, labels);
	to = stpcpy(to, before);
	to = put_number(to, v);
	text_end(&s->out, stpcpy(to, after));
}

static void
append_number(struct scrape *s, const char *before, double v, const char *after)
{
	char *to = text_room(&s->out, strlen(before) + NUMBER_MAX + strlen(after));

	to = put_number(stpcpy(to, before), v);
	text_end(&s->out, stpcpy(to, after));
}

/* Prometheus' names have underscores for the dots of Nomad's. */
static const char *
flat_name(const struct metric_family *f, char ret[NAME_SIZE])
{
	char *at = stpncpy(ret, f->name, NAME_SIZE - 1);

	*at = '\0';
	for (at = ret; *at; at++)
		if (*at == '.')
			*at = '_';
	return ret;
}

/* OpenMetrics names a counter without the suffix of its sample. */
static void
cut_total(char *name)
{
	size_t len = strlen(name);

	if (len > 6 && strcmp(name + len - 6, "_total") == 0)
		name[len - 6] = '\0';
}

/* --- Prometheus --- */

/* Escapes a label's value. Bytes that are not UTF-8 become U+FFFD. */
static void
append_escaped(struct text *to, const char *text)
{
	const char *start = text;

	for (size_t n; *text; text += n) {
		const unsigned char c = (unsigned char)*text;

		n = c < 0x80 ? c != '"' && c != '\\' && c != '\n' : utf8_char_length(text, 4);
		if (n > 0)
			continue;
		n = 1;
		text_append(to, start, (size_t)(text - start));
		append_to(to, c == '\n'   ? "\\n"
			      : c == '"'  ? "\\\""
			      : c == '\\' ? "\\\\"
					  : "\xef\xbf\xbd");
		start = text + 1;
	}
	text_append(to, start, (size_t)(text - start));
}

/* Without the closing brace, because a bucket has one more label. */
static size_t
make_labels(const struct metric_labels *l, struct text *to)
{
	size_t id_at = 0;

	for (unsigned i = 0; i < l->n; i++) {
		append_to(to, i == 0 ? "{" : ",");
		append_to(to, l->v[i].name);
		append_to(to, "=\"");
		if (l->v[i].value == metric_label_id)
			id_at = to->len;
		append_escaped(to, l->v[i].value);
		append_to(to, "\"");
	}
	return id_at;
}

static const char *
type_name(const struct scrape *s, const struct metric_family *f)
{
	static const char *const names[] = { [METRIC_GAUGE] = "gauge",
		[METRIC_COUNTER] = "counter",
		[METRIC_HISTOGRAM] = "histogram" };

	if (f->untyped)
		return s->format == METRIC_OPENMETRICS ? "unknown" : "untyped";
	return names[f->kind];
}

/* A bucket has one label more. */
static void
append_bucket(struct scrape *s, const struct metric_label_text *labels, const char *le, uint64_t n)
{
	char before[64];

	(void)snprintf(before, sizeof before, "%sle=\"%s\"} ", labels->len == 0 ? "{" : ",", le);
	append_line(s, "_bucket", labels, before, (double)n, "\n");
}

static void
append_buckets(struct scrape *s, const struct metric_label_text *labels, const struct histogram *h)
{
	static const uint64_t bounds[] = HISTOGRAM_BOUNDS;
	uint64_t n = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		char le[32] = "+Inf";

		if (i < HISTOGRAM_BUCKETS - 1)
			(void)snprintf(le, sizeof le, "%g%s", (double)bounds[i] / 1e6,
			    s->format == METRIC_OPENMETRICS && bounds[i] % 1000000 == 0 ? ".0"
											: "");
		n += h->buckets[i];
		append_bucket(s, labels, le, n);
	}
	append_line(
	    s, "_sum", labels, labels->len > 0 ? "} " : " ", (double)h->sum_usec / 1e6, "\n");
	append_line(s, "_count", labels, labels->len > 0 ? "} " : " ", (double)h->n, "\n");
}

/* --- JSON --- */

static const char *const section_names[] = {
	[METRIC_GAUGE] = "Gauges", [METRIC_COUNTER] = "Counters", [METRIC_HISTOGRAM] = "Samples"
};

static size_t
make_json_labels(const struct metric_labels *l, struct text *to)
{
	size_t id_at = 0;

	for (unsigned i = 0; i < l->n; i++) {
		append_to(to, i == 0 ? "\"" : ",\"");
		append_to(to, l->v[i].name);
		append_to(to, "\":");
		text_json_string(to, l->v[i].value);
		if (l->v[i].value == metric_label_id)
			id_at = to->len - 1; /* between the quotes */
	}
	append_to(to, "}");
	return id_at;
}

static void
append_json_head(struct scrape *s, const struct metric_label_text *labels)
{
	char *to = text_room(&s->out, 1 + s->head.len + labels->len + METRIC_ALLOC_ID);

	if (s->comma)
		*to++ = ',';
	s->comma = true;
	to = mempcpy(to, s->head.text, s->head.len);
	text_end(&s->out, put_labels(to, labels));
}

static void
append_figure(struct scrape *s, const char *name, double value)
{
	append(s, ",\"");
	append(s, name);
	append_number(s, "\":", value, "");
}

/* Nomad's figures are of the last ten seconds. These are of the time since the agent was started,
 * because it keeps no figures of intervals. */
static void
append_sums(struct scrape *s, const struct histogram *h)
{
	const double n = (double)h->n, sum = (double)h->sum_usec / 1e6;
	const double mean = n > 0 ? sum / n : 0;
	const double variance = n > 1 ? (h->sum_of_squares - sum * mean) / (n - 1) : 0;

	append_figure(s, "Count", n);
	append_figure(s, "Rate", sum / (double)s->age_s);
	append_figure(s, "Sum", sum);
	append_figure(s, "Min", (double)h->min_usec / 1e6);
	append_figure(s, "Max", (double)h->max_usec / 1e6);
	append_figure(s, "Mean", mean);
	append_figure(s, "Stddev", variance > 0 ? sqrt(variance) : 0);
	append(s, "}");
}

/* Most counters of a family have the same few values, and its rate costs a printf. */
static void
append_count(struct scrape *s, double value)
{
	const size_t start = s->out.len;
	char number[NUMBER_MAX], *to;
	size_t n;

	if (s->tail.len > 0 && s->tail_value == value) {
		text_append(&s->out, s->tail.text, s->tail.len);
		return;
	}
	n = (size_t)(put_number(number, value) - number);
	to = text_room(&s->out, 128 + 4 * NUMBER_MAX);
	to = mempcpy(stpcpy(to, ",\"Count\":"), number, n);
	to = put_number(stpcpy(to, ",\"Rate\":"), value / (double)s->age_s);
	to = mempcpy(stpcpy(to, ",\"Sum\":"), number, n);
	to = mempcpy(stpcpy(to, ",\"Min\":0,\"Max\":"), number, n);
	to = stpcpy(to, value > 0 ? ",\"Mean\":1" : ",\"Mean\":0");
	text_end(&s->out, stpcpy(to, ",\"Stddev\":0}"));
	s->tail.len = 0;
	text_append(&s->tail, s->out.text + start, s->out.len - start);
	s->tail_value = value;
}

/* --- statsd --- */

/* The values of the labels are parts of the name, as with Nomad's agents. */
static size_t
make_parts(const struct metric_labels *l, struct text *to)
{
	size_t id_at = 0;

	for (unsigned i = 0; i < l->n; i++) {
		const size_t start = to->len + 1;

		append_to(to, ".");
		append_to(to, l->v[i].value);
		if (l->v[i].value == metric_label_id)
			id_at = to->len;
		for (char *at = to->text + start; *at; at++)
			if (*at == ':' || *at == ' ' || *at == '|' || *at == '@' ||
			    (unsigned char)*at < 0x20)
				*at = '_';
	}
	return id_at;
}

/* Counters are sums, which statsd would add up again, so they are sent as gauges too. */
static void
append_gauge(
    struct scrape *s, const char *suffix, const struct metric_label_text *labels, double value)
{
	append_line(s, suffix, labels, ":", value, "|g\n");
}

/* --- exported --- */

void
metric_text_begin(struct scrape *s)
{
	const time_t now = (time_t)(clock_real_ns() / NS_PER_S);
	char when[64];
	struct tm tm;

	if (s->format != METRIC_JSON)
		return;
	(void)gmtime_r(&now, &tm);
	(void)strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S +0000 UTC", &tm);
	append(s, "{\"Timestamp\":\"");
	append(s, when);
	append(s, "\",\"Points\":[],\"PrecisionGauges\":[]");
}

void
metric_text_end(struct scrape *s)
{
	if (s->format == METRIC_JSON)
		append(s, "]}");
	else if (s->format == METRIC_OPENMETRICS)
		append(s, "# EOF\n");
}

void
metric_text_section(struct scrape *s, enum metric_kind kind)
{
	if (s->format != METRIC_JSON)
		return;
	append(s, kind == METRIC_GAUGE ? ",\"" : "],\"");
	append(s, section_names[kind]);
	append(s, "\":[");
	s->comma = false;
}

size_t
metric_text_labels(const struct scrape *s, const struct metric_labels *labels, struct text *to)
{
	if (s->format == METRIC_JSON)
		return make_json_labels(labels, to);
	if (s->format == METRIC_STATSD)
		return make_parts(labels, to);
	return make_labels(labels, to);
}

void
metric_text_family(struct scrape *s, const struct metric_family *f)
{
	char name[NAME_SIZE];

	s->head.len = 0;
	if (s->format == METRIC_JSON) {
		text_printf(&s->head, "{\"Name\":\"%s\",\"Labels\":{", f->name);
		return;
	}
	if (s->format == METRIC_STATSD) {
		append_to(&s->head, f->name);
		return;
	}
	append_to(&s->head, flat_name(f, name));
	if (s->format == METRIC_OPENMETRICS && f->kind == METRIC_COUNTER && !f->untyped)
		cut_total(name);
	text_printf(&s->out, "# HELP %s %s.\n# TYPE %s %s\n", name, f->help, name, type_name(s, f));
}

void
metric_text_value(struct scrape *s, const struct metric_family *f,
    const struct metric_label_text *labels, double value)
{
	if (s->format == METRIC_STATSD) {
		append_gauge(s, "", labels, value);
		return;
	}
	if (s->format != METRIC_JSON) {
		append_line(s, "", labels, labels->len > 0 ? "} " : " ", value, "\n");
		return;
	}
	append_json_head(s, labels);
	if (f->kind == METRIC_COUNTER)
		append_count(s, value);
	else
		append_number(s, ",\"Value\":", value, "}");
}

void
metric_text_histogram(
    struct scrape *s, const struct metric_label_text *labels, const struct histogram *h)
{
	if (s->format == METRIC_STATSD) {
		append_gauge(s, ".sum", labels, (double)h->sum_usec / 1e6);
		append_gauge(s, ".count", labels, (double)h->n);
		return;
	}
	if (s->format != METRIC_JSON) {
		append_buckets(s, labels, h);
		return;
	}
	append_json_head(s, labels);
	append_sums(s, h);
}
