// SPDX-License-Identifier: Apache-2.0
/*
 * img_archive.c: archives of images: of `docker save`, and tars of an OCI layout. Runs in: a worker
 * of the image-fetcher.
 *
 * A task may change its file while it is read, so nothing but a copy is ever interpreted:
 * libarchive undoes the compression of the whole, and skopeo reads the copy. skopeo would unpack an
 * OCI layout with links and modes as they come; here only its regular files are written, under
 * names that the layout gives them.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "image-fetcher/img.h"
#include "image-fetcher/img_archive.h"

#define CHUNK       65536
#define ENTRIES_MAX 20000 /* of an archive; an image has a few for each layer */
#define COPY        "archive"
#define LAYOUT      "layout"
#define BLOBS       "blobs/sha256/"

/* The file, from its beginning. Its descriptor shares the offset with those of other processes. */
struct source {
	int fd;
	off_t at;
	SHA2_CTX sha;
	uint8_t chunk[CHUNK];
};

static void
free_archive(struct archive *a)
{
	(void)archive_read_free(a);
}
DEFINE_CLEANUP(struct archive *, free_archive);

static ssize_t
read_source(struct source *s)
{
	ssize_t n = pread(s->fd, s->chunk, sizeof s->chunk, s->at);

	if (n > 0) {
		SHA256Update(&s->sha, s->chunk, (size_t)n);
		s->at += n;
	}
	return n;
}

static int
too_large(uint64_t max_bytes, struct err *e)
{
	return err_say(e, -EFBIG, "the archive has more than the %llu bytes that are allowed",
	    (unsigned long long)max_bytes);
}

static int
damaged(struct archive *a, struct err *e)
{
	const char *why = archive_error_string(a);

	return err_say(e, -EBADMSG, "the archive is damaged: %.200s", why ? why : "it ends early");
}

/* --- the digest --- */

/* Reads the rest, for its digest. */
static int
end_digest(
    struct source *s, uint64_t max_bytes, char hex[SHA256_DIGEST_STRING_LENGTH], struct err *e)
{
	ssize_t n;

	while ((n = read_source(s)) > 0)
		if ((uint64_t)s->at > max_bytes)
			return too_large(max_bytes, e);
	if (n < 0)
		return err_set(e, -errno, "read the archive");
	(void)SHA256End(&s->sha, hex);
	return 0;
}

int
img_archive_digest(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	static struct source s;
	char hex[SHA256_DIGEST_STRING_LENGTH];
	int r;

	(void)setsid(); /* worker_table_cancel() kills the group */
	s.fd = fd;
	SHA256Init(&s.sha);
	r = end_digest(&s, *(const uint64_t *)arg, hex, e);
	if (r < 0)
		return r;
	ret->fd = fd_memfd_sealed("digest", hex, strlen(hex));
	return ret->fd < 0 ? err_set(e, ret->fd, "answer about an archive") : 0;
}

/* --- the copy --- */

static la_ssize_t
give_source(struct archive *a, void *arg, const void **ret)
{
	struct source *s = arg;
	ssize_t n = read_source(s);

	if (n < 0)
		archive_set_error(a, errno, "read it: %s", strerrordesc_np(errno));
	*ret = s->chunk;
	return n;
}

/* Moves the data of an entry into a file. *left: how much may still be written. */
static int
copy_data(struct archive *a, int to_fd, uint64_t *left, uint64_t max_bytes, struct err *e)
{
	static uint8_t buf[CHUNK];
	la_ssize_t n;
	int r;

	while ((n = archive_read_data(a, buf, sizeof buf)) > 0) {
		if ((uint64_t)n > *left)
			return too_large(max_bytes, e);
		*left -= (uint64_t)n;
		r = fd_write_full(to_fd, buf, (size_t)n);
		if (r < 0)
			return err_set(e, r, "copy the archive");
	}
	return n < 0 ? damaged(a, e) : 0;
}

static int
make_file(int dir_fd, const char *path, struct err *e)
{
	int fd = openat(dir_fd, path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? err_set(e, -errno, "copy the archive") : fd;
}

/* Writes the file's contents, uncompressed. Returns the copy's descriptor. */
static int
copy(struct source *s, int dir_fd, uint64_t max_bytes, struct err *e)
{
	cleanup_with(free_archive) struct archive *a = archive_read_new();
	cleanup_close int to = make_file(dir_fd, COPY, e);
	struct archive_entry *entry;
	uint64_t left = max_bytes;
	int r;

	if (to < 0)
		return to;
	if (!a || archive_read_support_filter_gzip(a) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    archive_read_support_filter_bzip2(a) != ARCHIVE_OK ||
	    archive_read_support_filter_xz(a) != ARCHIVE_OK ||
	    archive_read_support_format_raw(a) != ARCHIVE_OK ||
	    archive_read_support_format_empty(a) != ARCHIVE_OK)
		return err_say(e, -ENOMEM, "libarchive cannot read archives");
	if (archive_read_open(a, s, NULL, give_source, NULL) != ARCHIVE_OK)
		return damaged(a, e);
	r = archive_read_next_header(a, &entry);
	if (r != ARCHIVE_OK && r != ARCHIVE_EOF)
		return damaged(a, e);
	r = r == ARCHIVE_OK ? copy_data(a, to, &left, max_bytes, e) : 0;
	return r < 0 ? r : steal_fd(&to);
}

/* --- what it is --- */

struct contents {
	bool docker, oci; /* it has manifest.json; index.json */
};

/* Opens the plain tar. Returns NULL with *e. */
static struct archive *
open_tar(int fd, struct err *e)
{
	cleanup_with(free_archive) struct archive *a = archive_read_new();

	if (!a || lseek(fd, 0, SEEK_SET) < 0 || archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_support_format_empty(a) != ARCHIVE_OK)
		(void)err_say(e, -ENOMEM, "libarchive cannot read tars");
	else if (archive_read_open_fd(a, fd, CHUNK) != ARCHIVE_OK)
		(void)damaged(a, e);
	else
		return steal_ptr(&a);
	return NULL;
}

/* Returns the name of a regular file; "" for everything else, such as one with holes, which may be
 * larger than the archive. */
static const char *
file_name(struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);

	if (!name || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) ||
	    archive_entry_sparse_count(entry) > 0)
		return "";
	return name + (strncmp(name, "./", 2) == 0 ? 2 : 0);
}

