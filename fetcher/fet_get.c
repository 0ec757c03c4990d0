// SPDX-License-Identifier: Apache-2.0
/* fet_get.c: fetches one artifact. Runs in: a worker of the fetcher. Asked by: supervisor. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "fetcher/fet.h"
#include "fetcher/fet_checksum.h"
#include "fetcher/fet_git.h"
#include "fetcher/fet_redirect.h"
#include "fetcher/fet_s3.h"
#include "fetcher/fet_source.h"
#include "fetcher/fet_unpack.h"

#define LIST_MAX     (1u << 20) /* bytes of a file with checksums */
#define STARS_MAX    3
#define MEMORY_BYTES ((rlim_t)1 << 30) /* of the worker, and of each program that it runs */

/* No core dump either, also of git: it would have the url's secrets. If cores go to a program,
 * which core_pattern then names, the kernel looks at a limit of 1 only, not at one of 0. */
static int
set_limits(struct err *e)
{
	const struct rlimit memory = { MEMORY_BYTES, MEMORY_BYTES }, no_core = { 1, 1 };

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return err_set(e, -errno, "limit a worker of the fetcher");
#ifndef __SANITIZE_ADDRESS__
	if (setrlimit(RLIMIT_DATA, &memory) < 0)
		return err_set(e, -errno, "limit a worker of the fetcher");
#endif
	(void)memory;
	return 0;
}

static int
make_dir(const char *name, struct err *e)
{
	return mkdir(name, 0755) < 0 ? err_set(e, -errno, "make the directory %s", name) : 0;
}

/* Makes an empty file at path, whose directory exists. Returns a descriptor, or -errno. */
static int
make_file(const char *path, struct err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	return fd < 0 ? err_set(e, -errno, "make the file") : fd;
}

/* Writes the url's file to path. Returns a descriptor, or -errno. */
static int
download(
    struct fet *f, const struct fet_http *http, const char *path, uint64_t limit, struct err *e)
{
	cleanup_close int fd = make_file(path, e);
	int r;

	if (fd < 0)
		return fd;
	r = fet_http_get(f, http, fd, limit, e);
	if (r < 0)
		(void)unlink(path);
	return r < 0 ? r : steal_fd(&fd);
}

/* --- the checksum --- */

/* The file with checksums is beside the artifact if its url has no scheme. */
static char *
list_url(const struct fet_source *s, const char *text)
{
	const char *slash = strrchr(s->base, '/');

	if (strstr(text, "://"))
		return mem_strdup(text);
	return mem_printf("%.*s/%s", (int)(slash - s->base), s->base,
	    strncmp(text, "./", 2) == 0 ? text + 2 : text);
}

static int
get_list(struct fet *f, const struct fet_source *s, const char *text, struct checksum *ret,
    struct err *e)
{
	cleanup_free char *url = list_url(s, text), *list = NULL;
	const struct fet_http http = { .url = url,
		.timeout_ms = f->spec.http_ms,
		.is_elsewhere = !fet_is_same_server(s->base, url) };
	cleanup_close int fd = -1;
	struct stat st;

	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return err_say(
		    e, -EINVAL, "the file with checksums must come from http:// or https://");
	fd = download(f, &http, "sums", LIST_MAX, e);
	if (fd < 0)
		return err_prefix(e, "the file with checksums");
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "read the file with checksums");
	list = mem_alloc((size_t)st.st_size + 1);
	if (pread(fd, list, (size_t)st.st_size, 0) != st.st_size)
		return err_say(e, -EIO, "read the file with checksums");
	CRASH_POINT(FET_AFTER_SUMS);
	return checksum_find(list, (size_t)st.st_size, fet_source_name(s), s->path, ret, e);
}

/* Returns 1 if the artifact must have the checksum *ret, 0 if it may have any. */
static int
find_checksum(struct fet *f, const struct fet_source *s, struct checksum *ret, struct err *e)
{
	int r;

	if (!s->checksum || !*s->checksum)
		return 0;
	if (strncmp(s->checksum, "file:", 5) == 0)
		r = get_list(f, s, s->checksum + 5, ret, e);
	else
		r = checksum_parse(s->checksum, ret, e);
	return r < 0 ? r : 1;
}

/* --- files --- */

static int
copy_source(struct fet *f, const struct fet_source *s, const char *path, struct err *e)
{
	cleanup_close int fd = make_file(path, e);
	int r;

	if (fd < 0)
		return fd;
	if (s->query.n > 0)
		return err_say(e, -EINVAL, "a file has no parameter \"%.100s\"", s->query.v[0].key);
	r = fet_file_get(f, s->path, fd, f->spec.max_bytes, e);
	return r < 0 ? r : steal_fd(&fd);
}

/* Returns a descriptor, or -errno. */
static int
download_source(struct fet *f, const struct fet_source *s, const char *path, struct err *e)
{
	cleanup_free char *url = s->s3 ? fet_s3_url(s->s3, s->s3->key) : fet_source_url(s);
	struct fet_http http = { .url = url, .timeout_ms = f->spec.http_ms };

	if (s->s3)
		http = fet_s3_request(s->s3, url, f->spec.s3_ms);
	return download(f, &http, path, f->spec.max_bytes, e);
}

