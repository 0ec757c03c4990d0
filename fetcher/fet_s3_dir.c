// SPDX-License-Identifier: Apache-2.0
/* fet_s3_dir.c: fetches all objects of a bucket whose names are below one. The server is not
 * trusted: neither in the names, nor in their number. Runs in: a worker of the fetcher. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mem.h"
#include "fetcher/fet_s3.h"
#include "fetcher/fet_s3_list.h"

#define PAGE_MAX    (8u << 20) /* bytes: 1000 names of 1024 bytes, as XML */
#define OBJECTS_MAX 100000     /* each is a request of its own */
#define PATH_LEN    1024       /* as Amazon's limit of names */
#define DEPTH_MAX   100

struct directory {
	struct fet *f;
	const struct fet_s3 *s3;
	const char *to;
	char *prefix; /* of the names, with a slash at the end, or "" */
	uint64_t until_ms;
	struct strings keys;
	unsigned seen; /* names, also of those that stand for directories */
	struct err *e;
};

static int
time_left(const struct directory *d, uint64_t *ret)
{
	uint64_t now = clock_ms();

	if (now >= d->until_ms)
		return err_say(d->e, -ETIMEDOUT, "the bucket's objects did not arrive in time");
	*ret = d->until_ms - now;
	return 0;
}

/* Writes what the url answers to path, at most limit bytes. */
static int
fetch(struct directory *d, const char *url, const char *path, uint64_t limit)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	struct fet_http http;
	uint64_t left_ms = 0;
	int r = fd < 0 ? err_set(d->e, -errno, "make the file \"%.200s\"", path)
		       : time_left(d, &left_ms);

	if (r < 0)
		return r;
	http = fet_s3_request(d->s3, url, left_ms);
	return fet_http_get(d->f, &http, fd, limit, d->e);
}

/* --- names --- */

/* Checks what becomes a path below the directory. */
static int
check_name(const struct directory *d, const char *name)
{
	unsigned depth = 0;
	bool good = strlen(name) < PATH_LEN;

	for (const char *at = name; good; at++) {
		size_t len = strcspn(at, "/");

		good = len > 0 && len <= NAME_MAX && ++depth <= DEPTH_MAX &&
		       !(at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.')));
		at += len;
		if (!*at)
			break;
	}
	return good ? 0
		    : err_say(d->e, -EBADMSG,
			  "the name of the object \"%.150s\" cannot be that of a file", name);
}

/* Objects with a slash at the end stand for directories. */
static int
add_keys(struct directory *d, const struct strings *keys)
{
	const size_t prefix_len = strlen(d->prefix);

	for (size_t i = 0; i < keys->n; i++) {
		const char *key = keys->v[i];
		size_t len = strlen(key);
		int r;

		if (d->seen++ == OBJECTS_MAX)
			return err_say(d->e, -EFBIG,
			    "the bucket has more than the %d objects that are allowed, below "
			    "\"%.150s\"",
			    OBJECTS_MAX, d->prefix);
		if (len > 0 && key[len - 1] == '/')
			continue;
		if (strncmp(key, d->prefix, prefix_len) != 0)
			return err_say(d->e, -EBADMSG,
			    "the bucket names an object that was not asked for: \"%.150s\"", key);
		if ((r = check_name(d, key + prefix_len)) < 0)
			return r;
		strings_add(&d->keys, key);
	}
	return 0;
}

static int
read_page(struct directory *d, const char *token, struct s3_page *ret)
{
	cleanup_free char *url = fet_s3_list_url(d->s3, d->prefix, token), *xml = NULL;
	ssize_t n;
	int r = fetch(d, url, "list", PAGE_MAX);

	if (r < 0)
		return err_prefix(d->e, "the list of the bucket's objects");
	n = fd_read_file(d->f->dir_fd, "list", PAGE_MAX, &xml);
	(void)unlinkat(d->f->dir_fd, "list", 0);
	if (n < 0)
		return err_set(d->e, (int)n, "read the list of the bucket's objects");
	return s3_page_read(xml, (size_t)n, ret, d->e);
}

/* A server cannot keep this going: each page but the last has a name. */
static int
list(struct directory *d)
{
	cleanup_free char *token = NULL;
	bool more = true;
	int r = 0;

	while (r == 0 && more) {
		struct s3_page page = { 0 };

		r = read_page(d, token, &page);
		more = page.more;
		if (r == 0 && more && page.keys.n == 0)
			r = err_say(d->e, -EBADMSG, "a part of the bucket's list has no objects");
		if (r == 0)
			r = add_keys(d, &page.keys);
		free(token);
		token = steal_ptr(&page.token);
		s3_page_done(&page);
	}
	return r;
}

/* --- objects --- */

/* Makes the directories of the path. */
static int
make_parents(const struct directory *d, char *path)
{
	for (char *at = path + strlen(d->to) + 1; (at = strchr(at, '/')); at++) {
		int r;

		*at = '\0';
		r = mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		if (r < 0)
			return err_set(d->e, r, "make the directory \"%.200s\"", path);
		*at = '/';
	}
	return 0;
}

static int
get_object(struct directory *d, const char *key)
{
	cleanup_free char *path = mem_printf("%s/%s", d->to, key + strlen(d->prefix));
	cleanup_free char *url = fet_s3_url(d->s3, key);
	struct stat st;
	int r = make_parents(d, path);

	if (r == 0)
		r = fetch(d, url, path, d->f->spec.max_bytes - d->f->bytes);
	if (r == -EFBIG)
		return err_say(d->e, r,
		    "the bucket's objects have more than the %llu bytes that are allowed",
		    (unsigned long long)d->f->spec.max_bytes);
	if (r < 0)
		return err_prefix(d->e, "the object \"%.150s\"", key);
	if (stat(path, &st) == 0)
		d->f->bytes += (uint64_t)st.st_size;
	d->f->files++;
	CRASH_POINT(FET_AFTER_OBJECT);
	return 0;
}

static int
get_all(struct directory *d)
{
	int r = list(d);

	if (r < 0)
		return r;
	CRASH_POINT(FET_AFTER_LIST);
	if (d->keys.n == 0)
		return err_say(
		    d->e, -ENOENT, "the bucket has no object below \"%.150s\"", d->prefix);
	if (mkdir(d->to, 0755) < 0)
		return err_set(d->e, -errno, "make the directory of the artifact");
	for (size_t i = 0; r == 0 && i < d->keys.n; i++)
		r = get_object(d, d->keys.v[i]);
	return r;
}

int
fet_s3_get_dir(struct fet *f, const struct fet_s3 *s3, const char *to, struct err *e)
{
	size_t len = strlen(s3->key);
	struct directory d = { f, s3, to, .until_ms = clock_ms() + f->spec.s3_ms, .e = e };
	int r;

	d.prefix = mem_printf("%s%s", s3->key, len > 0 && s3->key[len - 1] != '/' ? "/" : "");
	r = get_all(&d);
	free(d.prefix);
	strings_done(&d.keys);
	return r;
}
