// SPDX-License-Identifier: Apache-2.0
/* exe_journal.c: writes the task's output to the journal, one entry per line, in the journal's
 * native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). Runs in: executor, after its drop. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/exe_journal.h"
#include "executor/exe_start.h"

/* Bytes of an entry's MESSAGE. An entry fits into one datagram, so none needs a memfd. */
#define LINE_SIZE 16384
/* How long output waits for a journal that accepts nothing: longer than a restart takes. */
#define HOLD_MS 10000

enum { PRIORITY_WARNING = 4, PRIORITY_INFO = 6 };

/* A stream's output that the journal does not have yet, and how many lines it missed. */
struct held {
	char text[LINE_SIZE + EXE_LOG_BUF_SIZE];
	size_t len;
	uint64_t missed;
};

/* Only tasks that write to the journal use it. As a common symbol the linker puts it behind all
 * other variables; between them it would spread those that every executor writes over more pages.
 */
extern struct exe_journal_memory {
	struct held held[2];
	size_t common_len;
	char common_fields[8 * IPC_NAME_SIZE]; /* the same in all entries of this task */
} exe_journal_memory;
struct exe_journal_memory exe_journal_memory __attribute__((common));

static const struct {
	const char *name;
	int priority;
} streams[] = { { "stdout", PRIORITY_INFO }, { "stderr", PRIORITY_WARNING } };

static void
add_common_field(const char *name, const char *value)
{
	const size_t name_len = strlen(name), len = strlen(value);
	const uint64_t le = htole64(len);
	char *at = exe_journal_memory.common_fields + exe_journal_memory.common_len;

	if (len == 0 || name_len + sizeof le + len + 2 >
			    sizeof exe_journal_memory.common_fields - exe_journal_memory.common_len)
		return;
	memcpy(at, name, name_len);
	at[name_len] = '\n';
	memcpy(at + name_len + 1, &le, sizeof le);
	memcpy(at + name_len + 1 + sizeof le, value, len);
	at[name_len + 1 + sizeof le + len] = '\n';
	exe_journal_memory.common_len += name_len + sizeof le + len + 2;
}

void
exe_journal_begin(const struct exe *x)
{
	const struct exe_setup *s = x->setup;

	if (x->journal.fd < 0)
		return;
	add_common_field("SYSLOG_IDENTIFIER", s->keep.task);
	add_common_field("DROVER_ALLOC_ID", s->alloc_name);
	add_common_field("DROVER_NAMESPACE", s->log_namespace);
	add_common_field("DROVER_JOB", s->log_job);
	add_common_field("DROVER_GROUP", s->log_group);
	add_common_field("DROVER_TASK", s->keep.task);
}

/* Sends one entry. Returns 0 or -errno; -EAGAIN: the journal's queue is full. */
static int
send_entry(struct exe *x, size_t stream, int priority, const char *text, size_t len, bool has_more)
{
	char own[96];
	const int own_len = snprintf(own, sizeof own, "%sPRIORITY=%d\nDROVER_STREAM=%s\nMESSAGE\n",
	    has_more ? "DROVER_PARTIAL=1\n" : "", priority, streams[stream].name);
	uint64_t le = htole64(len);
	struct iovec parts[] = {
		{ exe_journal_memory.common_fields, exe_journal_memory.common_len },
		{ own, (size_t)own_len },
		{ &le, sizeof le },
		{ (void *)(uintptr_t)text, len },
		{ (char[]){ '\n' }, 1 },
	};
	const struct msghdr message = { .msg_iov = parts, .msg_iovlen = ELEMENTSOF(parts) };

	if (sendmsg(x->journal.fd, &message, MSG_NOSIGNAL) < 0)
		return -errno;
	x->journal.given_up = false;
	return 0;
}

/* A line may begin with its priority as in sd-daemon(3), "<3>". Lines of a terminal end with
 * "\r\n", and journalctl shows no line that has a control character. */
static int
send_line(struct exe *x, size_t stream, const char *line, size_t len, bool has_more)
{
	if (x->tty && len > 0 && line[len - 1] == '\r')
		len--;
	if (len >= 3 && line[0] == '<' && line[1] >= '0' && line[1] <= '7' && line[2] == '>')
		return send_entry(x, stream, line[1] - '0', line + 3, len - 3, has_more);
	return send_entry(x, stream, streams[stream].priority, line, len, has_more);
}

/* Finds the first entry in text. Returns the number of its bytes with the newline; 0 if the line is
 * not complete yet. */
static size_t
find_line(const char *text, size_t n, bool ended, size_t *ret_len, bool *ret_has_more)
{
	const char *newline = memchr(text, '\n', n);
	size_t len = newline ? (size_t)(newline - text) : n;

	*ret_has_more = len > LINE_SIZE;
	*ret_len = *ret_has_more ? LINE_SIZE : len;
	if (*ret_has_more)
		return LINE_SIZE;
	return newline ? len + 1 : ended ? len : 0;
}

