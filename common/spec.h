/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h: writes and reads a task spec (proto/task_spec.h). Runs in: supervisor, executor (reads).
 */
#ifndef DROVER_COMMON_SPEC_H
#define DROVER_COMMON_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/task_spec.h"

struct spec_entry {
	uint32_t tag, len;
	const char *text; /* NUL-terminated, points into the spec */
};

/* A file of a task. uid and gid: -1: the task's own. */
struct spec_file {
	unsigned mode;
	int64_t uid, gid;
	const char *path;
};

/* Zeros are an empty one. */
struct spec_writer {
	char *buf; /* what is not in the memfd yet */
	size_t len, size, n;
	size_t in_memfd; /* bytes; 0: there is no memfd */
	int memfd;
	bool no_files; /* spec_add_file() adds nothing */
	int failed;    /* -E2BIG if an entry does not fit; spec_finish() returns it */
};

/* In spec_writer.c. Appends one entry. A long text is written into the memfd at once, because
 * another copy of it would cost as much memory again. */
void spec_add(struct spec_writer *w, enum spec_tag tag, const char *text, size_t len);
void spec_add_str(struct spec_writer *w, enum spec_tag tag, const char *text);
/* Appends a file. */
void spec_add_file(
    struct spec_writer *w, const struct spec_file *file, const void *data, size_t len);
/* Makes a sealed memfd of all entries. Returns a descriptor that the caller closes, or -errno;
 * frees the buffer in either case. */
int spec_finish(struct spec_writer *w);
/* Frees one that is not to be finished. */
void spec_writer_done(struct spec_writer *w);

/*
 * In task_spec.c. Reads the next entry of a spec; *at starts as 0. Returns 1 for an entry, 0 at the
 * end, or -EBADMSG for anything that is not a valid spec (a truncated entry, an unknown tag, a
 * missing NUL, a NUL inside text, padding that is not zero).
 */
int spec_next(const void *spec, size_t size, size_t *at, struct spec_entry *ret);
/* In task_spec.c. Reads the text of a SPEC_FILE; ret->path points into it. Returns 0 or -EBADMSG.
 */
int spec_file_parse(const char *text, struct spec_file *ret);

#endif
