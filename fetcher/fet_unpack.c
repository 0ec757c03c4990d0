// SPDX-License-Identifier: Apache-2.0
/* fet_unpack.c: unpacks archives, which are not trusted. Runs in: a worker of the fetcher. Each
 * entry is made below a directory that is open, without following links; file-helper checks the
 * links when it copies the result. */
#include "fetcher/fet_unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mem.h"

#define BLOCK_SIZE 65536
#define DEPTH_MAX  128 /* file-helper copies no more levels */

enum layout { LAYOUT_TAR, LAYOUT_ZIP, LAYOUT_ONE };

struct archive_kind {
	const char *name;
	enum layout layout;
	int filter; /* of libarchive; 0: none */
};

static const struct archive_kind kinds[] = {
	{ "tar", LAYOUT_TAR, 0 },
	{ "tar.bz2", LAYOUT_TAR, ARCHIVE_FILTER_BZIP2 },
	{ "tar.gz", LAYOUT_TAR, ARCHIVE_FILTER_GZIP },
	{ "tar.xz", LAYOUT_TAR, ARCHIVE_FILTER_XZ },
	{ "tar.zst", LAYOUT_TAR, ARCHIVE_FILTER_ZSTD },
	{ "tbz2", LAYOUT_TAR, ARCHIVE_FILTER_BZIP2 },
	{ "tgz", LAYOUT_TAR, ARCHIVE_FILTER_GZIP },
	{ "txz", LAYOUT_TAR, ARCHIVE_FILTER_XZ },
	{ "tzst", LAYOUT_TAR, ARCHIVE_FILTER_ZSTD },
	{ "zip", LAYOUT_ZIP, 0 },
	{ "bz2", LAYOUT_ONE, ARCHIVE_FILTER_BZIP2 },
	{ "gz", LAYOUT_ONE, ARCHIVE_FILTER_GZIP },
	{ "xz", LAYOUT_ONE, ARCHIVE_FILTER_XZ },
	{ "zst", LAYOUT_ONE, ARCHIVE_FILTER_ZSTD },
};

/* The result, and what it may still have. */
struct unpacking {
	struct fet *f;
	struct archive *a;
	int dir_fd; /* of the directory that is made; -1: a single file */
	const char *to;
	bool made; /* a single file was made */
	uint64_t bytes, entries;
	struct err *e;
};

static void
free_archive(struct archive *a)
{
	(void)archive_read_free(a);
}
DEFINE_CLEANUP(struct archive *, free_archive);

const struct archive_kind *
archive_kind_named(const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

const struct archive_kind *
archive_kind_of(const char *path)
{
	const struct archive_kind *found = NULL;
	size_t len = strlen(path);

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
		size_t n = strlen(kinds[i].name);

		if (len > n && path[len - n - 1] == '.' &&
		    strcmp(path + len - n, kinds[i].name) == 0 &&
		    (!found || n > strlen(found->name)))
			found = &kinds[i];
	}
	return found;
}

/* --- data --- */

static int
damaged(const struct unpacking *u)
{
	const char *why = archive_error_string(u->a);

	return err_say(
	    u->e, -EBADMSG, "the archive is damaged: %.200s", why ? why : "it ends early");
}

static int
too_large(const struct unpacking *u)
{
	return err_say(u->e, -EFBIG,
	    "unpacked, the archive has more than the %llu bytes that are "
	    "allowed",
	    (unsigned long long)u->f->spec.max_unpacked);
}

/* Writes the entry's data, in which there may be holes. */
static int
write_data(struct unpacking *u, int fd)
{
	la_int64_t at = 0, end = 0;
	const void *data;
	size_t len;
	int r;

	while ((r = archive_read_data_block(u->a, &data, &len, &at)) == ARCHIVE_OK) {
		uint64_t more = (uint64_t)(at - end) + len;

		if (at < end || more > u->bytes)
			return too_large(u);
		u->bytes -= more;
		u->f->bytes += more;
		u->f->told->bytes = u->f->bytes;
		end = at + (la_int64_t)len;
		for (const char *from = data; len > 0;) {
			ssize_t n = pwrite(fd, from, len, at);

			if (n < 0)
				return err_set(u->e, -errno, "store what the archive contains");
			from += n;
			at += n;
			len -= (size_t)n;
		}
	}
	if (r != ARCHIVE_EOF)
		return damaged(u);
	return ftruncate(fd, end) < 0 ? err_set(u->e, -errno, "store what the archive contains")
				      : 0;
}

