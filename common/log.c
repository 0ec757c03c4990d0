// SPDX-License-Identifier: Apache-2.0
/* log.c: writes log lines to stderr and to followers. Runs in: every process but the executor. */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/utf8.h"

#define TEXT_MAX 1100
#define TIME_MAX 48
#define HEAD_MAX 96 /* the longest "<3>NAME: " or "TIME NAME: error: " */

static const char *process = "drover";
static enum log_level max_level = LOG_LEVEL_INFO;
static int to_journal;
static bool as_json;
static log_journal_fn *journal;         /* NULL: lines for the journal go to stderr */
static const volatile int32_t *watched; /* NULL if log_watch() was not called */
static int watch_fd;
static pid_t watch_pid;

static const char *const words[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

void
log_init(const char *name, enum log_level max)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	process = name;
	max_level = max;
	to_journal = stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
		     fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
	if (!to_journal)
		tzset(); /* reads the zone's file, to which the process may have no access later */
}

void
log_use_json(void)
{
	as_json = true;
}

void
log_use_journal(log_journal_fn *fn)
{
	journal = fn;
}

int
log_level_parse(const char *word)
{
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (words[i] && strcasecmp(word, words[i]) == 0)
			return (int)i;
	return strcasecmp(word, "trace") == 0 ? LOG_LEVEL_DEBUG : -1;
}

void
log_watch(int fd, int level_fd)
{
	const volatile int32_t *page = mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, level_fd, 0);

	if (page == MAP_FAILED)
		return;
	watched = page;
	watch_fd = fd;
	watch_pid = getpid();
}

/* Copies head to the bytes before text and returns where the line begins. */
static char *
put_before(char *text, const char *head)
{
	size_t n = strlen(head);

	return memcpy(text - n, head, n);
}

/* Replaces control characters, which could forge lines or control a terminal, with '?'. U+0080 to
 * U+009F are two bytes each. */
static void
replace_controls(char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_c1 = c == 0xc2 && i + 1 < n && (text[i + 1] & 0xe0) == 0x80;

		if (c < 0x20 || c == 0x7f || is_c1)
			text[i] = '?';
		if (is_c1)
			text[++i] = '?';
	}
}

/* The local time with its zone, such as 2026-11-26T15:07:09.123+01:00. */
static void
format_time(char ret[TIME_MAX])
{
	struct timespec now;
	struct tm tm = { 0 };
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)localtime_r(&now.tv_sec, &tm);
	n = strftime(ret, TIME_MAX, "%FT%T", &tm);
	(void)snprintf(ret + n, TIME_MAX - n, ".%03ld%+03ld:%02ld", now.tv_nsec / 1000000,
	    tm.tm_gmtoff / 3600, labs(tm.tm_gmtoff) / 60 % 60);
}

/* One write per line, so that the lines of several processes do not mix. */
static void
write_line(const char *line, size_t n)
{
	while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
		;
}

/* A quote may take two bytes; what is not UTF-8 becomes '?'. */
static void
write_json(enum log_level level, const char *text, size_t n)
{
	char line[256 + 2 * TEXT_MAX], when[TIME_MAX];
	size_t at;

	format_time(when);
	at = (size_t)snprintf(line, 256,
	    "{\"@level\":\"%s\",\"@module\":\"%s\",\"@timestamp\":\"%s\",\"@message\":\"",
	    words[level], process, when);
	for (size_t i = 0, len; i < n; i += len) {
		bool bad = (len = utf8_char_length(text + i, n - i)) == 0;

		len += bad;
		if (text[i] == '"' || text[i] == '\\')
			line[at++] = '\\';
		memcpy(line + at, bad ? "?" : text + i, len);
		at += len;
	}
	memcpy(line + at, "\"}\n", 3);
	write_line(line, at + 3);
}

/* text has HEAD_MAX bytes before it, for the head of the line, and a newline after its n bytes. */
static void
show_line(enum log_level level, char *text, size_t n)
{
	char head[HEAD_MAX], when[TIME_MAX], *at;

	if (to_journal && journal && journal(level, process, text, n))
		return;
	if (as_json && !to_journal) {
		write_json(level, text, n);
		return;
	}
	if (to_journal) {
		(void)snprintf(head, sizeof head, "<%d>%s: ", level, process);
	} else {
		format_time(when);
		(void)snprintf(head, sizeof head, "%s %s: %s: ", when, process, words[level]);
	}
	at = put_before(text, head);
	write_line(at, (size_t)(text + n + 1 - at));
}

/* MSG_DONTWAIT, because every process has that socket: one of them could make it blocking or fill
 * it. */
static void
send_line(enum log_level level, char *text, size_t n)
{
	char head[HEAD_MAX], *at;

	(void)snprintf(head, sizeof head, "<%d>%s: ", level, process);
	at = put_before(text, head);
	(void)fd_send_msg(watch_fd, at, (size_t)(text + n + 1 - at), NULL, 0, MSG_DONTWAIT);
}

void
log_print(enum log_level level, const char *fmt, ...)
{
	bool shown = level <= max_level, sent = watched && level <= (enum log_level) * watched;
	char line[HEAD_MAX + TEXT_MAX + 1], *text = line + HEAD_MAX;
	int saved = errno, n;
	va_list ap;

	if (!shown && !sent)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, TEXT_MAX, fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	if (n > TEXT_MAX - 1)
		n = TEXT_MAX - 1;
	replace_controls(text, (size_t)n);
	text[n] = '\n';
	if (sent && getpid() == watch_pid)
		send_line(level, text, (size_t)n);
	if (shown)
		show_line(level, text, (size_t)n);
	errno = saved;
}