static bool
stream_has_ended(const struct exe *x, size_t stream)
{
	return x->journal.ending || x->logs[stream].pipe < 0;
}

/* Once the journal accepts entries again, the first one says what it did not get. */
static int
send_missed(struct exe *x, size_t stream)
{
	struct held *h = &exe_journal_memory.held[stream];
	char text[192];
	int r, len;

	if (h->missed == 0)
		return 0;
	len = snprintf(text, sizeof text,
	    "drover: %llu lines of %s before this one are only in the task's log files, because "
	    "the journal did not accept them",
	    (unsigned long long)h->missed, streams[stream].name);
	r = send_entry(x, stream, PRIORITY_WARNING, text, (size_t)len, false);
	if (r == 0)
		h->missed = 0;
	return r;
}

/* Sends all complete lines. Returns 0, or -errno, and keeps what was not sent. */
static int
send_held(struct exe *x, size_t stream)
{
	struct held *h = &exe_journal_memory.held[stream];
	size_t at = 0, len, n;
	bool has_more;
	int r = h->len > 0 ? send_missed(x, stream) : 0;

	while (r == 0 && at < h->len) {
		n = find_line(
		    h->text + at, h->len - at, stream_has_ended(x, stream), &len, &has_more);
		if (n == 0)
			break;
		r = send_line(x, stream, h->text + at, len, has_more);
		if (r == 0)
			at += n;
	}
	h->len -= at;
	memmove(h->text, h->text + at, h->len);
	return r;
}

/* The journal does not accept what is held: it goes to the files, which with LOG_STORE_BOTH have it
 * already. An incomplete line stays, for the journal. */
static void
put_into_files(struct exe *x, size_t stream)
{
	struct held *h = &exe_journal_memory.held[stream];
	size_t at = 0, len, n;
	bool has_more;

	while (at < h->len && (n = find_line(h->text + at, h->len - at, stream_has_ended(x, stream),
				   &len, &has_more)) > 0) {
		at += n;
		h->missed++;
	}
	if (x->keep.log_store == LOG_STORE_JOURNALD)
		exe_log_write(x, stream, h->text, at);
	h->len -= at;
	memmove(h->text, h->text + at, h->len);
}

/* A journal that was given up gets one attempt per read, without waiting. */
static void
push(struct exe *x, size_t stream)
{
	struct exe_journal *j = &x->journal;
	int r = send_held(x, stream);

	if (r == 0)
		return;
	if (r == -EAGAIN && !j->given_up) {
		if (j->wait_until_ms == 0)
			j->wait_until_ms = clock_ms() + HOLD_MS;
		return;
	}
	j->given_up = true;
	put_into_files(x, stream);
}

void
exe_journal_write(struct exe *x, size_t stream, const char *text, size_t len)
{
	struct held *h = &exe_journal_memory.held[stream];

	/* There is room: as long as something else than an incomplete line, which is at most
	 * LINE_SIZE, is held, exe_log_pump() does not read. */
	memcpy(h->text + h->len, text, len);
	h->len += len;
	push(x, stream);
}

bool
exe_journal_retry(struct exe *x)
{
	struct exe_journal *j = &x->journal;
	const uint64_t until_ms = j->wait_until_ms;
	const size_t before = exe_journal_memory.held[0].len + exe_journal_memory.held[1].len;

	if (until_ms == 0)
		return false;
	j->given_up = clock_ms() >= until_ms;
	j->wait_until_ms = 0;
	for (size_t i = 0; i < ELEMENTSOF(x->logs); i++)
		push(x, i);
	/* Only progress extends the time. */
	if (j->wait_until_ms &&
	    exe_journal_memory.held[0].len + exe_journal_memory.held[1].len == before)
		j->wait_until_ms = until_ms;
	return true;
}

/* Waits until the journal accepts more, or the deadline. */
static void
wait_for_journal(struct exe *x, uint64_t deadline_ms)
{
	struct pollfd p = { .fd = x->journal.fd, .events = POLLOUT };
	uint64_t now = clock_ms();

	if (x->journal.wait_until_ms > deadline_ms)
		x->journal.wait_until_ms = deadline_ms;
	if (now < deadline_ms)
		(void)poll(&p, 1, (int)(deadline_ms - now));
	(void)exe_journal_retry(x);
}

void
exe_journal_finish(struct exe *x, size_t stream)
{
	uint64_t deadline_ms = clock_ms() + HOLD_MS;
	int reads = 0;

	x->journal.ending = false;
	do {
		while (exe_journal_waits(x))
			wait_for_journal(x, deadline_ms);
	} while (exe_log_pump(x, stream) == 1 && ++reads < EXE_DRAIN_READS);
	while (exe_journal_waits(x))
		wait_for_journal(x, deadline_ms);
	x->journal.ending = true;
	push(x, stream);
	while (exe_journal_waits(x))
		wait_for_journal(x, deadline_ms);
}
