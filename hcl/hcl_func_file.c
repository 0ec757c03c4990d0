/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_file.c: functions that read files: of the user who parses the job. Runs in: cli,
 * job-parser. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unistr.h>

#include "common/base64.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_path.h"

#define FILE_MAX ((size_t)4 * 1024 * 1024)

struct file {
	struct hcl_call *c;
	const char *path;
	int fd;
	char *bytes;
	size_t len;
};

/* The file that argument 0 names: from the base directory, if it is relative. */
static const char *
argument_path(struct hcl_call *c)
{
	const char *base = hcl_base_dir(c), *path = hcl_path_expand(c, c->args[0]->string);

	if (*path == '/')
		return hcl_path_clean(c->h, path);
	return hcl_path_clean(c->h, hcl_path_join(c->h, base, path));
}

/* A file can be longer than its attributes say, as those in /proc are. */
static void
read_bytes(struct hcl *h, void *arg)
{
	struct file *f = arg;
	size_t room;
	struct stat st;
	ssize_t n = 0;

	if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode))
		hcl_refuse_argument(f->c, 0, "%s is not a regular file", f->path);
	if (st.st_size > (off_t)FILE_MAX)
		hcl_refuse_argument(f->c, 0, "%s is larger than 4 MiB", f->path);
	room = st.st_size > 0 ? (size_t)st.st_size + 1 : 64 * 1024;
	f->bytes = hcl_alloc(h, room);
	while (f->len < room && (n = read(f->fd, f->bytes + f->len, room - f->len)) != 0) {
		if (n < 0 && errno != EINTR)
			hcl_refuse_argument(
			    f->c, 0, "cannot read %s: %s", f->path, strerrordesc_np(errno));
		f->len += n > 0 ? (size_t)n : 0;
	}
	if (f->len == room)
		hcl_refuse_argument(f->c, 0, "%s changes or is too large", f->path);
	hcl_count_bytes(h, f->len);
}

static void
close_file(void *file)
{
	(void)close(((struct file *)file)->fd);
}

static struct file
read_file(struct hcl_call *c)
{
	struct file f = { .c = c, .path = argument_path(c) };

	f.fd = open(f.path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (f.fd < 0)
		hcl_refuse_argument(c, 0, "cannot read %s: %s", f.path, strerrordesc_np(errno));
	hcl_finally(c->h, read_bytes, &f, close_file);
	return f;
}

struct hcl_value *
hcl_fn_file(struct hcl_call *c)
{
	struct file f = read_file(c);

	if (u8_check((const uint8_t *)f.bytes, f.len))
		hcl_refuse_argument(
		    c, 0, "%s is not UTF-8: filebase64() reads such a file as base64", f.path);
	return hcl_normal_string(c->h, f.bytes, f.len);
}

struct hcl_value *
hcl_fn_filebase64(struct hcl_call *c)
{
	struct file f = read_file(c);
	char *text = hcl_alloc(c->h, BASE64_SIZE(f.len));

	return hcl_string(c->h, text, base64_encode(f.bytes, f.len, text));
}

struct hcl_value *
hcl_fn_fileexists(struct hcl_call *c)
{
	const char *path = argument_path(c);
	struct stat st;

	hcl_step(c->h, 16);
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		hcl_refuse_argument(c, 0, "%s is not a regular file", path);
	if (stat(path, &st) == 0)
		return hcl_bool(c->h, true);
	if (errno != ENOENT)
		hcl_refuse_argument(c, 0, "cannot access %s: %s", path, strerrordesc_np(errno));
	return hcl_bool(c->h, false);
}

struct hcl_value *
hcl_fn_fileset(struct hcl_call *c)
{
	const char *base = hcl_base_dir(c);
	struct hcl_items found = { .h = c->h };
	const char *dir = c->args[0]->string, *relative;
	struct stat st;
	size_t n = 0;

	if (*dir != '/')
		dir = hcl_path_join(c->h, base, dir);
	hcl_glob(c, hcl_path_join(c->h, dir, c->args[1]->string), &found);
	for (size_t i = 0; i < found.n; i++) {
		const char *path = found.v[i]->string;

		hcl_step(c->h, 16);
		if (stat(path, &st) < 0)
			hcl_refuse_argument(
			    c, 0, "cannot access %s: %s", path, strerrordesc_np(errno));
		if (!S_ISREG(st.st_mode))
			continue;
		relative = hcl_path_relative(c->h, hcl_path_clean(c->h, dir), path);
		if (!relative)
			hcl_refuse_argument(c, 0, "%s is not below %s", path, dir);
		found.v[n++] = hcl_text(c->h, relative);
	}
	return hcl_set(c->h, &hcl_type_string, found.v, n);
}