static int
make_file(struct unpacking *u, int dir_fd, const char *name, struct archive_entry *entry)
{
	const struct timespec times[] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = archive_entry_mtime(entry) } };
	cleanup_close int fd = -1;
	int r;

	(void)unlinkat(dir_fd, name, 0); /* the archive may have the entry twice */
	fd = fd_open_beneath(
	    dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, archive_entry_perm(entry) & 0777);
	if (fd < 0)
		return err_set(u->e, fd, "make \"%.200s\"", name);
	r = write_data(u, fd);
	if (r == 0 && archive_entry_mtime_is_set(entry) && archive_entry_mtime(entry) > 0)
		(void)futimens(fd, times);
	return r;
}

/* --- entries --- */

static int
count_entry(struct unpacking *u)
{
	if (u->entries-- > 0)
		return 0;
	u->entries = 0;
	return err_say(u->e, -EFBIG, "the archive has more than the %llu entries that are allowed",
	    (unsigned long long)u->f->spec.max_files);
}

/* Makes a directory that is only a part of an entry's name: it counts as an entry. */
static int
make_parent(struct unpacking *u, int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, 0755) == 0)
		return count_entry(u);
	return errno == EEXIST ? 0 : err_set(u->e, -errno, "make the directory \"%.200s\"", name);
}

/* Opens the directory of path, and makes it; *ret_name is the last part. */
static int
open_parent(struct unpacking *u, char *path, char **ret_name)
{
	cleanup_close int at = fd_open_beneath(u->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	char *slash;

	while (at >= 0 && (slash = strchr(path, '/'))) {
		int next, r;

		*slash = '\0';
		if ((r = make_parent(u, at, path)) < 0)
			return r;
		next = fd_open_beneath(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		(void)close(at);
		at = next;
		path = slash + 1 + strspn(slash + 1, "/");
	}
	*ret_name = path;
	if (at == -ELOOP || at == -ENOTDIR)
		return err_say(u->e, -EBADMSG,
		    "the archive has an entry below \"%.150s\", which is no directory", path);
	return at < 0 ? err_set(u->e, at, "open a directory of the archive") : steal_fd(&at);
}

/* Returns the path of an entry without "." and doubled slashes, or NULL with *e. */
static char *
clean_path(const struct unpacking *u, const char *path)
{
	char *made = mem_alloc(strlen(path) + 1), *to = made;
	unsigned depth = 0;

	*made = '\0';
	if (*path == '/') {
		(void)err_say(u->e, -EBADMSG, "the archive has an absolute name: \"%.150s\"", path);
		free(made);
		return NULL;
	}
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && strncmp(path, "..", 2) == 0) {
			(void)err_say(u->e, -EBADMSG, "the archive has a name with \"..\"");
			free(made);
			return NULL;
		}
		if (len > 0 && (len != 1 || *path != '.')) {
			if (++depth > DEPTH_MAX) {
				(void)err_say(u->e, -EBADMSG,
				    "the archive has more than %d levels of directories",
				    DEPTH_MAX);
				free(made);
				return NULL;
			}
			to += to > made;
			if (to > made)
				to[-1] = '/';
			memcpy(to, path, len);
			to += len;
			*to = '\0';
		}
		path += len + (path[len] == '/');
	}
	return made;
}

