// SPDX-License-Identifier: Apache-2.0
/* cli_screen.c: what the output can show: its width, colours, wrapped lines, a line of progress.
 * Runs in: cli. */
#include "cli/cli_screen.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/cli_print.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"

#define WIDTH_MIN     20 /* a smaller terminal is treated as one of this width */
#define WIDTH_DEFAULT 80 /* for a terminal that does not know its size */

static bool progress_shown;

/* As isatty(), with one system call for each of stdout and stderr. */
static bool
is_terminal(FILE *f)
{
	static enum { NOT_ASKED, NO, YES } known[STDERR_FILENO + 1];
	int fd = fileno(f);

	if (known[fd] == NOT_ASKED)
		known[fd] = isatty(fd) ? YES : NO;
	return known[fd] == YES;
}

size_t
cli_screen_width(FILE *f)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width = 0;

	if (!is_terminal(f))
		return 0;
	if (columns && *columns)
		width = strtol(columns, NULL, 10);
	if (width <= 0)
		width = ioctl(fileno(f), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
	if (width <= 0)
		width = WIDTH_DEFAULT;
	return width < WIDTH_MIN ? WIDTH_MIN : (size_t)width;
}

static bool
has_colour(FILE *f)
{
	const char *none, *term;

	if (!is_terminal(f))
		return false;
	none = getenv("NO_COLOR");
	term = getenv("TERM");
	return !(none && *none) && term && strcmp(term, "dumb") != 0;
}

const char *
cli_colour_on(FILE *f, enum cli_colour colour)
{
	static const char *const codes[] = { "", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[32m" };

	return has_colour(f) ? codes[colour] : "";
}

const char *
cli_colour_off(FILE *f, enum cli_colour colour)
{
	return colour != CLI_PLAIN && has_colour(f) ? "\x1b[0m" : "";
}

enum cli_colour
cli_status_colour(const char *status)
{
	static const struct {
		enum cli_colour colour;
		const char *words[12];
	} rows[] = {
		{ CLI_RED,
		    { "failed", "failure", "lost", "unhealthy", "down", "disconnected", "false" } },
		{ CLI_YELLOW, { "pending", "unknown", "blocked", "paused", "draining", "ineligible",
				  "initializing", "cancelled" } },
		{ CLI_GREEN, { "running", "ready", "healthy", "successful", "success", "true",
				 "eligible" } },
	};
	size_t len = strcspn(status, ", ");

	for (size_t i = 0; i < ELEMENTSOF(rows); i++)
		for (const char *const *word = rows[i].words; *word; word++)
			if (strlen(*word) == len && strncmp(*word, status, len) == 0)
				return rows[i].colour;
	return CLI_PLAIN;
}

/* Decodes one character of n bytes, which are valid. */
static wchar_t
decode(const char *s, size_t n)
{
	unsigned char first = (unsigned char)*s;
	wchar_t c = n == 1 ? first : first & (0x7f >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

size_t
cli_columns(const char *text, size_t len)
{
	size_t columns = 0, n;

	for (const char *end = text + len; text < end; text += n) {
		int width;

		n = 1;
		if (*text >= ' ' && *text < 0x7f) {
			columns++;
			continue;
		}
		if (*text == '\x1b') { /* other texts are cleaned of them */
			n = strcspn(text, "m") + 1;
			continue;
		}
		n = utf8_char_length(text, (size_t)(end - text));
		if (n == 0)
			n = 1; /* an invalid byte takes one column */
		width = wcwidth(decode(text, n));
		columns += width < 0 ? 1 : (size_t)width;
	}
	return columns;
}

/* Returns the length of the word at text. A unit belongs to the number before it. */
static size_t
word_length(const char *text)
{
	static const char *const units[] = { "ago", "B", "KiB", "MiB", "GiB", "TiB", "%", "MHz" };
	size_t len = strcspn(text, " \n");

	for (size_t i = 0; text[len] == ' ' && i < ELEMENTSOF(units); i++) {
		size_t unit = strlen(units[i]);

		if (strncmp(text + len + 1, units[i], unit) == 0 &&
		    strchr(" \n,)", text[len + 1 + unit]))
			return len + 1 + unit;
	}
	return len;
}

size_t
cli_longest_word(const char *text)
{
	size_t longest = 0, len, columns;

	for (; *text; text += len + (text[len] != '\0')) {
		len = word_length(text);
		columns = cli_columns(text, len);
		if (columns > longest)
			longest = columns;
	}
	return longest;
}

size_t
cli_wrap(const char *text, size_t columns, size_t later, const char **ret_next)
{
	const char *at = text + strspn(text, " "); /* an indent stays */
	size_t fits = 0;

	while (*at && *at != '\n') {
		size_t len = word_length(at);

		if (fits && cli_columns(text, (size_t)(at - text) + len) > columns &&
		    cli_columns(at, len) <= later)
			break;
		at += len;
		fits = (size_t)(at - text);
		at += strspn(at, " ");
	}
	at = text + fits;
	at += strspn(at, " ");
	*ret_next = at + (*at == '\n');
	return fits;
}

void
cli_put(FILE *f, size_t indent, const char *text)
{
	size_t width = cli_screen_width(f), len;
	const char *next;

	cli_progress_clear();
	if (width == 0) {
		(void)fprintf(f, "%s\n", text);
		return;
	}
	if (indent + WIDTH_MIN > width)
		indent = 0;
	len = cli_wrap(text, width, width - indent, &next);
	(void)fprintf(f, "%.*s\n", (int)len, text);
	while (*next) {
		text = next;
		len = cli_wrap(text, width - indent, width - indent, &next);
		(void)fprintf(f, "%*s%.*s\n", (int)indent, "", (int)len, text);
	}
}

void
cli_progress(const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	size_t width = cli_screen_width(stderr);
	const char *next;
	va_list ap;

	if (width == 0)
		return;
	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	cli_clean(text);
	(void)fflush(stdout);
	cli_progress_clear();
	(void)fprintf(stderr, "%.*s", (int)cli_wrap(text, width - 1, width, &next), text);
	progress_shown = true;
}

void
cli_progress_clear(void)
{
	if (progress_shown)
		(void)fputs("\r\x1b[K", stderr);
	progress_shown = false;
}
