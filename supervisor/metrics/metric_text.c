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
#include "supervisor/core/histogram.h"

#define NAME_SIZE 128 /* the table has no longer name */

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

/* Writes the number between two texts, which are short. Whole numbers, which most are, without
 * printf's cost. */
static void
append_number(struct scrape *s, const char *before, double v, const char *after)
{
	char buf[64], digits[20], *to = stpncpy(buf, before, 16);
	char *at = digits + sizeof digits;
	uint64_t n;

	if (!(v >= 0 && v < 9e15) || v != floor(v)) {
		to += snprintf(to, 32, "%.15g", isfinite(v) ? v : 0);
	} else {
		n = (uint64_t)v;
		do {
			*--at = (char)('0' + n % 10);
		} while ((n /= 10) > 0);
		to = mempcpy(to, at, (size_t)(digits + sizeof digits - at));
	}
	to = stpncpy(to, after, 8);
	text_append(&s->out, buf, (size_t)(to - buf));
}

static void
append_texts(struct scrape *s, const struct text *head, const struct metric_label_text *labels)
{
	text_append(&s->out, head->text, head->len);
	text_append(&s->out, labels->text, labels->len);
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
static void
make_labels(const struct metric_labels *l, struct text *to)
{
	for (unsigned i = 0; i < l->n; i++) {
		append_to(to, i == 0 ? "{" : ",");
		append_to(to, l->v[i].name);
		append_to(to, "=\"");
		append_escaped(to, l->v[i].value);
		append_to(to, "\"");
	}
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

/* A line of a histogram. le: one more label, of a bucket; NULL: none. */
static void
append_line(struct scrape *s, const char *suffix, const struct metric_label_text *labels,
    const char *le, double value)
{
	text_append(&s->out, s->head.text, s->head.len);
	append(s, suffix);
	text_append(&s->out, labels->text, labels->len);
	if (le) {
		append(s, labels->len == 0 ? "{le=\"" : ",le=\"");
		append(s, le);
		append(s, "\"");
	}
	append_number(s, le || labels->len > 0 ? "} " : " ", value, "\n");
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
		append_line(s, "_bucket", labels, le, (double)n);
	}
	append_line(s, "_sum", labels, NULL, (double)h->sum_usec / 1e6);
	append_line(s, "_count", labels, NULL, (double)h->n);
}

/* --- JSON --- */

static const char *const section_names[] = {
	[METRIC_GAUGE] = "Gauges", [METRIC_COUNTER] = "Counters", [METRIC_HISTOGRAM] = "Samples"
};

static void
make_json_labels(const struct metric_labels *l, struct text *to)
{
	for (unsigned i = 0; i < l->n; i++) {
		append_to(to, i == 0 ? "\"" : ",\"");
		append_to(to, l->v[i].name);
		append_to(to, "\":");
		text_json_string(to, l->v[i].value);
	}
	append_to(to, "}");
}

static void
append_json_head(struct scrape *s, const struct metric_label_text *labels)
{
	if (s->comma)
		append(s, ",");
	s->comma = true;
	append_texts(s, &s->head, labels);
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

	if (s->tail.len > 0 && s->tail_value == value) {
		text_append(&s->out, s->tail.text, s->tail.len);
		return;
	}
	append_figure(s, "Count", value);
	append_figure(s, "Rate", value / (double)s->age_s);
	append_figure(s, "Sum", value);
	append_figure(s, "Min", 0);
	append_figure(s, "Max", value);
	append_figure(s, "Mean", value > 0 ? 1 : 0);
	append_figure(s, "Stddev", 0);
	append(s, "}");
	s->tail.len = 0;
	text_append(&s->tail, s->out.text + start, s->out.len - start);
	s->tail_value = value;
}

/* --- statsd --- */

/* The values of the labels are parts of the name, as with Nomad's agents. */
static void
make_parts(const struct metric_labels *l, struct text *to)
{
	for (unsigned i = 0; i < l->n; i++) {
		const size_t start = to->len + 1;

		append_to(to, ".");
		append_to(to, l->v[i].value);
		for (char *at = to->text + start; *at; at++)
			if (*at == ':' || *at == ' ' || *at == '|' || *at == '@' ||
			    (unsigned char)*at < 0x20)
				*at = '_';
	}
}

/* Counters are sums, which statsd would add up again, so they are sent as gauges too. */
static void
append_gauge(
    struct scrape *s, const char *suffix, const struct metric_label_text *labels, double value)
{
	text_append(&s->out, s->head.text, s->head.len);
	append(s, suffix);
	text_append(&s->out, labels->text, labels->len);
	append_number(s, ":", value, "|g\n");
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

void
metric_text_labels(const struct scrape *s, const struct metric_labels *labels, struct text *to)
{
	if (s->format == METRIC_JSON)
		make_json_labels(labels, to);
	else if (s->format == METRIC_STATSD)
		make_parts(labels, to);
	else
		make_labels(labels, to);
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
		append_texts(s, &s->head, labels);
		append_number(s, labels->len > 0 ? "} " : " ", value, "\n");
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
