// SPDX-License-Identifier: Apache-2.0
/*
 * unp_layer.c: unpacks a layer, removes and lists layers. Runs in: a worker of the image-unpacker.
 *
 * A layer whose directory has its name is complete, as its digest says, and on disk. Until then it
 * has another name. libarchive reads the blob twice over: once as compressed data, whose contents
 * are digested, and from there as a tar.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/path.h"
#include "common/utf8.h"
#include "image-unpacker/unp.h"
#include "proto/ipc_records.h"

#define CHUNK 65536
#define PART  ".part-" /* begins the name of a layer that is not complete */

struct unpacking {
	const struct unp_job *job;
	int blob_fd;
	struct archive *raw, *tar;
	SHA2_CTX blob_sha, tar_sha;
	uint64_t bytes, files; /* of the tar */
	bool too_large, empty; /* empty: the blob has no bytes */
	struct unp_tree tree;
	uint8_t chunk[CHUNK];
	struct err *e;
};

static void
free_archive(struct archive *a)
{
	(void)archive_read_free(a);
}
DEFINE_CLEANUP(struct archive *, free_archive);

static int
too_large(const struct unpacking *u)
{
	return err_say(u->e, -EFBIG, "the layer has more than the %llu bytes that are allowed",
	    (unsigned long long)u->job->max_bytes);
}

/* archive_error_string() of the archive in which the error is. */
static int
damaged(const struct unpacking *u)
{
	const char *why = archive_error_string(u->tar);

	if (archive_errno(u->raw) != 0)
		why = archive_error_string(u->raw);
	if (u->too_large)
		return too_large(u);
	return err_say(u->e, -EBADMSG, "the layer is damaged: %.200s", why ? why : "it ends early");
}

/* --- the two streams --- */

static la_ssize_t
read_blob(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *u = arg;
	ssize_t n = read(u->blob_fd, u->chunk, sizeof u->chunk);

	if (n < 0)
		archive_set_error(a, errno, "read the blob: %s", strerrordesc_np(errno));
	else
		SHA256Update(&u->blob_sha, u->chunk, (size_t)n);
	*ret = u->chunk;
	return n;
}

/* The tar has no holes: of a compressed file, libarchive returns all data. */
static la_ssize_t
read_tar(struct archive *a, void *arg, const void **ret)
{
	struct unpacking *u = arg;
	la_int64_t offset;
	size_t len = 0;
	int r = u->empty ? ARCHIVE_EOF : archive_read_data_block(u->raw, ret, &len, &offset);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK)
		return -1;
	if (len > u->job->max_bytes - u->bytes) {
		u->too_large = true;
		return -1;
	}
	u->bytes += len;
	SHA256Update(&u->tar_sha, *ret, len);
	return (la_ssize_t)len;
}

/* Only formats of the OCI image specification and of Docker, and no filter that runs a program. */
static int
open_streams(struct unpacking *u)
{
	struct archive_entry *entry;
	int status;

	if (archive_read_support_filter_gzip(u->raw) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(u->raw) != ARCHIVE_OK ||
	    archive_read_support_filter_bzip2(u->raw) != ARCHIVE_OK ||
	    archive_read_support_filter_xz(u->raw) != ARCHIVE_OK ||
	    archive_read_support_format_raw(u->raw) != ARCHIVE_OK ||
	    archive_read_support_format_empty(u->raw) != ARCHIVE_OK ||
	    archive_read_support_format_tar(u->tar) != ARCHIVE_OK ||
	    archive_read_support_format_empty(u->tar) != ARCHIVE_OK)
		return err_say(u->e, -ENOTSUP, "libarchive cannot read all kinds of layers");
	if (archive_read_open(u->raw, u, NULL, read_blob, NULL) != ARCHIVE_OK)
		return damaged(u);
	status = archive_read_next_header(u->raw, &entry);
	u->empty = status == ARCHIVE_EOF;
	if ((status != ARCHIVE_OK && !u->empty) ||
	    archive_read_open(u->tar, u, NULL, read_tar, NULL) != ARCHIVE_OK)
		return damaged(u);
	return 0;
}

/* Reads the bytes after the end of the tar: both digests include them. */
static int
drain(struct unpacking *u)
{
	const void *data;
	la_ssize_t n;

	while ((n = read_tar(u->raw, u, &data)) > 0)
		;
	if (n < 0)
		return damaged(u);
	while ((n = read_blob(u->raw, u, &data)) > 0)
		;
	return n < 0 ? damaged(u) : 0;
}

