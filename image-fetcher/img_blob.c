// SPDX-License-Identifier: Apache-2.0
/* img_blob.c: blobs in the store. A blob whose file has its final name is complete and on disk.
 * Runs in: a worker of the image-fetcher. */
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/path.h"
#include "image-fetcher/img.h"

#define CHUNK     65536
#define NAME_SIZE 80

static const char *
digits(const struct img_layer *l)
{
	return l->digest + sizeof "sha256:" - 1;
}

static void
part_name(const struct img_layer *l, char ret[NAME_SIZE])
{
	(void)snprintf(ret, NAME_SIZE, ".%s", digits(l));
}

/* Whether fd still is the file with this name: its former owner has renamed or removed it. */
static bool
is_named(int fd, int blobs_fd, const char *name)
{
	struct stat is, named;

	return fstat(fd, &is) == 0 && fstatat(blobs_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       is.st_ino == named.st_ino && is.st_dev == named.st_dev;
}

int
img_blob_begin(
    struct img_blob *b, int blobs_fd, const struct img_layer *layer, bool wait, struct err *e)
{
	char name[NAME_SIZE];

	part_name(layer, name);
	for (;;) {
		cleanup_close int fd = -1;

		if (faccessat(blobs_fd, digits(layer), F_OK, 0) == 0)
			return 0;
		fd = openat(blobs_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
		if (fd < 0)
			return err_set(e, -errno, "make the file of layer %s", layer->digest);
		if (flock(fd, LOCK_EX | (wait ? 0 : LOCK_NB)) < 0)
			return errno == EWOULDBLOCK
				   ? -EAGAIN
				   : err_set(e, -errno, "lock the file of a layer");
		if (!is_named(fd, blobs_fd, name))
			continue;
		if (ftruncate(fd, 0) < 0)
			return err_set(e, -errno, "empty the file of a layer");
		*b = (struct img_blob){ .layer = layer, .pipe_fd = -1, .file_fd = steal_fd(&fd) };
		b->sha = mem_new(SHA2_CTX);
		SHA256Init(b->sha);
		return 1;
	}
}

ssize_t
img_blob_read(struct img_blob *b, struct err *e)
{
	static uint8_t buf[CHUNK];
	ssize_t n = read(b->pipe_fd, buf, sizeof buf);
	int r;

	if (n <= 0)
		return n < 0 ? err_set(e, -errno, "read a layer from skopeo") : 0;
	if ((uint64_t)n > b->layer->size - b->bytes)
		return err_say(e, -EBADMSG, "layer %s has more than the %llu bytes of its manifest",
		    b->layer->digest, (unsigned long long)b->layer->size);
	SHA256Update(b->sha, buf, (size_t)n);
	r = fd_write_full(b->file_fd, buf, (size_t)n);
	if (r < 0)
		return err_set(e, r, "store layer %s", b->layer->digest);
	b->bytes += (uint64_t)n;
	return n;
}

int
img_blob_commit(struct img_blob *b, int blobs_fd, struct err *e)
{
	char name[NAME_SIZE], hex[SHA256_DIGEST_STRING_LENGTH];

	part_name(b->layer, name);
	(void)SHA256End(b->sha, hex);
	if (b->bytes != b->layer->size || strcmp(hex, digits(b->layer)) != 0)
		return err_say(e, -EBADMSG,
		    "layer %s: %llu of %llu bytes arrived, with the digest sha256:%s",
		    b->layer->digest, (unsigned long long)b->bytes,
		    (unsigned long long)b->layer->size, hex);
	CRASH_POINT(IMG_BEFORE_BLOB);
	if (fsync(b->file_fd) < 0 || renameat(blobs_fd, name, blobs_fd, digits(b->layer)) < 0 ||
	    fsync(blobs_fd) < 0)
		return err_set(e, -errno, "store layer %s", b->layer->digest);
	CRASH_POINT(IMG_AFTER_BLOB);
	return 0;
}

void
img_blob_done(struct img_blob *b, int blobs_fd)
{
	char name[NAME_SIZE];

	if (!b->layer)
		return;
	part_name(b->layer, name);
	if (b->file_fd >= 0 && is_named(b->file_fd, blobs_fd, name))
		(void)unlinkat(blobs_fd, name, 0);
	close_p(&b->pipe_fd);
	close_p(&b->file_fd);
	free(b->sha);
	*b = (struct img_blob){ .pipe_fd = -1, .file_fd = -1 };
}

void
img_blobs_remove(int blobs_fd, const char *prefix)
{
	cleanup_dir DIR *d = NULL;
	const char *name;

	if (dir_open_at(blobs_fd, ".", &d) < 0)
		return;
	while ((name = dir_next(d)))
		if (strncmp(name, prefix, strlen(prefix)) == 0)
			(void)tree_remove_at(blobs_fd, name);
}