/* Fetches the file of the source to path, and verifies it. Returns a descriptor, or -errno. */
static int
get_file(struct fet *f, struct fet_source *s, const char *path, struct err *e)
{
	cleanup_close int fd = -1;
	struct checksum checksum;
	struct stat st;
	int r = find_checksum(f, s, &checksum, e);

	if (r < 0)
		return r;
	fd = strcmp(s->getter, "file") == 0 ? copy_source(f, s, path, e)
					    : download_source(f, s, path, e);
	if (fd < 0)
		return fd;
	if (r > 0 && (r = checksum_verify(&checksum, fd, e)) < 0)
		return r;
	if (fstat(fd, &st) == 0)
		f->bytes += (uint64_t)st.st_size;
	f->files++;
	return steal_fd(&fd);
}

/* The name of the file in the directory that is the artifact. */
static int
choose_name(const struct fet_source *s, const char **ret, struct err *e)
{
	const char *name = s->filename ? s->filename : fet_source_name(s);

	if (strchr(name, '/') || strcmp(name, "..") == 0 || strcmp(name, ".") == 0 ||
	    strlen(name) > NAME_MAX)
		return err_say(e, -EINVAL, "the artifact's file name is not valid");
	if (!*name)
		return err_say(e, -EINVAL,
		    "the source is a directory: only files and archives can be fetched by %s",
		    s->getter);
	*ret = name;
	return 0;
}

static int
get_plain(struct fet *f, struct fet_source *s, struct err *e)
{
	cleanup_free char *path = NULL;
	const char *name = NULL;
	int r, fd;

	if (s->subdir)
		return err_say(e, -EINVAL,
		    "the source has a subdirectory (//), but is neither an archive nor a "
		    "repository");
	if (strcmp(f->spec.mode, "dir") == 0)
		return err_say(e, -EINVAL,
		    "mode \"dir\": the source is not an archive, and %s has no directories",
		    s->getter);
	if (strcmp(f->spec.mode, "file") == 0) {
		fd = get_file(f, s, "out", e);
	} else {
		if ((r = choose_name(s, &name, e)) < 0 || (r = make_dir("out", e)) < 0)
			return r;
		path = mem_printf("out/%s", name);
		fd = get_file(f, s, path, e);
	}
	return fd < 0 ? fd : close(fd);
}

/* --- archives and repositories --- */

/* Comparing one name with a pattern takes, at most, a number of steps with as many factors as its
 * pattern has stars. */
static bool
has_many_stars(const char *pattern)
{
	unsigned n = 0;

	for (; *pattern && n <= STARS_MAX; pattern++)
		n = *pattern == '/' ? 0 : n + (*pattern == '*');
	return n > STARS_MAX;
}

/* Makes the part of "all" that is wanted the artifact: a directory whose name may have wildcards,
 * and on whose way no link is. */
static int
take_part(const struct fet *f, const char *subdir, struct err *e)
{
	cleanup_free char *pattern = mem_printf("all/%s", subdir);
	cleanup_close int fd = -1;
	glob_t found = { 0 };
	int r;

	if (has_many_stars(subdir))
		return err_say(e, -EINVAL,
		    "the subdirectory \"%.150s\" has more than %d stars in one name", subdir,
		    STARS_MAX);
	r = glob(pattern, GLOB_NOSORT, NULL, &found);
	if (r == 0 && found.gl_pathc > 1)
		r = err_say(
		    e, -EINVAL, "the subdirectory \"%.150s\" fits several directories", subdir);
	else if (r != 0)
		r = err_say(e, -ENOENT, "the artifact has no subdirectory \"%.150s\"", subdir);
	else if ((fd = fd_open_beneath(f->dir_fd, found.gl_pathv[0], O_PATH | O_DIRECTORY, 0)) < 0)
		r = err_say(e, -ENOTDIR, "the subdirectory \"%.150s\" is not a directory", subdir);
	else if (rename(found.gl_pathv[0], "out") < 0)
		r = err_set(e, -errno, "take the subdirectory \"%.150s\"", subdir);
	globfree(&found);
	return r;
}

static int
get_archive(struct fet *f, struct fet_source *s, const struct archive_kind *kind, struct err *e)
{
	const bool single = strcmp(f->spec.mode, "file") == 0;
	cleanup_close int fd = get_file(f, s, "archive", e);
	int r;

	if (fd < 0)
		return fd;
	/* The limits are for the unpacked files: the archive itself no longer counts. */
	f->bytes = f->files = 0;
	(void)unlink("archive");
	if (single && s->subdir)
		return err_say(e, -EINVAL, "mode \"file\": the source has a subdirectory (//)");
	CRASH_POINT(FET_BEFORE_UNPACK);
	r = fet_unpack(f, kind, fd, single, s->subdir ? "all" : "out", e);
	return r < 0 || !s->subdir ? r : take_part(f, s->subdir, e);
}

