// SPDX-License-Identifier: Apache-2.0
/* fs_stream.c: streams files and logs as bytes or as frames. Runs in: supervisor. */
#include "supervisor/api/fs_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define CHUNK_MAX      (64 * 1024) /* bytes of one read */
#define FOLLOW_USEC    100000      /* interval of reads while there is no data */
#define HEARTBEAT_USEC 1000000     /* time without data after which a heartbeat is sent */

/* All streams that follow, and the timer that polls for new data while there are some. */
struct followers {
	LIST_HEAD(, fs_stream) list;
	sd_event_source *timer;
};

static uint64_t
now_usec(struct sup *sup)
{
	uint64_t now = 0;

	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

static void
reserve_out(struct fs_stream *fs, size_t size)
{
	if (size <= fs->out_size)
		return;
	fs->out = mem_resize(fs->out, size, 1);
	fs->out_size = size;
}

static void
put_frame(struct fs_stream *fs, const char *data, size_t n, const struct fs_chunk *chunk)
{
	const char *file = chunk->file ? chunk->file : "";
	size_t at = 1;

	reserve_out(fs, (n + 2) / 3 * 4 + strlen(file) + 160);
	fs->out[0] = '{';
	if (chunk->end > 0)
		at += (size_t)sprintf(fs->out + at, "\"Offset\":%lld,", (long long)chunk->end);
	if (n > 0) {
		at += (size_t)sprintf(fs->out + at, "\"Data\":\"");
		at += base64_encode(data, n, fs->out + at);
		at += (size_t)sprintf(fs->out + at, "\",");
	}
	if (*file)
		at += (size_t)sprintf(fs->out + at, "\"File\":%s,", file);
	if (chunk->store)
		at += (size_t)sprintf(fs->out + at, "\"Store\":\"%s\",", chunk->store);
	if (chunk->time_us)
		at += (size_t)sprintf(
		    fs->out + at, "\"Time\":%llu000,", (unsigned long long)chunk->time_us);
	if (chunk->event)
		at += (size_t)sprintf(fs->out + at, "\"FileEvent\":\"%s\",", chunk->event);
	fs->out[at - (at > 1)] = '}';
	fs->out_len = at + (at == 1);
}

static void
put_plain(struct fs_stream *fs, const char *data, size_t n)
{
	reserve_out(fs, n);
	if (n > 0)
		(void)memcpy(fs->out, data, n);
	fs->out_len = n;
}

/* Returns 1 with a payload, 0 if there is none now, negative at the end. */
static int
read_more(struct fs_stream *fs)
{
	static char data[CHUNK_MAX]; /* scratch space, too large for the stack; valid in one call */
	struct fs_chunk chunk = { 0 };
	ssize_t n;

	do {
		chunk.event = NULL;
		n = fs->source->read(fs->source, data, sizeof data, &chunk);
	} while (n == 0 && chunk.event && fs->plain);
	if (n < 0)
		return -1;
	if (n == 0 && !chunk.event)
		return 0;
	if (fs->plain)
		put_plain(fs, data, (size_t)n);
	else
		put_frame(fs, data, (size_t)n, &chunk);
	return 1;
}

/* Returns 1 with a payload if a heartbeat is due, else 0. */
static int
put_heartbeat(struct fs_stream *fs)
{
	if (!fs->beats || now_usec(fs->sup) < fs->quiet_since + HEARTBEAT_USEC)
		return 0;
	put_plain(fs, "{}", fs->plain ? 0 : 2);
	return 1;
}

static int on_follow_timer(sd_event_source *source, uint64_t usec, void *userdata);

/* More accurate than sup_timer_set(), which may be late by more than the interval. */
static void
set_timer(struct sup *sup)
{
	sd_event_source **timer = &sup->followers->timer;

	if (!*timer) {
		(void)sd_event_add_time_relative(sup->event, timer, CLOCK_MONOTONIC, FOLLOW_USEC,
		    FOLLOW_USEC / 10, on_follow_timer, sup);
		return;
	}
	(void)sd_event_source_set_time_relative(*timer, FOLLOW_USEC);
	(void)sd_event_source_set_enabled(*timer, SD_EVENT_ONESHOT);
}

static void
start_following(struct fs_stream *fs)
{
	struct followers *all = fs->sup->followers;

	if (fs->follows)
		return;
	fs->follows = true;
	if (LIST_EMPTY(&all->list))
		set_timer(fs->sup);
	LIST_INSERT_HEAD(&all->list, fs, link);
}

static void
stop_following(struct fs_stream *fs)
{
	struct followers *all = fs->sup->followers;

	if (!fs->follows)
		return;
	LIST_REMOVE(fs, link);
	fs->follows = false;
	if (LIST_EMPTY(&all->list))
		all->timer = sd_event_source_disable_unref(all->timer);
}

/* wake() may free the stream that it is called with, but no other. */
static int
on_follow_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct sup *sup = userdata;
	struct fs_stream *fs, *next;
	int r;

	LIST_FOREACH_SAFE (fs, &sup->followers->list, link, next) {
		if (!fs->waiting)
			continue;
		r = read_more(fs);
		if (r == 0)
			r = put_heartbeat(fs);
		if (r == 0)
			continue;
		fs->waiting = false;
		fs->ready = r > 0;
		fs->over = r < 0;
		fs->wake(fs);
	}
	if (!LIST_EMPTY(&sup->followers->list))
		set_timer(sup);
	return 0;
}

void
fs_followers_new(struct sup *sup)
{
	sup->followers = mem_new(struct followers);
}

void
fs_followers_free(struct sup *sup)
{
	if (!sup->followers)
		return;
	(void)sd_event_source_disable_unref(sup->followers->timer);
	free_p(&sup->followers);
}

int
fs_stream_more(struct fs_stream *fs)
{
	int r;

	if (fs->ready || fs->over)
		return fs->ready ? 1 : -1;
	if (fs->waiting)
		return 0;
	r = read_more(fs);
	fs->ready = r > 0;
	fs->over = r < 0;
	if (r == 0) {
		fs->waiting = true;
		fs->quiet_since = now_usec(fs->sup);
		start_following(fs);
	}
	return r;
}

void
fs_stream_took(struct fs_stream *fs)
{
	fs->ready = false;
}

void
fs_stream_done(struct fs_stream *fs)
{
	stop_following(fs);
	if (fs->source)
		fs->source->free(fs->source);
	free(fs->out);
	fs->source = NULL;
	fs->out = NULL;
}
