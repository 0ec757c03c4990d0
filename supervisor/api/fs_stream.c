// SPDX-License-Identifier: Apache-2.0
/* fs_stream.c: streams files and logs as bytes or as frames. Runs in: supervisor. */
#include "supervisor/api/fs_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/base64.h"

#define CHUNK_MAX      (64 * 1024)
#define FOLLOW_USEC    100000
#define HEARTBEAT_USEC 1000000

/* All streams that follow, and the timer that polls for new data while there are some. */
static struct fs_stream *followers;
static sd_event_source *follow_timer;

static uint64_t
now_usec(struct sup *sup)
{
	uint64_t now = 0;

	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	return now;
}

static int
reserve(struct fs_stream *fs, size_t size)
{
	char *grown;

	if (size <= fs->out_size)
		return 0;
	grown = realloc(fs->out, size);
	if (!grown)
		return -ENOMEM;
	fs->out = grown;
	fs->out_size = size;
	return 0;
}

static int
put_frame(struct fs_stream *fs, const char *data, size_t n, const struct fs_chunk *chunk)
{
	const char *file = chunk->file ? chunk->file : "";
	size_t at = 1;

	if (reserve(fs, (n + 2) / 3 * 4 + strlen(file) + 160) < 0)
		return -ENOMEM;
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
	if (chunk->event)
		at += (size_t)sprintf(fs->out + at, "\"FileEvent\":\"%s\",", chunk->event);
	fs->out[at - (at > 1)] = '}';
	fs->out_len = at + (at == 1);
	return 0;
}

static int
put_plain(struct fs_stream *fs, const char *data, size_t n)
{
	if (reserve(fs, n) < 0)
		return -ENOMEM;
	if (n > 0)
		(void)memcpy(fs->out, data, n);
	fs->out_len = n;
	return 0;
}

/* Returns 1 with a payload, 0 if there is none now, negative at the end. */
static int
read_more(struct fs_stream *fs)
{
	static char data[CHUNK_MAX];
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
		return put_plain(fs, data, (size_t)n) < 0 ? -1 : 1;
	return put_frame(fs, data, (size_t)n, &chunk) < 0 ? -1 : 1;
}

static int
put_heartbeat(struct fs_stream *fs)
{
	if (!fs->beats || now_usec(fs->sup) < fs->quiet_since + HEARTBEAT_USEC)
		return 0;
	return put_plain(fs, "{}", fs->plain ? 0 : 2) < 0 ? -1 : 1;
}

static int on_follow_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void
arm_timer(struct sup *sup)
{
	if (!follow_timer) {
		(void)sd_event_add_time_relative(sup->event, &follow_timer, CLOCK_MONOTONIC,
		    FOLLOW_USEC, FOLLOW_USEC / 10, on_follow_timer, sup);
		return;
	}
	(void)sd_event_source_set_time_relative(follow_timer, FOLLOW_USEC);
	(void)sd_event_source_set_enabled(follow_timer, SD_EVENT_ONESHOT);
}

static void
start_following(struct fs_stream *fs)
{
	if (fs->follows)
		return;
	fs->follows = true;
	if (!followers)
		arm_timer(fs->sup);
	fs->next_follower = followers;
	followers = fs;
}

static void
stop_following(struct fs_stream *fs)
{
	struct fs_stream **at = &followers;

	if (!fs->follows)
		return;
	while (*at != fs)
		at = &(*at)->next_follower;
	*at = fs->next_follower;
	fs->follows = false;
	if (!followers)
		follow_timer = sd_event_source_disable_unref(follow_timer);
}

/* wake() may free the stream that it is called with, but no other. */
static int
on_follow_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct fs_stream *next;
	int r;

	for (struct fs_stream *fs = followers; fs; fs = next) {
		next = fs->next_follower;
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
	if (followers)
		arm_timer(userdata);
	return 0;
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
