// SPDX-License-Identifier: Apache-2.0
/* journal.c: sends log lines with their fields to the journal, in its native protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL). Runs in: supervisor. */
#include "supervisor/core/journal.h"

#include <endian.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define IDENTIFIER     "drover" /* also SyslogIdentifier= of the units, for the other processes */
#define MESSAGE_MAX    1280
#define ENTRY_MAX      4096

static const char *const kind_ids[] = {
#define JOURNAL_KIND(name, id) [JOURNAL_##name] = (id),
#include "supervisor/core/journal_kinds.def"
#undef JOURNAL_KIND
};

static int journal_fd = -1;
/* The line that is being printed. */
static enum journal_kind current_kind;
static const struct journal_about *current_about;

struct entry {
	char *buf;
	size_t size, len;
};

static void
put_field(struct entry *e, const char *name, const char *value)
{
	size_t name_len = strlen(name), len = value ? strlen(value) : 0;
	uint64_t le = htole64(len);
	char *at = e->buf + e->len;

	if (len == 0 || name_len + 1 + sizeof le + len + 1 > e->size - e->len)
		return;
	at = mempcpy(at, name, name_len);
	*at++ = '\n';
	at = mempcpy(at, &le, sizeof le);
	at = mempcpy(at, value, len);
	*at++ = '\n';
	e->len = (size_t)(at - e->buf);
}

size_t
journal_encode(char *buf, size_t size, enum log_level level, enum journal_kind kind,
    const struct journal_about *about, const char *message)
{
	const struct journal_about none = { 0 };
	const char priority[] = { (char)('0' + level), '\0' };
	struct entry e = { .buf = buf, .size = size };

	if (!about)
		about = &none;
	put_field(&e, "MESSAGE", message);
	put_field(&e, "PRIORITY", priority);
	put_field(&e, "SYSLOG_IDENTIFIER", IDENTIFIER);
	put_field(&e, "MESSAGE_ID", kind_ids[kind]);
	put_field(&e, "DROVER_ALLOC_ID", about->alloc_id);
	put_field(&e, "DROVER_NAMESPACE", about->namespace);
	put_field(&e, "DROVER_JOB", about->job);
	put_field(&e, "DROVER_TASK", about->task);
	put_field(&e, "DROVER_VOLUME", about->volume);
	put_field(&e, "DROVER_REQUEST", about->request);
	return e.len;
}

/* MSG_DONTWAIT: a journal that is stopped or behind must not stop the supervisor here; stderr then
 * waits for it, as the other processes do. */
static bool
send_entry(enum log_level level, const char *process, const char *text, size_t len)
{
	static const struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = JOURNAL_SOCKET };
	char message[MESSAGE_MAX], buf[ENTRY_MAX];
	size_t n;

	(void)snprintf(message, sizeof message, "%s: %.*s", process, (int)len, text);
	n = journal_encode(buf, sizeof buf, level, current_kind, current_about, message);
	return sendto(journal_fd, buf, n, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&to,
		   sizeof to) == (ssize_t)n;
}

void
journal_open(void)
{
	journal_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (journal_fd >= 0)
		log_use_journal(send_entry);
}

void
journal_print(enum log_level level, enum journal_kind kind, const struct journal_about *about,
    const char *fmt, ...)
{
	char text[MESSAGE_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	current_kind = kind;
	current_about = about;
	log_print(level, "%s", text);
	current_kind = JOURNAL_NONE;
	current_about = NULL;
}
