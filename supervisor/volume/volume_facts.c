// SPDX-License-Identifier: Apache-2.0
/* volume_facts.c: collects what this machine and the plugins say about volumes. Runs in:
 * supervisor. */
#include "supervisor/volume/volume_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/mountinfo.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugin_listing.h"
#include "supervisor/volume/volume_place.h"

#define NAMES_BYTES_MAX (64u * 1024 * 1024) /* from file-helper */

struct paths {
	struct volume_path *v;
	size_t n;
};

/* What one plugin has answered. */
struct answer {
	struct volume_facts *facts;
	const char *plugin;
	struct rpc_csi_rep *list; /* NULL: see e */
	struct err e;
};

struct volume_facts {
	struct sup *sup;
	volume_facts_cb *cb;
	void *arg;
	unsigned waiting;         /* requests, and volume_facts_collect() itself */
	struct paths mounts;      /* sorted by their paths, the uppermost last */
	struct paths unexplained; /* mounts and directories without a row, by volume */
	struct err e;
	struct strings plugins;
	struct answer *answers; /* of plugins, in their order */
};

static void
add_path(struct paths *paths, const struct volume_path *at)
{
	struct volume_path one = *at;

	one.path = mem_strdup(at->path);
	paths->v = mem_resize(paths->v, paths->n + 1, sizeof *paths->v);
	paths->v[paths->n++] = one;
}

/* Adds the path if it is one of a volume's directory. device: of a mount; NULL: a directory. */
static void
take_path(struct volume_facts *f, const char *path, const char *device)
{
	struct volume_path one = { .path = path, .mounted = device != NULL };

	if (!volume_place_parse(path, &one.place, &one.staging))
		return;
	(void)snprintf(one.device, sizeof one.device, "%s", device ? device : "");
	if (device)
		add_path(&f->mounts, &one);
	if (!mount_find_place(f->sup, &one.place, one.staging))
		add_path(&f->unexplained, &one);
}

static void
free_paths(struct paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		free((char *)(uintptr_t)paths->v[i].path);
	free(paths->v);
}

void
volume_facts_free(struct volume_facts *f)
{
	free_paths(&f->mounts);
	free_paths(&f->unexplained);
	for (size_t i = 0; i < f->plugins.n; i++)
		rpc_csi_rep_free(f->answers[i].list);
	free(f->answers);
	strings_done(&f->plugins);
	free(f);
}

/* mountinfo_next() has ended each field of the line with a NUL: "id\0parent\0major:minor\0". */
static const char *
device_of(const char *line)
{
	for (int i = 0; i < 2; i++)
		line += strlen(line) + 1;
	return line;
}

/* Of mounts at one path the one that was made last is the uppermost. */
static int
compare_mounts(const void *a, const void *b)
{
	const struct volume_path *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int
compare_volumes(const void *a, const void *b)
{
	const struct volume_path *x = a, *y = b;
	int order = strcmp(x->place.volume, y->place.volume);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static void
sort_paths(struct paths *paths, int (*compare)(const void *a, const void *b))
{
	for (size_t i = 0; i < paths->n; i++)
		paths->v[i].order = i;
	if (paths->n > 0)
		qsort(paths->v, paths->n, sizeof *paths->v, compare);
}

/* The last of all, so that it fits the rows of this moment. */
static void
read_mounts(struct volume_facts *f)
{
	cleanup_free char *text = NULL;
	struct mountinfo mi;
	char *at, *line;
	int r = mountinfo_read(&text);

	if (r < 0) {
		(void)err_set(&f->e, r, "read the mounts of this machine");
		return;
	}
	for (at = line = text; (r = mountinfo_next(&at, &mi)) != 0; line = at) {
		const char *rest = r < 0 ? NULL : mountinfo_below(mi.target, f->sup->args.data_dir);

		if (rest)
			take_path(f, rest, device_of(line));
	}
}

static void
end_request(struct volume_facts *f)
{
	if (--f->waiting > 0)
		return;
	read_mounts(f);
	sort_paths(&f->mounts, compare_mounts);
	sort_paths(&f->unexplained, compare_volumes);
	f->cb(f->sup, f->arg, f);
}

/* names: paths below csi/, each with its NUL. A row that ends removes its directory first, so a
 * directory without a row was one before file-helper saw it. */
static void
take_dirs(struct volume_facts *f, const char *names, size_t len)
{
	for (size_t at = 0; at < len; at += strlen(names + at) + 1) {
		cleanup_free char *path = mem_printf("csi/%s", names + at);

		take_path(f, path, NULL);
	}
}

static void
on_dirs(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_close int memfd = fd;
	struct volume_facts *f = arg;
	const void *map = NULL;
	size_t len = 0;

	if (r < 0) {
		f->e = *e;
	} else if ((r = fd_memfd_map(memfd, NAMES_BYTES_MAX, &map, &len)) < 0 ||
		   (len > 0 && ((const char *)map)[len - 1] != '\0')) {
		(void)err_set(&f->e, r < 0 ? r : -EBADMSG, "read the names below csi/");
	} else {
		take_dirs(f, map, len);
	}
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	end_request(f);
}

static void
on_list(struct sup *sup, void *arg, struct rpc_csi_rep *list, const struct err *e)
{
	struct answer *a = arg;

	a->list = list;
	if (e)
		a->e = *e;
	end_request(a->facts);
}

void
volume_facts_collect(struct sup *sup, const struct strings *plugins, volume_facts_cb *cb, void *arg)
{
	struct volume_facts *f = mem_new(struct volume_facts);
	struct file_root_list_req req = { .root = FILE_ROOT_CSI };

	*f = (struct volume_facts){ .sup = sup, .cb = cb, .arg = arg, .waiting = 1 };
	for (size_t i = 0; i < plugins->n; i++)
		if (!strings_has(&f->plugins, plugins->v[i]))
			strings_add(&f->plugins, plugins->v[i]);
	f->answers = mem_zeroed(f->plugins.n + 1, sizeof *f->answers);
	f->waiting += 1 + (unsigned)f->plugins.n;
	(void)file_call_root_list(sup, &req, on_dirs, f);
	for (size_t i = 0; i < f->plugins.n; i++) {
		f->answers[i].facts = f;
		f->answers[i].plugin = f->plugins.v[i];
		plugin_listing_begin(sup, f->plugins.v[i], on_list, &f->answers[i]);
	}
	end_request(f);
}

unsigned
volume_facts_count(const struct volume_facts *f, const char *path, const char **ret_device)
{
	size_t low = 0, high = f->mounts.n;
	unsigned n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(f->mounts.v[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < f->mounts.n && strcmp(f->mounts.v[low].path, path) == 0; low++, n++)
		*ret_device = f->mounts.v[low].device;
	return n;
}

const struct volume_path *
volume_facts_unexplained(const struct volume_facts *f, size_t i)
{
	return i < f->unexplained.n ? &f->unexplained.v[i] : NULL;
}

size_t
volume_facts_unexplained_from(const struct volume_facts *f, const char *volume)
{
	size_t low = 0, high = f->unexplained.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(f->unexplained.v[middle].place.volume, volume) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *
volume_facts_error(const struct volume_facts *f)
{
	return f->e.code < 0 ? f->e.msg : NULL;
}

const struct rpc_csi_rep *
volume_facts_listing(const struct volume_facts *f, const char *plugin, const char **ret_why)
{
	*ret_why = "it was not asked";
	for (size_t i = 0; i < f->plugins.n; i++)
		if (strcmp(f->plugins.v[i], plugin) == 0) {
			*ret_why = f->answers[i].e.msg;
			return f->answers[i].list;
		}
	return NULL;
}
