// SPDX-License-Identifier: Apache-2.0
/* cli_print.c: prints tables, fields, times and sizes. Runs in: cli. */
#include "cli/cli_print.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "model/engine/text.h"

#define FIELD_WIDTH 20

struct cli_table {
	struct libscols_table *scols;
	struct libscols_line *line;
	size_t column;
};

static void
clean(char *text, bool lines)
{
	for (char *c = text; *c; c++) {
		unsigned char byte = (unsigned char)*c;

		if (byte == '\n' && lines)
			continue;
		if (byte == '\n' || byte == '\t')
			*c = ' ';
		else if (byte < 0x20 || byte == 0x7f)
			*c = '?';
		else if (byte == 0xc2 && (unsigned char)c[1] >= 0x80 && (unsigned char)c[1] <= 0x9f)
			c[0] = c[1] = '?'; /* U+0080 to U+009F: eight-bit control characters */
	}
}

void
cli_clean(char *text)
{
	clean(text, false);
}

void
cli_clean_lines(char *text)
{
	size_t len = strlen(text);

	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	clean(text, true);
}

static char *
format_clean(const char *fmt, va_list ap)
{
	char *text = mem_vprintf(fmt, ap);

	cli_clean(text);
	return text;
}

struct cli_table *
cli_table_new(const char *const *heads, size_t n)
{
	struct cli_table *t = mem_new(struct cli_table);

	scols_init_debug(0);
	t->scols = mem_need(scols_new_table());
	(void)scols_table_set_column_separator(t->scols, "  ");
	if (!isatty(STDOUT_FILENO))
		(void)scols_table_set_termforce(t->scols, SCOLS_TERMFORCE_NEVER);
	for (size_t i = 0; i < n; i++) {
		int flags = i + 1 == n && isatty(STDOUT_FILENO) ? SCOLS_FL_WRAP : 0;

		(void)mem_need(scols_table_new_column(t->scols, heads[i], 0, flags));
	}
	return t;
}

void
cli_table_column(struct cli_table *t, const char *head)
{
	(void)mem_need(scols_table_new_column(t->scols, head, 0, 0));
}

void
cli_table_row(struct cli_table *t)
{
	t->line = mem_need(scols_table_new_line(t->scols, NULL));
	t->column = 0;
}

void
cli_cell(struct cli_table *t, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	if (scols_line_set_data(t->line, t->column++, *text ? text : "-") < 0)
		mem_exhausted();
}

void
cli_table_print(struct cli_table *t)
{
	(void)scols_print_table(t->scols);
	scols_unref_table(t->scols);
	free(t);
}

void
cli_table_print_under(struct cli_table *t, const char *head)
{
	if (scols_table_get_nlines(t->scols) > 0) {
		cli_head("%s", head);
		cli_table_print(t);
		return;
	}
	scols_unref_table(t->scols);
	free(t);
}

void
cli_line(const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	(void)printf("%s\n", text);
}

void
cli_field(const char *name, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	if (*text)
		cli_line("%-*s = %s", FIELD_WIDTH, name, text);
}

void
cli_head(const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	(void)printf("\n%s\n", text);
}

void
cli_say(const struct cli *cli, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	FILE *out = cli->json ? stderr : stdout;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	(void)fprintf(out, "%s\n", text);
	(void)fflush(out);
}

int64_t
cli_scale(int64_t value, int64_t unit)
{
	int64_t product;

	return __builtin_mul_overflow(value, unit, &product) ? 0 : product;
}

const char *
cli_span(int64_t span_ns, char buf[CLI_TIME_SIZE])
{
	int64_t s = span_ns / 1000000000;

	if (span_ns > 0 && s == 0)
		(void)snprintf(buf, CLI_TIME_SIZE, "%" PRId64 "ms", span_ns / 1000000);
	else if (s < 60)
		(void)snprintf(buf, CLI_TIME_SIZE, "%" PRId64 "s", s);
	else if (s < 3600)
		(void)snprintf(buf, CLI_TIME_SIZE, "%" PRId64 "m%" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		(void)snprintf(
		    buf, CLI_TIME_SIZE, "%" PRId64 "h%" PRId64 "m", s / 3600, s % 3600 / 60);
	else
		(void)snprintf(
		    buf, CLI_TIME_SIZE, "%" PRId64 "d%" PRId64 "h", s / 86400, s % 86400 / 3600);
	return buf;
}

static const char *
format_exact(int64_t time_ns, char buf[CLI_TIME_SIZE])
{
	time_t s = (time_t)(time_ns / 1000000000);
	struct tm tm;
	size_t n;

	if (!gmtime_r(&s, &tm))
		return "?";
	n = strftime(buf, CLI_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(buf + n, CLI_TIME_SIZE - n, ".%03dZ", (int)(time_ns / 1000000 % 1000));
	return buf;
}

const char *
cli_time(const struct cli *cli, int64_t time_ns, char buf[CLI_TIME_SIZE])
{
	char span[CLI_TIME_SIZE];
	int64_t age;

	if (time_ns <= 0)
		return "";
	if (cli->verbose)
		return format_exact(time_ns, buf);
	age = clock_real_ns() - time_ns;
	/* Times in the past are rounded to seconds; the clocks of agent and command may differ
	 * slightly. */
	if (age < 1000000000 && age > -1000000000)
		(void)snprintf(buf, CLI_TIME_SIZE, "just now");
	else if (age > 0)
		(void)snprintf(buf, CLI_TIME_SIZE, "%s ago", cli_span(age, span));
	else
		(void)snprintf(buf, CLI_TIME_SIZE, "in %s", cli_span(-age, span));
	return buf;
}

const char *
cli_bytes(int64_t bytes, char buf[CLI_TIME_SIZE])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t i = 0;

	if (bytes < 1024 && bytes > -1024) {
		(void)snprintf(buf, CLI_TIME_SIZE, "%" PRId64 " B", bytes);
		return buf;
	}
	for (value /= 1024; value >= 1024 && i + 1 < ELEMENTSOF(units); i++)
		value /= 1024;
	(void)snprintf(buf, CLI_TIME_SIZE, value < 10 ? "%.1f %s" : "%.0f %s", value, units[i]);
	return buf;
}

char *
cli_join(const json_t *list, const char *between)
{
	struct text all = { 0 };
	const json_t *item;
	size_t i;

	text_append(&all, "", 0);
	json_array_foreach (list, i, item)
		text_printf(&all, "%s%s", i > 0 ? between : "", json_string_value(item) ?: "");
	return all.text;
}

const char *
cli_yes(bool value)
{
	return value ? "true" : "false";
}

void
cli_sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&ts, NULL);
}
