// SPDX-License-Identifier: Apache-2.0
/* monitor.c: passes the log of the agent's processes to clients that follow it: Agent.Monitor and
 * /v1/agent/monitor. Runs in: supervisor. All processes, this one included, send their lines to one
 * socket while the page says that there is a client (common/log.h), so this file must not log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"
#include "supervisor/api/fs_stream.h"

#define LINE_MAX_BYTES 1200 /* of one line with its prefix */
#define LINES_PER_TURN 64
#define PENDING_MAX    (256u * 1024) /* buffered bytes of a client that does not read */

struct watcher {
	struct fs_source base;
	LIST_ENTRY(watcher) link; /* in monitor.watchers */
	struct monitor *monitor;
	int level; /* the highest of its lines */
	bool json;
	struct text pending;
	size_t at;     /* bytes that have been read */
	uint64_t lost; /* lines that were dropped since the last read */
};

/* Each line arrives once, on one socket, and goes to all watchers. */
struct monitor {
	LIST_HEAD(, watcher) watchers;
	sd_event_source *lines;
	volatile int32_t *wanted; /* the shared page: the highest level of all watchers */
};

static const char *
level_name(int level)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		return "error";
	case LOG_LEVEL_WARN:
		return "warn";
	case LOG_LEVEL_DEBUG:
		return "debug";
	default:
		return "info";
	}
}

static void
put_line(struct watcher *w, int level, const char *process, const char *message)
{
	struct timespec ts;
	char when[RFC3339_SIZE];

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	time_format((int64_t)ts.tv_sec * 1000000000, when);
	when[strcspn(when, "Z")] = '\0';
	if (w->json) {
		text_printf(&w->pending, "{\"@level\":\"%s\",\"@message\":", level_name(level));
		text_json_string(&w->pending, message);
		text_append(&w->pending, ",\"@module\":", 11);
		text_json_string(&w->pending, process);
		text_printf(
		    &w->pending, ",\"@timestamp\":\"%s.%06ldZ\"}\n", when, ts.tv_nsec / 1000);
	} else {
		text_printf(&w->pending, "%s.%03ldZ [%s]%s %s: %s\n", when, ts.tv_nsec / 1000000,
		    level == LOG_LEVEL_ERROR   ? "ERROR"
		    : level == LOG_LEVEL_WARN  ? "WARN"
		    : level == LOG_LEVEL_DEBUG ? "DEBUG"
					       : "INFO",
		    level == LOG_LEVEL_WARN || level == LOG_LEVEL_INFO ? " " : "", process,
		    message);
	}
}

static void
give_line(struct watcher *w, int level, const char *process, const char *message)
{
	if (level > w->level)
		return;
	if (w->pending.len - w->at > PENDING_MAX) {
		w->lost++;
		return;
	}
	put_line(w, level, process, message);
}

/* Parses "<6>heartbeat: text"; lines of another form are not ours. */
static void
take_line(struct monitor *m, const char *packet, size_t len)
{
	char line[LINE_MAX_BYTES], *message;
	struct watcher *w;
	int level;

	if (len > 0 && packet[len - 1] == '\n')
		len--;
	(void)utf8_sanitize(line, sizeof line, packet, len);
	message = strstr(line, ": ");
	if (line[0] != '<' || line[1] < '0' || line[1] > '7' || line[2] != '>' || !message)
		return;
	level = line[1] - '0';
	*message = '\0';
	message += 2;
	LIST_FOREACH (w, &m->watchers, link)
		give_line(w, level, line + 3, message);
}

static int
on_lines(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct monitor *m = userdata;
	char packet[LINE_MAX_BYTES];
	ssize_t n = 1;

	for (int i = 0; i < LINES_PER_TURN && n > 0; i++) {
		n = recv(fd, packet, sizeof packet, MSG_DONTWAIT);
		if (n > 0)
			take_line(m, packet, (size_t)n);
	}
	/* The launcher owns the other end and keeps it open. */
	if (n == 0)
		m->lines = sd_event_source_disable_unref(m->lines);
	return 0;
}

/* Discards lines for the previous supervisor. The socket's flags may have been changed, so no read
 * relies on them. */
