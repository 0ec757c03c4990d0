// SPDX-License-Identifier: Apache-2.0
/* log.c: lines to stderr. Runs in: every process but the executor. */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

static const char *process = "drover";
static enum log_level max_level = LOG_LEVEL_INFO;
static int to_journal;

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
}

int
log_level_parse(const char *word)
{
	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (words[i] && strcasecmp(word, words[i]) == 0)
			return (int)i;
	return strcasecmp(word, "trace") == 0 ? LOG_LEVEL_DEBUG : -1;
}

/* One write per line, or lines of several processes mix. Control bytes could forge lines: they
 * become '?'. */
void
log_print(enum log_level level, const char *fmt, ...)
{
	char line[1200];
	int saved = errno, head, n;
	va_list ap;

	if (level > max_level)
		return;
	if (to_journal)
		head = snprintf(line, sizeof line, "<%d>%s: ", level, process);
	else
		head = snprintf(line, sizeof line, "%s: %s: ", process, words[level]);
	va_start(ap, fmt);
	n = vsnprintf(line + head, sizeof line - (size_t)head - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		n = 0;
	n += head;
	if ((size_t)n > sizeof line - 2)
		n = (int)sizeof line - 2;
	for (int i = head; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	while (write(STDERR_FILENO, line, (size_t)n) < 0 && errno == EINTR)
		;
	errno = saved;
}
