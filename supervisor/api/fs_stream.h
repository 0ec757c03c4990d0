/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fs_stream.h: files and logs of allocs on their way to somebody: read, followed, as bytes or as
 * frames. Where they go is the caller's. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_API_FS_STREAM_H
#define DROVER_SUPERVISOR_API_FS_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/id.h"
#include "supervisor/core/sup.h"

/* What one read gave. */
struct fs_chunk {
	const char *file;  /* as JSON, quoted; the source's; NULL: of none */
	off_t end;         /* position in it behind the chunk */
	const char *event; /* NULL: none */
};

struct fs_source {
	/* Bytes; 0 with an event; 0: nothing just now; negative: the end. */
	ssize_t (*read)(struct fs_source *src, void *buf, size_t max, struct fs_chunk *ret);
	void (*free)(struct fs_source *src);
};

/* A task's log, all its files as one. Returns 0, or an HTTP status with *e. */
struct fs_log_wish {
	const struct id *alloc;
	const char *task, *type, *origin;
	bool follow;
	int64_t offset;
};
int fs_log_open(
    struct sup *sup, const struct fs_log_wish *wish, struct fs_source **ret, struct err *e);

/* A file that alloc_fs_ask() opened; takes over fd. limit 0 or below: none. NULL without memory. */
struct fs_file_wish {
	struct id alloc;
	const char *path;
	bool from_end, follow;
	int64_t offset, limit;
};
struct fs_source *fs_file_new(struct sup *sup, const struct fs_file_wish *wish, int fd);

/* monitor.c: what the agent's processes log from now on, up to a level ("": info), as lines or as
 * JSON. 0, or an HTTP status with *e. */
int monitor_open(
    struct sup *sup, const char *level, bool json, struct fs_source **ret, struct err *e);

/* Why nobody gets what was logged before. */
#define MONITOR_NOT_KEPT                                                                           \
	"the agent keeps no log of its own and may not read the system's: journalctl -u drover "   \
	"has what it said, monitor follows what it says"

/* Embedded; what is below the line is its own. */
struct fs_stream {
	struct sup *sup;
	struct fs_source *source; /* freed with it */
	bool plain;               /* bytes, not frames */
	bool beats; /* in silence there is a payload every second: "{}", or an empty one if plain */
	/* After fs_stream_more() gave 0: there is more, or the end. */
	void (*wake)(struct fs_stream *fs);

	/* --- */
	struct fs_stream *next_follower;
	char *out;
	size_t out_len, out_size;
	uint64_t quiet_since;
	bool ready, waiting, follows, over;
};

/* 1: fs->out, fs->out_len is the next payload until fs_stream_took(); 0: none just now; negative:
 * the end. */
int fs_stream_more(struct fs_stream *fs);
void fs_stream_took(struct fs_stream *fs);
void fs_stream_done(struct fs_stream *fs);

#endif
