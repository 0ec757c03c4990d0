/* SPDX-License-Identifier: Apache-2.0 */
/* fs_stream.h: streams files and logs of allocs, as bytes or as frames, and follows them. The
 * caller transports the data. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_FS_STREAM_H
#define DROVER_SUPERVISOR_API_FS_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/id.h"
#include "common/list.h"
#include "supervisor/core/sup.h"

/* The result of one read. */
struct fs_chunk {
	const char *file;  /* its name as a quoted JSON string, owned by the source; NULL: none */
	off_t end;         /* position in the file after the chunk */
	const char *event; /* NULL: none */
	const char *store; /* "journald" if most of a task's log is there; NULL */
	uint64_t time_us;  /* when a log's bytes were written; 0: unknown, or not requested */
};

struct fs_source {
	/* Returns the number of bytes; 0 with an event in *ret, or if there is no data now;
	 * negative at the end. */
	ssize_t (*read)(struct fs_source *src, void *buf, size_t max, struct fs_chunk *ret);
	void (*free)(struct fs_source *src);
};

/* Opens a task's log, all its files as one stream. Returns 0, or an HTTP status with *e. */
struct fs_log_wish {
	const struct id *alloc;
	const char *task, *type, *origin;
	bool follow, times;
	int64_t offset;
	int64_t file; /* with origin "file": the number of the file in which offset counts */
};
int fs_log_open(
    struct sup *sup, const struct fs_log_wish *wish, struct fs_source **ret, struct err *e);

/* Streams a file that alloc_fs_ask() opened; takes over fd. A limit of 0 or less means none. */
struct fs_file_wish {
	struct id alloc;
	const char *path;
	bool from_end, follow;
	int64_t offset, limit;
};
struct fs_source *fs_file_new(struct sup *sup, const struct fs_file_wish *wish, int fd);

/* monitor.c: sup->monitor. */
void monitor_new(struct sup *sup);
void monitor_free(struct sup *sup);
/* Streams the log of the agent's processes from now on, up to a level ("": info), as lines or as
 * JSON. Returns 0, or an HTTP status with *e. */
int monitor_open(
    struct sup *sup, const char *level, bool json, struct fs_source **ret, struct err *e);

/* The reason why earlier log lines are not available. */
#define MONITOR_NOT_KEPT                                                                           \
	"the agent does not store its log and cannot read the system journal: `journalctl -u "     \
	"drover` shows earlier lines, `drover monitor` follows new ones"

/* Embedded by its owner; members below the line are private. */
struct fs_stream {
	struct sup *sup;
	struct fs_source *source; /* freed with the stream */
	bool plain;               /* plain bytes instead of frames */
	/* Without data there is a payload each second: "{}", or an empty one if plain. */
	bool beats;
	/* Called after fs_stream_more() returned 0, when there is more data or the end. */
	void (*wake)(struct fs_stream *fs);

	/* --- */
	LIST_ENTRY(fs_stream) link; /* among the streams that follow */
	char *out;
	size_t out_len, out_size;
	uint64_t quiet_since;  /* time since when there is no data, µs */
	bool ready, over;      /* a payload is in `out`; the source has ended */
	bool waiting, follows; /* wake() is to be called; it is in the list of followers */
};

/* The list of streams that follow: sup->followers. */
void fs_followers_new(struct sup *sup);
void fs_followers_free(struct sup *sup);

/* Returns 1 if fs->out and fs->out_len are the next payload, until fs_stream_took(); 0 if there is
 * none now; negative at the end. */
int fs_stream_more(struct fs_stream *fs);
/* The caller has sent the payload. */
void fs_stream_took(struct fs_stream *fs);
void fs_stream_done(struct fs_stream *fs);

#endif