static void
drop_old_lines(void)
{
	char packet[LINE_MAX_BYTES];

	while (recv(FD_SUP_LOG, packet, sizeof packet, MSG_DONTWAIT) > 0)
		;
}

/* Writes the level that the agent's processes send to the shared page. */
static void
set_wanted(struct monitor *m)
{
	const struct watcher *w;
	int level = 0;

	LIST_FOREACH (w, &m->watchers, link)
		level = w->level > level ? w->level : level;
	*m->wanted = level;
	if (level == 0)
		m->lines = sd_event_source_disable_unref(m->lines);
}

static int
open_lines(struct sup *sup, struct err *e)
{
	struct monitor *m = sup->monitor;
	void *page;
	int r;

	if (!m->wanted) {
		page = mmap(
		    NULL, sizeof *m->wanted, PROT_READ | PROT_WRITE, MAP_SHARED, FD_LOG_LEVEL, 0);
		if (page == MAP_FAILED)
			return err_set(e, -errno, "follow the log");
		m->wanted = page;
	}
	if (m->lines)
		return 0;
	drop_old_lines();
	r = sd_event_add_io(sup->event, &m->lines, FD_SUP_LOG, EPOLLIN, on_lines, m);
	if (r < 0)
		return err_set(e, r, "follow the log");
	/* A flood of log lines must not delay other work. */
	(void)sd_event_source_set_priority(m->lines, SD_EVENT_PRIORITY_IDLE);
	return 0;
}

/* As a source of a stream. */

/* Bounds the buffer of a client that never catches up: removes the bytes that were read. */
static void
drop_read(struct watcher *w)
{
	if (w->at < PENDING_MAX)
		return;
	w->pending.len -= w->at;
	memmove(w->pending.text, w->pending.text + w->at, w->pending.len);
	w->at = 0;
}

static ssize_t
read_lines(struct fs_source *src, void *buf, size_t max, struct fs_chunk *ret)
{
	struct watcher *w = container_of(src, struct watcher, base);
	size_t n = w->pending.len - w->at;

	if (n == 0)
		return 0;
	n = n < max ? n : max;
	memcpy(buf, w->pending.text + w->at, n);
	w->at += n;
	*ret = (struct fs_chunk){ .event = "log" };
	if (w->at < w->pending.len) {
		drop_read(w);
		return (ssize_t)n;
	}
	w->at = w->pending.len = 0;
	if (w->lost > 0) {
		char sentence[96];

		(void)snprintf(sentence, sizeof sentence,
		    "%llu lines were dropped, because they came faster than they were read",
		    (unsigned long long)w->lost);
		w->lost = 0;
		put_line(w, LOG_LEVEL_WARN, "supervisor", sentence);
	}
	return (ssize_t)n;
}

static void
free_watcher(struct fs_source *src)
{
	struct watcher *w = container_of(src, struct watcher, base);

	LIST_REMOVE(w, link);
	set_wanted(w->monitor);
	text_done(&w->pending);
	free(w);
}

int
monitor_open(struct sup *sup, const char *level, bool json, struct fs_source **ret, struct err *e)
{
	int max = *level ? log_level_parse(level) : LOG_LEVEL_INFO;
	struct watcher *w;

	if (max < 0)
		return err_say(e, -EINVAL,
			   "Unknown log level \"%s\": use error, warn, info or debug", level),
		       400;
	if (open_lines(sup, e) < 0)
		return 500;
	w = mem_new(struct watcher);
	w->monitor = sup->monitor;
	w->base = (struct fs_source){ .read = read_lines, .free = free_watcher };
	w->level = max;
	w->json = json;
	LIST_INSERT_HEAD(&sup->monitor->watchers, w, link);
	set_wanted(sup->monitor);
	*ret = &w->base;
	return 0;
}

void
monitor_new(struct sup *sup)
{
	sup->monitor = mem_new(struct monitor);
}

void
monitor_free(struct sup *sup)
{
	if (!sup->monitor)
		return;
	(void)sd_event_source_disable_unref(sup->monitor->lines);
	free_p(&sup->monitor);
}