/* Returns the kind of archive that the source is, or NULL if it is not to be unpacked: the option
 * archive is false or names no kind. */
static const struct archive_kind *
choose_kind(const struct fet_source *s)
{
	return s->archive && *s->archive ? archive_kind_named(s->archive)
					 : archive_kind_of(s->path);
}

static int
get_repository(struct fet *f, struct fet_source *s, struct err *e)
{
	int r;

	if (strcmp(f->spec.mode, "file") == 0)
		return err_say(e, -EINVAL, "mode \"file\": a repository is a directory");
	if (s->checksum)
		return err_say(e, -EINVAL,
		    "a repository has no checksum: use ref with the number of a commit");
	r = fet_git_clone(f, s, s->subdir ? "all" : "out", e);
	return r < 0 || !s->subdir ? r : take_part(f, s->subdir, e);
}

/* Fetches all objects below the name that is the source's. */
static int
get_objects(struct fet *f, const struct fet_source *s, struct err *e)
{
	int r;

	if (s->checksum)
		return err_say(e, -EINVAL, "a directory of a bucket has no checksum");
	r = fet_s3_get_dir(f, s->s3, s->subdir ? "all" : "out", e);
	return r < 0 || !s->subdir ? r : take_part(f, s->subdir, e);
}

/* An object, or all that are below its name if there is none. Who may only read objects, and not
 * list them, gets status 403 for one that does not exist. */
static int
get_bucket(struct fet *f, struct fet_source *s, struct err *e)
{
	const bool any = strcmp(f->spec.mode, "any") == 0;
	struct err why = { 0 };
	int r;

	if (strcmp(f->spec.mode, "dir") == 0 || (any && (s->subdir || !*fet_source_name(s))))
		return get_objects(f, s, e);
	if (!*fet_source_name(s))
		return err_say(
		    e, -EINVAL, "mode \"file\": the source names no object, but a directory");
	r = get_plain(f, s, &why);
	if (any && !s->checksum && (r == -ENOENT || r == -EACCES)) {
		(void)rmdir("out");
		r = get_objects(f, s, e);
	}
	if (r == -ENOENT || r == -EACCES || why.code == r)
		*e = why;
	return r;
}

static int
get_source(struct fet *f, struct fet_source *s, struct err *e)
{
	const struct archive_kind *kind = choose_kind(s);

	if (strcmp(s->getter, "git") == 0)
		return get_repository(f, s, e);
	if (s->s3 && !kind)
		return get_bucket(f, s, e);
	return kind ? get_archive(f, s, kind, e) : get_plain(f, s, e);
}

static int
get(struct fet *f, struct err *e)
{
	struct fet_source source;
	struct fet_s3 s3 = { 0 };
	int r = fet_source_read(&f->spec, &source, e);

	if (r == 0 && strcmp(source.getter, "s3") == 0) {
		r = fet_s3_read(&source, &s3, e);
		source.s3 = &s3;
	}
	if (r == 0)
		r = get_source(f, &source, e);
	fet_s3_done(&s3);
	fet_source_done(&source);
	return r;
}

/* An artifact with this mark is complete: it can be placed even if the processes that wait for it
 * die now. It is not on disk yet, so it counts only until the machine reboots. */
static int
mark_done(struct err *e)
{
	cleanup_close int fd = open("done", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? err_set(e, -errno, "mark the artifact as complete") : 0;
}

static int
read_spec(int fd, struct fet *f, struct err *e)
{
	json_t *json;
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, FET_SPEC_MAX, &map, &len);

	if (r < 0)
		return err_set(e, r, "read the description of the artifact");
	json_set_alloc_funcs(mem_alloc, free);
	json = len > 0 ? json_loadb(map, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	return fet_spec_read(json, &f->spec, e);
}

int
fet_get(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct fet_job *job = arg;
	struct fet f = { .config = job->config, .dir_fd = fd, .told = job->told };
	char text[ERR_MSG_SIZE];
	int r;

	/* Names in archives are UTF-8. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)setsid(); /* fet_main.c kills the group */
	if (fchdir(fd) < 0)
		return err_set(e, -errno, "enter the staging directory");
	/* The staging directories of other artifacts are out of reach from here on. */
	if ((r = fet_landlock(f.config, fd, e)) < 0 || (r = set_limits(e)) < 0 ||
	    (r = read_spec(fd + 1, &f, e)) < 0)
		return r;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_say(e, -EIO, "libcurl does not start");
	r = get(&f, e);
	CRASH_POINT(FET_BEFORE_MARK);
	if (r == 0)
		r = mark_done(e);
	CRASH_POINT(FET_AFTER_MARK);
	if (r < 0) { /* servers and archives chose a part of it */
		(void)utf8_sanitize(text, sizeof text, e->msg, strlen(e->msg));
		(void)strcpy(e->msg, text);
	}
	ret->bytes = f.bytes;
	ret->files = f.files;
	return r;
}
