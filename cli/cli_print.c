// SPDX-License-Identifier: Apache-2.0
/* cli_print.c: prints fields, lines, times and sizes. Runs in: cli. */
#include "cli/cli_print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli_screen.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/text.h"

#define FIELD_WIDTH 20

static void
clean(char *text, bool lines)
{
	size_t left = strlen(text), n;

	for (char *c = text; left; c += n, left -= n) {
		unsigned char byte = (unsigned char)*c;

		n = utf8_char_length(c, left);
		if (n == 0)
			n = 1, *c = '?'; /* invalid, such as a part of a character */
		else if (byte == '\n' && lines)
			continue;
		else if (byte == '\n' || byte == '\t')
			*c = ' ';
		else if (byte < 0x20 || byte == 0x7f)
			*c = '?';
		else if (byte == 0xc2 && (unsigned char)c[1] <= 0x9f)
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

/* Returns the indent of the lines that continue this one. */
static size_t
hanging_indent(const char *text)
{
	return strspn(text, " ") + 4;
}

void
cli_line(const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	cli_put(stdout, hanging_indent(text), text);
}

/* Prints text in the colour of its first word if `name` is the name of a status. */
static void
put_value(const char *name, const char *text)
{
	bool status = strcmp(name, "Status") == 0 || strcmp(name, "Health") == 0;
	enum cli_colour colour = status ? cli_status_colour(text) : CLI_PLAIN;
	size_t first = strcspn(text, ", ");
	cleanup_free char *clean = mem_strdup(name), *line = NULL;

	cli_clean(clean);
	line = mem_printf("%-*s = %s%.*s%s%s", FIELD_WIDTH, clean, cli_colour_on(stdout, colour),
	    (int)first, text, cli_colour_off(stdout, colour), text + first);
	cli_put(stdout, FIELD_WIDTH + 3, line);
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
		put_value(name, text);
}

void
cli_head(const char *fmt, ...)
{
	cleanup_free char *text = NULL, *line = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = format_clean(fmt, ap);
	va_end(ap);
	cli_progress_clear();
	line = mem_printf(
	    "%s%s%s", cli_colour_on(stdout, CLI_BOLD), text, cli_colour_off(stdout, CLI_BOLD));
	(void)putchar('\n');
	cli_put(stdout, 0, line);
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
	cli_put(out, hanging_indent(text), text);
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
	bool local = cli_screen_width(stdout) > 0;
	time_t s = (time_t)(time_ns / 1000000000);
	char zone[8] = "Z";
	struct tm tm;
	size_t n;

	if (!(local ? localtime_r(&s, &tm) : gmtime_r(&s, &tm)))
		return "?";
	if (local)
		(void)strftime(zone, sizeof zone, " %z", &tm);
	n = strftime(buf, CLI_TIME_SIZE, local ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(
	    buf + n, CLI_TIME_SIZE - n, ".%03d%s", (int)(time_ns / 1000000 % 1000), zone);
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
cli_add_word(struct text *t, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "%+,-./:=@_";

	if (*word && word[strspn(word, plain)] == '\0') {
		text_printf(t, " %s", word);
		return;
	}
	text_append(t, " '", 2);
	for (; *word; word++)
		text_append(t, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
	text_append(t, "'", 1);
}

void
cli_sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&ts, NULL);
}
