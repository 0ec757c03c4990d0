/* SPDX-License-Identifier: Apache-2.0 */
/* log_reader.h: reads the rotated log files of one task as one stream: <task>.<type>.<n>, with
 * growing n; the oldest may be purged while it is read. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_LOG_READER_H
#define DROVER_SUPERVISOR_API_LOG_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define LOG_PREFIX_SIZE 160

enum log_event { LOG_EVENT_NONE, LOG_EVENT_TRUNCATED, LOG_EVENT_DELETED };

struct log_reader {
	int dir_fd, fd;               /* fd is -1 between two files */
	char prefix[LOG_PREFIX_SIZE]; /* "web.stdout." */
	bool follow;
	bool times;           /* each read ends where the time changes; log_chunk has it */
	bool empty;           /* when it was opened there were no files */
	uint64_t index, last; /* last: where reading ends if it does not follow */
	off_t pos;
	bool truncated;
};

/* The result of log_reader_read(). */
struct log_chunk {
	uint64_t index;   /* number of the file */
	off_t end;        /* position in the file after the chunk */
	uint64_t time_us; /* CLOCK_REALTIME when the executor read it; 0: unknown */
	enum log_event event;
};

/* offset counts bytes over all files, from the oldest, or with from_end backwards from the newest;
 * it is clamped to the log's size. Takes over dir_fd (also on failure). A log without files is
 * empty. */
int log_reader_open(struct log_reader *r, int dir_fd, const char *task, const char *type,
    bool from_end, uint64_t offset, bool follow, struct err *e);
/* Continues at a place that an earlier log_chunk gave; if that file was removed, at the oldest
 * newer one. */
void log_reader_resume(struct log_reader *r, uint64_t index, off_t pos);
void log_reader_done(struct log_reader *r);
/* Reads the next bytes and returns their number; 0 with an event if the current file was purged, 0
 * without one if there is nothing now; -ENODATA at the end (if it does not follow, or the directory
 * was removed); or another -errno. */
ssize_t log_reader_read(struct log_reader *r, void *buf, size_t max, struct log_chunk *ret);

#endif
