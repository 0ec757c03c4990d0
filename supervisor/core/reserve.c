// SPDX-License-Identifier: Apache-2.0
/* reserve.c: space for the last commits of a node whose disk is full. Runs in: supervisor. */
#include "supervisor/core/reserve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"

#define RESERVE_BYTES (4 << 20) /* the rows of some thousand allocations that end */
/* Other programs may take what is free, so it is freed bit by bit. */
#define PIECE_BYTES (1 << 20)
#define FREE_MIN    (16 << 20)

struct reserve {
	int fd; /* -1: there is none */
	off_t left;
};

/* Bytes, because a file system may not keep space for a hole. Returns false if they do not fit. */
static bool
fill_file(int fd, off_t from)
{
	cleanup_free char *zeros = mem_zeroed(1, PIECE_BYTES);

	for (off_t at = from; at < RESERVE_BYTES; at += PIECE_BYTES) {
		off_t n = RESERVE_BYTES - at < PIECE_BYTES ? RESERVE_BYTES - at : PIECE_BYTES;

		if (lseek(fd, at, SEEK_SET) < 0 || fd_write_full(fd, zeros, (size_t)n) < 0)
			return false;
	}
	return true;
}

struct reserve *
reserve_new(const char *dir)
{
	struct reserve *r = mem_new(struct reserve);
	cleanup_free char *path = mem_printf("%s/reserve", dir);
	struct statvfs fs;
	struct stat st;

	*r = (struct reserve){ 0 };
	r->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
	if (r->fd < 0 || fstat(r->fd, &st) < 0 || fstatvfs(r->fd, &fs) < 0)
		return r;
	r->left = st.st_size;
	if (r->left < RESERVE_BYTES && (uint64_t)fs.f_bavail * fs.f_frsize >= FREE_MIN)
		r->left = fill_file(r->fd, r->left) ? RESERVE_BYTES : r->left;
	return r;
}

void
reserve_free(struct reserve *r)
{
	if (!r)
		return;
	close_p(&r->fd);
	free(r);
}

bool
reserve_release(struct reserve *r)
{
	off_t left = r && r->left > PIECE_BYTES ? r->left - PIECE_BYTES : 0;

	if (!r || r->left == 0 || r->fd < 0 || ftruncate(r->fd, left) < 0)
		return false;
	r->left = left;
	return true;
}
