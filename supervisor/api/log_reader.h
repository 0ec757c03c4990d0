/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_reader.h: the rotated log files of one task read as one text: <task>.<type>.<n>, n growing,
 * the oldest purged under the reader. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_API_LOG_READER_H
#define DROVER_SUPERVISOR_API_LOG_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define LOG_PREFIX_SIZE 160

enum log_event { LOG_EVENT_NONE, LOG_EVENT_TRUNCATED, LOG_EVENT_DELETED };

struct log_reader {
	int dir_fd, fd;               /* fd -1: between two files */
	char prefix[LOG_PREFIX_SIZE]; /* "web.stdout." */
	bool follow;
	uint64_t index, last; /* last: where reading ends when it does not follow */
	off_t pos;
	bool truncated;
};

/* What log_reader_read() read. */
struct log_chunk {
	uint64_t index; /* of the file */
	off_t end;      /* position in it behind the chunk */
	enum log_event event;
};

/*
 * offset counts bytes over all files, from the oldest, or backwards from the newest with from_end;
 * beyond either end it is clamped. Takes over dir_fd (also on failure). No file yet is an
 * empty log.
 */
int log_reader_open(struct log_reader *r, int dir_fd, const char *task, const char *type,
    bool from_end, uint64_t offset, bool follow, struct err *e);
void log_reader_done(struct log_reader *r);
/*
 * The next bytes: their number; 0 with an event: the file that was read is gone, or 0 without:
 * nothing just now; -ENODATA: the end (does not follow, or the directory is gone); or another
 * -errno.
 */
ssize_t log_reader_read(struct log_reader *r, void *buf, size_t max, struct log_chunk *ret);

#endif