/* Calls fn for each entry. */
static int
each_entry(int fd, int (*fn)(void *arg, struct archive *a, const char *name, struct err *e),
    void *arg, struct err *e)
{
	cleanup_with(free_archive) struct archive *a = open_tar(fd, e);
	struct archive_entry *entry;
	int r = 0, found = ARCHIVE_OK;

	if (!a)
		return e->code;
	for (unsigned n = 0; r == 0; n++) {
		found = archive_read_next_header(a, &entry);
		if (found == ARCHIVE_EOF)
			return 0;
		if (found != ARCHIVE_OK && found != ARCHIVE_WARN)
			return damaged(a, e);
		if (n == ENTRIES_MAX)
			return err_say(
			    e, -EBADMSG, "the archive has more than %d entries", ENTRIES_MAX);
		r = fn(arg, a, file_name(entry), e);
	}
	return r;
}

static int
note_contents(void *arg, struct archive *a, const char *name, struct err *e)
{
	struct contents *c = arg;

	c->docker = c->docker || strcmp(name, "manifest.json") == 0;
	c->oci = c->oci || strcmp(name, "index.json") == 0;
	return 0;
}

/* --- an OCI layout --- */

struct layout {
	int dir_fd;
	uint64_t left, max_bytes;
};

static bool
is_of_layout(const char *name)
{
	const char *digits = name + sizeof BLOBS - 1;

	if (strcmp(name, "index.json") == 0 || strcmp(name, "oci-layout") == 0)
		return true;
	return strncmp(name, BLOBS, sizeof BLOBS - 1) == 0 && strlen(digits) == 64 &&
	       strspn(digits, "0123456789abcdef") == 64;
}

static int
unpack_entry(void *arg, struct archive *a, const char *name, struct err *e)
{
	struct layout *l = arg;
	cleanup_close int to = -1;

	if (!is_of_layout(name))
		return 0;
	to = make_file(l->dir_fd, name, e);
	return to < 0 ? to : copy_data(a, to, &l->left, l->max_bytes, e);
}

static int
unpack_layout(int copy_fd, int dir_fd, uint64_t max_bytes, struct err *e)
{
	cleanup_close int at = -1;
	struct layout l = { .left = max_bytes, .max_bytes = max_bytes };
	int r;

	if (mkdirat(dir_fd, LAYOUT, 0700) < 0 || mkdirat(dir_fd, LAYOUT "/blobs", 0700) < 0 ||
	    mkdirat(dir_fd, LAYOUT "/blobs/sha256", 0700) < 0)
		return err_set(e, -errno, "make a directory for the archive");
	at = l.dir_fd = fd_open_beneath(dir_fd, LAYOUT, O_RDONLY | O_DIRECTORY, 0);
	if (at < 0)
		return err_set(e, at, "open a directory for the archive");
	r = each_entry(copy_fd, unpack_entry, &l, e);
	(void)unlinkat(dir_fd, COPY, 0);
	return r;
}

const char *
img_archive_copy(int archive_fd, int dir_fd, const char *digest, uint64_t max_bytes, struct err *e)
{
	static struct source s;
	char hex[SHA256_DIGEST_STRING_LENGTH] = "";
	cleanup_close int fd = -1;
	struct contents c = { 0 };

	s.fd = archive_fd;
	SHA256Init(&s.sha);
	fd = copy(&s, dir_fd, max_bytes, e);
	if (fd < 0 && e->code != -EBADMSG)
		return NULL;
	/* A changed archive may look damaged. */
	if (end_digest(&s, max_bytes, hex, e->code < 0 ? &(struct err){ 0 } : e) < 0 && fd >= 0)
		return NULL;
	if (strcmp(hex, digest) != 0) {
		(void)err_say(e, -ESTALE, "the archive was changed while it was read");
		return NULL;
	}
	if (fd < 0 || each_entry(fd, note_contents, &c, e) < 0)
		return NULL;
	if (c.docker)
		return "docker-archive:" IMG_DIR "/" COPY;
	if (c.oci)
		return unpack_layout(fd, dir_fd, max_bytes, e) < 0 ? NULL
								   : "oci:" IMG_DIR "/" LAYOUT;
	(void)err_say(e, -EBADMSG,
	    "it is not an archive of images: it has neither manifest.json, as `docker save` writes "
	    "it, nor index.json of an OCI layout");
	return NULL;
}
