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
append(struct scrape *s, const char *text)
{
	text_append(&s->out, text, strlen(text));
}

/* Whole numbers, which most are, without printf's cost. */
static void
append_number(struct scrape *s, double v)
{
	char buf[32], *at = buf + sizeof buf;
	uint64_t n;

	if (!(v >= 0 && v < 9e15) || v != floor(v)) {
		text_append(
		    &s->out, buf, (size_t)snprintf(buf, sizeof buf, "%.15g", isfinite(v) ? v : 0));
		return;
	}
	n = (uint64_t)v;
	do {
		*--at = (char)('0' + n % 10);
	} while ((n /= 10) > 0);
	text_append(&s->out, at, (size_t)(buf + sizeof buf - at));
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
append_escaped(struct scrape *s, const char *text)
{
	const char *start = text;

	for (size_t n; *text; text += n) {
		const unsigned char c = (unsigned char)*text;

		n = c < 0x80 ? c != '"' && c != '\\' && c != '\n' : utf8_char_length(text, 4);
		if (n > 0)
			continue;
		n = 1;
		text_append(&s->out, start, (size_t)(text - start));
		append(s, c == '\n'   ? "\\n"
			  : c == '"'  ? "\\\""
			  : c == '\\' ? "\\\\"
				      : "\xef\xbf\xbd");
		start = text + 1;
	}
	text_append(&s->out, start, (size_t)(text - start));
}

/* le: one more label, of a bucket; NULL: none. */
static void
append_labels(struct scrape *s, const struct metric_labels *l, const char *le)
{
	if (l->n == 0 && !le)
		return;
	for (unsigned i = 0; i < l->n; i++) {
		append(s, i == 0 ? "{" : ",");
		append(s, l->v[i].name);
		append(s, "=\"");
		append_escaped(s, l->v[i].value);
		append(s, "\"");
	}
	if (le) {
		append(s, l->n == 0 ? "{le=\"" : ",le=\"");
		append(s, le);
		append(s, "\"");
	}
	append(s, "}");
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

static void
append_sample(struct scrape *s, const char *name, const char *suffix,
    const struct metric_labels *labels, const char *le, double value)
{
	append(s, name);
	append(s, suffix);
	append_labels(s, labels, le);
	append(s, " ");
	append_number(s, value);
	append(s, "\n");
}

static void
append_buckets(struct scrape *s, const char *name, const struct metric_labels *labels,
    const struct histogram *h)
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
		append_sample(s, name, "_bucket", labels, le, (double)n);
	}
	append_sample(s, name, "_sum", labels, NULL, (double)h->sum_usec / 1e6);
	append_sample(s, name, "_count", labels, NULL, (double)h->n);
}

/* --- JSON --- */

static const char *const section_names[] = {
	[METRIC_GAUGE] = "Gauges", [METRIC_COUNTER] = "Counters", [METRIC_HISTOGRAM] = "Samples"
};

static void
append_json_head(
    struct scrape *s, const struct metric_family *f, const struct metric_labels *labels)
{
	append(s, s->comma ? ",{\"Name\":\"" : "{\"Name\":\"");
	s->comma = true;
	append(s, f->name);
	append(s, "\",\"Labels\":{");
	for (unsigned i = 0; i < labels->n; i++) {
		append(s, i == 0 ? "\"" : ",\"");
		append(s, labels->v[i].name);
		append(s, "\":");
		text_json_string(&s->out, labels->v[i].value);
	}
	append(s, "}");
}

static void
append_figure(struct scrape *s, const char *name, double value)
{
	append(s, ",\"");
	append(s, name);
	append(s, "\":");
	append_number(s, value);
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

static void
append_count(struct scrape *s, double value)
{
	append_figure(s, "Count", value);
	append_figure(s, "Rate", value / (double)s->age_s);
	append_figure(s, "Sum", value);
	append_figure(s, "Min", 0);
	append_figure(s, "Max", value);
	append_figure(s, "Mean", value > 0 ? 1 : 0);
	append_figure(s, "Stddev", 0);
	append(s, "}");
}

/* --- statsd --- */

/* The values of the labels are parts of the name, as with Nomad's agents. */
static void
append_part(struct scrape *s, const char *text)
{
	const size_t start = s->out.len;

	append(s, text);
	for (char *at = s->out.text + start; *at; at++)
		if (*at == ':' || *at == ' ' || *at == '|' || *at == '@' ||
		    (unsigned char)*at < 0x20)
			*at = '_';
}

/* Counters are sums, which statsd would add up again, so they are sent as gauges too. */
static void
append_gauge(struct scrape *s, const struct metric_family *f, const char *suffix,
    const struct metric_labels *labels, double value)
{
	append(s, f->name);
	append(s, suffix);
	for (unsigned i = 0; i < labels->n; i++) {
		append(s, ".");
		append_part(s, labels->v[i].value);
	}
	append(s, ":");
	append_number(s, value);
	append(s, "|g\n");
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
metric_text_family(struct scrape *s, const struct metric_family *f)
{
	char name[NAME_SIZE];

	if (s->format == METRIC_JSON || s->format == METRIC_STATSD)
		return;
	(void)flat_name(f, name);
	if (s->format == METRIC_OPENMETRICS && f->kind == METRIC_COUNTER && !f->untyped)
		cut_total(name);
	text_printf(&s->out, "# HELP %s %s.\n# TYPE %s %s\n", name, f->help, name, type_name(s, f));
}

void
metric_text_value(struct scrape *s, const struct metric_family *f,
    const struct metric_labels *labels, double value)
{
	char name[NAME_SIZE];

	if (s->format == METRIC_STATSD) {
		append_gauge(s, f, "", labels, value);
		return;
	}
	if (s->format != METRIC_JSON) {
		append_sample(s, flat_name(f, name), "", labels, NULL, value);
		return;
	}
	append_json_head(s, f, labels);
	if (f->kind == METRIC_COUNTER) {
		append_count(s, value);
		return;
	}
	append_figure(s, "Value", value);
	append(s, "}");
}

void
metric_text_histogram(struct scrape *s, const struct metric_family *f,
    const struct metric_labels *labels, const struct histogram *h)
{
	char name[NAME_SIZE];

	if (s->format == METRIC_STATSD) {
		append_gauge(s, f, ".sum", labels, (double)h->sum_usec / 1e6);
		append_gauge(s, f, ".count", labels, (double)h->n);
		return;
	}
	if (s->format != METRIC_JSON) {
		append_buckets(s, flat_name(f, name), labels, h);
		return;
	}
	append_json_head(s, f, labels);
	append_sums(s, h);
}