static int
check_digests(struct unpacking *u)
{
	char blob[SHA256_DIGEST_STRING_LENGTH], tar[SHA256_DIGEST_STRING_LENGTH];

	(void)SHA256End(&u->blob_sha, blob);
	(void)SHA256End(&u->tar_sha, tar);
	if (strcmp(blob, u->job->blob) != 0)
		return err_say(u->e, -EBADMSG,
		    "the blob sha256:%s is damaged: its digest is "
		    "sha256:%s",
		    u->job->blob, blob);
	if (strcmp(tar, u->job->layer) != 0)
		return err_say(u->e, -EBADMSG,
		    "the image is wrong: its configuration promises the layer sha256:%s, and its "
		    "blob has sha256:%s",
		    u->job->layer, tar);
	return 0;
}

/* --- entries --- */

/* Writes the data of a file, in which there may be holes. */
static int
write_data(struct unpacking *u, const char *path, int fd, la_int64_t size)
{
	la_int64_t at = 0;
	const void *data;
	size_t len;
	int r;

	while ((r = archive_read_data_block(u->tar, &data, &len, &at)) == ARCHIVE_OK)
		for (const char *from = data; len > 0;) {
			ssize_t n = pwrite(fd, from, len, at);

			if (n < 0)
				return err_set(u->e, -errno, "write \"%.200s\"", path);
			from += n;
			at += n;
			len -= (size_t)n;
		}
	if (r != ARCHIVE_EOF)
		return damaged(u);
	return ftruncate(fd, size) < 0 ? err_set(u->e, -errno, "write \"%.200s\"", path) : 0;
}

