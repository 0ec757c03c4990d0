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

log_journal_fn *log_journal;

#define TEXT_MAX 1100
#define HEAD_MAX 96 /* the longest "<3>NAME: " or "TIME NAME: error: " */

static const char *process = "drover";
static enum log_level max_level = LOG_LEVEL_INFO;
static int to_journal;
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
	tzset(); /* reads the zone's file, to which the process may have no access later */
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

/* The head of a line that is not for the journal: the local time, the process and the level. */
static void
put_plain_head(char head[HEAD_MAX], enum log_level level)
{
	char date[32], zone[8];
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)strftime(date, sizeof date, "%FT%T", localtime_r(&now.tv_sec, &tm));
	(void)strftime(zone, sizeof zone, "%z", &tm);
	(void)snprintf(head, HEAD_MAX, "%s.%03ld%s %s: %s: ", date, now.tv_nsec / 1000000, zone,
	    process, words[level]);
}

void
log_print(enum log_level level, const char *fmt, ...)
{
	bool shown = level <= max_level, sent = watched && level <= (enum log_level) * watched;
	char line[HEAD_MAX + TEXT_MAX], head[HEAD_MAX], *text = line + HEAD_MAX, *at;
	int saved = errno, n;
	va_list ap;

	if (!shown && !sent)
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, TEXT_MAX - 1, fmt, ap);
	va_end(ap);
	n = n < 0 ? 0 : n > TEXT_MAX - 2 ? TEXT_MAX - 2 : n;
	replace_controls(text, (size_t)n);
	text[n++] = '\n';
	(void)snprintf(head, sizeof head, "<%d>%s: ", level, process);
	/* MSG_DONTWAIT, because every process has that socket: one of them could make it blocking
	 * or fill it. */
	if (sent && getpid() == watch_pid) {
		at = put_before(text, head);
		(void)fd_send_msg(watch_fd, at, (size_t)(text + n - at), NULL, 0, MSG_DONTWAIT);
	}
	shown = shown &&
		!(to_journal && log_journal && log_journal(level, process, text, (size_t)n - 1));
	if (!to_journal)
		put_plain_head(head, level);
	/* One write per line, so that the lines of several processes do not mix. */
	at = put_before(text, head);
	while (shown && write(STDERR_FILENO, at, (size_t)(text + n - at)) < 0 && errno == EINTR)
		;
	errno = saved;
}