/* A link to another entry counts with its size, because it becomes a file of its own. */
static int
make_hard_link(struct unpacking *u, int dir_fd, const char *name, const char *target)
{
	cleanup_free char *path = clean_path(u, target);
	cleanup_close int from = -1;
	struct stat st;
	char *base;

	if (!path)
		return -EBADMSG;
	from = open_parent(u, path, &base);
	if (from < 0)
		return from;
	if (fstatat(from, base, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return err_say(u->e, -EBADMSG,
		    "the archive has a link to \"%.150s\", which is no file", target);
	if ((uint64_t)st.st_size > u->bytes)
		return too_large(u);
	u->bytes -= (uint64_t)st.st_size;
	(void)unlinkat(dir_fd, name, 0);
	return linkat(from, base, dir_fd, name, 0) < 0
		   ? err_set(u->e, -errno, "make the link \"%.200s\"", name)
		   : 0;
}

static int
make_link(const struct unpacking *u, int dir_fd, const char *name, const char *target)
{
	(void)unlinkat(dir_fd, name, 0);
	return symlinkat(target ? target : "", dir_fd, name) < 0
		   ? err_set(u->e, -errno, "make the link \"%.200s\"", name)
		   : 0;
}

static int
make_dir(const struct unpacking *u, int dir_fd, const char *name, mode_t mode)
{
	if (mkdirat(dir_fd, name, (mode & 0777) | 0700) < 0 && errno != EEXIST)
		return err_set(u->e, -errno, "make the directory \"%.200s\"", name);
	return 0;
}

static int
make_entry(struct unpacking *u, struct archive_entry *entry)
{
	const char *hard = archive_entry_hardlink(entry), *path = archive_entry_pathname(entry);
	cleanup_free char *clean = path ? clean_path(u, path) : NULL;
	cleanup_close int dir = -1;
	char *name;

	if (!path)
		return err_say(u->e, -EBADMSG, "the archive has an entry without a name");
	if (!clean)
		return -EBADMSG;
	if (!*clean) /* "./" */
		return 0;
	dir = open_parent(u, clean, &name);
	if (dir < 0)
		return dir;
	if (hard)
		return make_hard_link(u, dir, name, hard);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return make_file(u, dir, name, entry);
	case AE_IFDIR:
		return make_dir(u, dir, name, archive_entry_perm(entry));
	case AE_IFLNK:
		return make_link(u, dir, name, archive_entry_symlink(entry));
	default:
		return err_say(u->e, -EBADMSG,
		    "the archive contains \"%.150s\", which is neither a file nor a directory nor "
		    "a "
		    "link",
		    path);
	}
}

static int
make_single(struct unpacking *u, struct archive_entry *entry)
{
	if (u->made)
		return err_say(
		    u->e, -EBADMSG, "mode \"file\": the archive contains more than one file");
	if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
		return err_say(u->e, -EBADMSG,
		    "mode \"file\": the archive contains something other than a file");
	u->made = true;
	return make_file(u, u->f->dir_fd, u->to, entry);
}

static int
each_entry(struct unpacking *u)
{
	struct archive_entry *entry;
	int r = 0;

	while (r == 0) {
		int got = archive_read_next_header(u->a, &entry);

		if (got == ARCHIVE_EOF)
			return u->entries == u->f->spec.max_files
				   ? err_say(u->e, -EBADMSG, "the archive is empty")
				   : 0;
		if (got != ARCHIVE_OK && got != ARCHIVE_WARN)
			return damaged(u);
		r = count_entry(u);
		if (r < 0)
			return r;
		u->f->files++;
		r = u->dir_fd < 0 ? make_single(u, entry) : make_entry(u, entry);
		CRASH_POINT(FET_AFTER_ENTRY);
	}
	return r;
}

/* --- opening --- */

static void
support(struct archive *a, const struct archive_kind *kind)
{
	if (kind->layout == LAYOUT_TAR)
		(void)archive_read_support_format_tar(a);
	else if (kind->layout == LAYOUT_ZIP)
		(void)archive_read_support_format_zip_seekable(a);
	else
		(void)archive_read_support_format_raw(a);
	if (kind->filter)
		(void)archive_read_support_filter_by_code(a, kind->filter);
}

static int
open_archive(struct unpacking *u, const struct archive_kind *kind, int fd)
{
	support(u->a, kind);
	if (lseek(fd, 0, SEEK_SET) < 0 || archive_read_open_fd(u->a, fd, BLOCK_SIZE) != ARCHIVE_OK)
		return damaged(u);
	if (kind->filter && archive_filter_code(u->a, 0) != kind->filter)
		return err_say(u->e, -EBADMSG, "the archive is damaged: it is not in the format %s",
		    kind->name);
	return each_entry(u);
}

int
fet_unpack(struct fet *f, const struct archive_kind *kind, int fd, bool single, const char *to,
    struct err *e)
{
	cleanup_with(free_archive) struct archive *a = mem_need(archive_read_new());
	cleanup_close int dir = -1;
	struct unpacking u = { .f = f, .a = a, .dir_fd = -1, .to = to, .e = e };

	u.bytes = f->spec.max_unpacked;
	u.entries = f->spec.max_files;
	if (kind->layout == LAYOUT_ONE && !single)
		return err_say(e, -EINVAL,
		    "what is compressed as %s is one file: use mode \"file\", or the option "
		    "archive = "
		    "false",
		    kind->name);
	if (single)
		return open_archive(&u, kind, fd);
	if (mkdirat(f->dir_fd, to, 0755) < 0 ||
	    (dir = fd_open_beneath(f->dir_fd, to, O_RDONLY | O_DIRECTORY, 0)) < 0)
		return err_set(e, -errno, "make the directory of the archive");
	u.dir_fd = dir;
	return open_archive(&u, kind, fd);
}