static int
set_xattrs(struct unpacking *u, struct archive_entry *entry, const struct unp_entry *en)
{
	const char *name;
	const void *value;
	size_t size;
	int r = 0;

	(void)archive_entry_xattr_reset(entry);
	while (r == 0 && archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
		r = unp_tree_set_xattr(&u->tree, en, name, value, size, u->e);
	return r;
}

static int
make_entry(struct unpacking *u, struct archive_entry *entry)
{
	const char *hardlink = archive_entry_hardlink(entry);
	const struct unp_entry en = {
		.path = archive_entry_pathname(entry),
		.target = hardlink ? hardlink : archive_entry_symlink(entry),
		.mode = archive_entry_mode(entry),
		.hardlink = hardlink != NULL,
		.uid = archive_entry_uid(entry),
		.gid = archive_entry_gid(entry),
		.mtime = { archive_entry_mtime(entry), archive_entry_mtime_nsec(entry) },
	};
	cleanup_close int fd = -1;
	int r;

	if (!en.path || ((S_ISLNK(en.mode) || en.hardlink) && (!en.target || !*en.target)))
		return err_say(u->e, -EBADMSG, "the layer is damaged: an entry has no name");
	if (++u->files + u->tree.n_made > u->job->max_files)
		return err_say(u->e, -EFBIG,
		    "the layer has more than the %llu files that are allowed",
		    (unsigned long long)u->job->max_files);
	r = unp_tree_make(&u->tree, &en, &fd, u->e);
	if (r == 0 && fd >= 0)
		r = write_data(u, en.path, fd, archive_entry_size(entry));
	if (r == 0)
		r = unp_tree_finish(&u->tree, &en, fd, u->e);
	return r < 0 ? r : set_xattrs(u, entry, &en);
}

static int
make_entries(struct unpacking *u)
{
	struct archive_entry *entry;
	int r = 0, status;

	while (r == 0) {
		status = archive_read_next_header(u->tar, &entry);
		if (status == ARCHIVE_EOF)
			return unp_tree_close(&u->tree, u->e);
		/* ARCHIVE_WARN: a name could not be converted, for example, and is as it stands. */
		if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
			return damaged(u);
		r = make_entry(u, entry);
	}
	return r;
}

/* --- a layer --- */

static int
unpack(struct unpacking *u, const char *part)
{
	cleanup_with(free_archive) struct archive *raw = mem_need(archive_read_new());
	cleanup_with(free_archive) struct archive *tar = mem_need(archive_read_new());
	cleanup_close int blob = fd_open_beneath(AT_FDCWD, "blobs", O_PATH | O_DIRECTORY, 0);
	int r = blob;

	if (r >= 0) /* an attacker in image-fetcher could make a FIFO there */
		r = u->blob_fd =
		    fd_open_beneath(blob, u->job->blob, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (r < 0)
		return err_set(u->e, r, "open the blob sha256:%s", u->job->blob);
	r = u->tree.root_fd = fd_open_beneath(AT_FDCWD, part, O_RDONLY | O_DIRECTORY, 0);
	if (r < 0)
		return err_set(u->e, r, "open the directory of the layer");
	u->raw = raw;
	u->tar = tar;
	SHA256Init(&u->blob_sha);
	SHA256Init(&u->tar_sha);
	r = open_streams(u);
	if (r == 0)
		r = make_entries(u);
	if (r == 0)
		r = drain(u);
	return r < 0 ? r : check_digests(u);
}

/* All of it is on disk before it has its name. */
static int
commit(struct unpacking *u, const char *part, const char *name)
{
	cleanup_close int dir = open("layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || syncfs(u->tree.root_fd) < 0)
		return err_set(u->e, -errno, "store the layer");
	CRASH_POINT(UNP_BEFORE_RENAME);
	if (rename(part, name) < 0 && errno != ENOTEMPTY && errno != EEXIST)
		return err_set(u->e, -errno, "store the layer");
	return fsync(dir) < 0 ? err_set(u->e, -errno, "store the layer") : 0;
}

int
unp_layer_unpack(int unused, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct unp_job *job = arg;
	cleanup_free struct unpacking *u = mem_new(struct unpacking);
	char part[48], name[96], hex[ID_HEX_SIZE], text[ERR_MSG_SIZE];
	struct id id = id_random();
	int r;

	*u = (struct unpacking){
		.job = job, .blob_fd = -1, .e = e, .tree = { .root_fd = -1, .dir_fd = -1 }
	};
	id_to_hex(&id, hex);
	(void)snprintf(part, sizeof part, "layers/" PART "%.16s", hex);
	(void)snprintf(name, sizeof name, "layers/%s", job->layer);
	if (access(name, F_OK) == 0)
		return 0;
	r = mkdir(part, 0755) < 0 ? err_set(e, -errno, "make the directory of the layer") : 0;
	if (r == 0)
		r = unpack(u, part);
	if (r == 0)
		r = commit(u, part, name);
	unp_tree_done(&u->tree);
	close_p(&u->tree.root_fd);
	close_p(&u->blob_fd);
	(void)tree_remove_at(AT_FDCWD, part); /* exists after a failure, or if another was faster */
	if (r < 0) {                          /* the archive chose a part of it */
		(void)utf8_sanitize(text, sizeof text, e->msg, strlen(e->msg));
		(void)strcpy(e->msg, text);
	}
	ret->bytes = u->bytes;
	ret->files = u->files;
	return r;
}

/* It loses its name first, so that a layer with a name is always whole. */
int
unp_layer_remove(int unused, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct unp_job *job = arg;
	char part[48], name[96], hex[ID_HEX_SIZE];
	struct id id = id_random();
	int r;

	id_to_hex(&id, hex);
	(void)snprintf(part, sizeof part, "layers/" PART "%.16s", hex);
	(void)snprintf(name, sizeof name, "layers/%s", job->layer);
	if (rename(name, part) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "remove a layer");
	CRASH_POINT(UNP_AFTER_HIDE);
	r = tree_remove_at(AT_FDCWD, part);
	return r < 0 ? err_set(e, r, "remove a layer") : 0;
}

int
unp_layer_list(int unused, const void *arg, struct worker_result *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0, n = 0;
	cleanup_file FILE *f = open_memstream(&text, &len);
	cleanup_dir DIR *d = NULL;
	const char *name;
	int r = dir_open_at(AT_FDCWD, "layers", &d);

	if (r < 0)
		return err_set(e, r, "list the layers");
	while ((name = dir_next(d)) && n < UNP_LAYERS_MAX)
		if (name[0] != '.')
			n += fprintf(f, "%s\n", name) > 0;
	if (fflush(f) != 0)
		return err_set(e, -ENOMEM, "list the layers");
	ret->fd = fd_memfd_sealed("layers", text, len);
	return ret->fd < 0 ? err_set(e, ret->fd, "list the layers") : 0;
}

void
unp_layers_clean(void)
{
	cleanup_dir DIR *d = NULL;
	const char *name;

	if (dir_open_at(AT_FDCWD, "layers", &d) < 0)
		return;
	while ((name = dir_next(d)))
		if (strncmp(name, PART, sizeof PART - 1) == 0)
			(void)tree_remove_at(dirfd(d), name);
}
