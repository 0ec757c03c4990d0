// SPDX-License-Identifier: Apache-2.0
/* csl_store.c: stores the volumes as files. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/path.h"
#include "contrib/csi-local/csl_trash.h"

#define RECORD_MAX     (1024 * 1024)
#define RECORD_VERSION 1
#define LOCK_WAIT_MS   10000

typedef int compare_fn(const CslVolume *a, const CslVolume *b);

/* A sorted array of pointers. There are at most thousands of volumes, so moving the tail is cheaper
 * than a tree. */
struct index {
	CslVolume **at;
	size_t n;
	compare_fn *compare;
};

struct csl_store {
	int lock_fd, meta_fd, volumes_fd, trash_fd;
	struct index by_id, by_name;
	struct csl_trash *trash;
	char boot_id[BOOT_ID_SIZE];
};

static int
compare_ids(const CslVolume *a, const CslVolume *b)
{
	return strcmp(a->id, b->id);
}

static int
compare_names(const CslVolume *a, const CslVolume *b)
{
	return strcmp(a->name, b->name);
}

/* Returns the index of the first volume whose id is not below key. */
static size_t
index_find(const struct index *x, const CslVolume *key)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (x->compare(x->at[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static CslVolume *
index_get(const struct index *x, const CslVolume *key)
{
	size_t i = index_find(x, key);

	return i < x->n && x->compare(x->at[i], key) == 0 ? x->at[i] : NULL;
}

static void
index_add(struct index *x, CslVolume *v)
{
	size_t i = index_find(x, v);

	x->at = mem_resize(x->at, x->n + 1, sizeof(CslVolume *));
	memmove(x->at + i + 1, x->at + i, (x->n - i) * sizeof(CslVolume *));
	x->at[i] = v;
	x->n++;
}

static void
index_drop(struct index *x, const CslVolume *v)
{
	size_t i = index_find(x, v);

	memmove(x->at + i, x->at + i + 1, (x->n - i - 1) * sizeof(CslVolume *));
	x->n--;
}

static void
volume_free(CslVolume *v)
{
	csl_volume__free_unpacked(v, NULL);
}
DEFINE_CLEANUP(CslVolume *, volume_free);

/* Writes v's file: first a new file, synced, which then replaces the old one. */
static int
save_volume(struct csl_store *s, const CslVolume *v, struct err *e)
{
	size_t size = csl_volume__get_packed_size(v);
	cleanup_free uint8_t *data = mem_alloc(size);
	cleanup_close int fd = -1;
	int r;

	(void)csl_volume__pack(v, data);
	fd =
	    openat(s->meta_fd, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "write the record of volume %s", v->id);
	r = fd_write_full(fd, data, size);
	if (r < 0 || fsync(fd) < 0 || renameat(s->meta_fd, ".new", s->meta_fd, v->id) < 0 ||
	    fsync(s->meta_fd) < 0)
		return err_set(e, r < 0 ? r : -errno, "write the record of volume %s", v->id);
	return 0;
}

/* Removes records of mounts from an earlier boot, because mounts do not survive a reboot. */
static void
forget_old_mounts(const struct csl_store *s, CslVolume *v)
{
	size_t kept = 0;

	for (size_t i = 0; i < v->n_mounts; i++)
		if (strcmp(v->mounts[i]->boot_id, s->boot_id) == 0)
			v->mounts[kept++] = v->mounts[i];
		else
			csl_mount__free_unpacked(v->mounts[i], NULL);
	v->n_mounts = kept;
}

static int
load_volume(struct csl_store *s, const char *id, struct err *e)
{
	cleanup_with(volume_free) CslVolume *v = NULL;
	cleanup_free char *data = NULL;
	ssize_t n = fd_read_file(s->meta_fd, id, RECORD_MAX, &data);
	struct stat st;

	if (n < 0)
		return err_set(e, (int)n, "read the record of volume %s", id);
	v = csl_volume__unpack(NULL, (size_t)n, (const uint8_t *)data);
	if (!v || strcmp(v->id, id) != 0)
		return err_say(e, -EBADMSG, "the record of volume %s is damaged", id);
	if (v->version != RECORD_VERSION)
		return err_say(e, -EBADMSG,
		    "the record of volume %s has version %u; this plugin supports version %d", id,
		    v->version, RECORD_VERSION);
	/* A delete that was interrupted after its rename counts as done. */
	if (fstatat(s->volumes_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return unlinkat(s->meta_fd, id, 0) < 0 ? err_set(e, -errno, "remove volume %s", id)
						       : 0;
	forget_old_mounts(s, v);
	index_add(&s->by_name, v);
	index_add(&s->by_id, steal_ptr(&v));
	return 0;
}

/* Calls fn for each entry of dir_fd that is the id of a volume. */
static int
for_each_id(struct csl_store *s, int dir_fd,
    int (*fn)(struct csl_store *, const char *, struct err *), struct err *e)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	struct id id;
	int r;

	if (!dir) {
		r = err_set(e, -errno, "read the list of volumes");
		close_p(&fd);
		return r;
	}
	while ((d = readdir(dir)))
		if (id_from_hex(d->d_name, &id) && (r = fn(s, d->d_name, e)) < 0)
			return r;
	return 0;
}

/* Removes the empty directory of an interrupted create; a directory with contents is kept. */
static int
drop_unfinished(struct csl_store *s, const char *id, struct err *e)
{
	(void)e;
	if (!csl_store_by_id(s, id))
		(void)unlinkat(s->volumes_fd, id, AT_REMOVEDIR);
	return 0;
}

static int
open_dir(int root_fd, const char *name, int *ret_fd, struct err *e)
{
	int r = dir_make_at(root_fd, name, 0700, geteuid(), getegid(), ret_fd);

	return r < 0 ? err_set(e, r, "make the directory %s", name) : 0;
}

/* Waits for a previous plugin that is just ending. */
static int
take_lock(int root_fd, struct csl_store *s, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 50 * 1000000L };

	s->lock_fd = openat(root_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return err_set(e, -errno, "open the lock file");
	for (int waited = 0; flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0; waited += 50) {
		if (errno != EWOULDBLOCK || waited >= LOCK_WAIT_MS)
			return err_set(e, -errno, "another plugin holds the volumes");
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

static int
open_all(struct csl_store *s, const char *root, struct err *e)
{
	cleanup_close int root_fd = -1;
	int r;

	if (mkdir(root, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make %s", root);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return err_set(e, -errno, "open %s", root);
	if ((r = take_lock(root_fd, s, e)) < 0 ||
	    (r = open_dir(root_fd, "meta", &s->meta_fd, e)) < 0 ||
	    (r = open_dir(root_fd, "volumes", &s->volumes_fd, e)) < 0 ||
	    (r = open_dir(root_fd, "trash", &s->trash_fd, e)) < 0)
		return err_prefix(e, "%s", root);
	if (fsync(root_fd) < 0)
		return err_set(e, -errno, "sync %s", root);
	if ((r = for_each_id(s, s->meta_fd, load_volume, e)) < 0 ||
	    (r = for_each_id(s, s->volumes_fd, drop_unfinished, e)) < 0)
		return err_prefix(e, "%s", root);
	return csl_trash_start(s->trash_fd, &s->trash, e);
}

int
csl_store_open(const char *root, struct csl_store **ret, struct err *e)
{
	struct csl_store *s = mem_new(struct csl_store);
	int r;

	s->by_id.compare = compare_ids;
	s->by_name.compare = compare_names;
	r = boot_id_read(s->boot_id);
	if (r < 0)
		return err_set(e, r, "read the boot id");
	r = open_all(s, root, e);
	if (r < 0)
		return r; /* the process exits, so nothing is freed */
	*ret = s;
	return 0;
}

CslVolume *
csl_store_by_id(struct csl_store *s, const char *id)
{
	return index_get(&s->by_id, &(CslVolume){ .id = (char *)(uintptr_t)id });
}

CslVolume *
csl_store_by_name(struct csl_store *s, const char *name)
{
	return index_get(&s->by_name, &(CslVolume){ .name = (char *)(uintptr_t)name });
}

CslVolume *
csl_store_from_id(struct csl_store *s, const char *id)
{
	size_t i = index_find(&s->by_id, &(CslVolume){ .id = (char *)(uintptr_t)id });

	return i < s->by_id.n ? s->by_id.at[i] : NULL;
}

CslVolume *
csl_store_after(struct csl_store *s, const CslVolume *v)
{
	size_t i = index_find(&s->by_id, v) + 1;

	return i < s->by_id.n ? s->by_id.at[i] : NULL;
}

static CslVolume *
volume_new(const char *name, int64_t capacity)
{
	CslVolume *v = mem_new(CslVolume);
	struct id id = id_random();
	char hex[ID_HEX_SIZE];

	csl_volume__init(v);
	id_to_hex(&id, hex);
	v->version = RECORD_VERSION;
	v->id = mem_strdup(hex);
	v->name = mem_strdup(name);
	v->capacity_bytes = capacity;
	return v;
}

/* The mode is 0777 regardless of the umask: access to the volume is decided by who gets a mount of
 * it. */
static int
make_data_dir(struct csl_store *s, const char *id, struct err *e)
{
	int r = dir_make_at(s->volumes_fd, id, 0777, geteuid(), getegid(), NULL);

	if (r < 0)
		return err_set(e, r, "make the directory of volume %s", id);
	return fsync(s->volumes_fd) < 0 ? err_set(e, -errno, "sync the directory of volume %s", id)
					: 0;
}

int
csl_store_create(
    struct csl_store *s, const char *name, int64_t capacity, CslVolume **ret, struct err *e)
{
	cleanup_with(volume_free) CslVolume *v = volume_new(name, capacity);
	int r;

	r = make_data_dir(s, v->id, e);
	if (r < 0)
		return r;
	r = save_volume(s, v, e);
	if (r < 0)
		goto undo_dir;
	index_add(&s->by_id, v);
	index_add(&s->by_name, v);
	*ret = steal_ptr(&v);
	return 0;

undo_dir:
	(void)unlinkat(s->meta_fd, v->id, 0);
	(void)unlinkat(s->volumes_fd, v->id, AT_REMOVEDIR);
	return r;
}

int
csl_store_delete(struct csl_store *s, CslVolume *v, struct err *e)
{
	/* This rename deletes the volume; after a crash load_volume() does the rest. */
	if (renameat(s->volumes_fd, v->id, s->trash_fd, v->id) < 0 && errno != ENOENT)
		return err_set(e, -errno, "delete volume %s", v->id);
	if (fsync(s->volumes_fd) < 0 || fsync(s->trash_fd) < 0)
		return err_set(e, -errno, "delete volume %s", v->id);
	if ((unlinkat(s->meta_fd, v->id, 0) < 0 && errno != ENOENT) || fsync(s->meta_fd) < 0)
		return err_set(e, -errno, "delete the record of volume %s", v->id);
	index_drop(&s->by_id, v);
	index_drop(&s->by_name, v);
	volume_free(v);
	csl_trash_wake(s->trash);
	return 0;
}

int
csl_store_resize(struct csl_store *s, CslVolume *v, int64_t capacity, struct err *e)
{
	int64_t old = v->capacity_bytes;
	int r;

	v->capacity_bytes = capacity;
	r = save_volume(s, v, e);
	if (r < 0)
		v->capacity_bytes = old;
	return r;
}

int
csl_store_dir(struct csl_store *s, const CslVolume *v, struct err *e)
{
	int fd = fd_open_beneath(s->volumes_fd, v->id, O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? err_set(e, fd, "open the directory of volume %s", v->id) : fd;
}

const CslMount *
csl_store_mount(const CslVolume *v, const char *target)
{
	for (size_t i = 0; i < v->n_mounts; i++)
		if (strcmp(v->mounts[i]->target, target) == 0)
			return v->mounts[i];
	return NULL;
}

static void
mount_free(CslMount *m)
{
	csl_mount__free_unpacked(m, NULL);
}
DEFINE_CLEANUP(CslMount *, mount_free);

int
csl_store_mount_add(struct csl_store *s, CslVolume *v, const char *target, bool staging,
    uint64_t attrs, struct err *e)
{
	cleanup_with(mount_free) CslMount *m = mem_new(CslMount);
	int r;

	csl_mount__init(m);
	m->target = mem_strdup(target);
	m->boot_id = mem_strdup(s->boot_id);
	m->staging = staging;
	m->attrs = attrs;
	v->mounts = mem_resize(v->mounts, v->n_mounts + 1, sizeof *v->mounts);
	v->mounts[v->n_mounts++] = m;
	r = save_volume(s, v, e);
	if (r < 0) {
		v->n_mounts--;
		return r;
	}
	m = NULL;
	return 0;
}

int
csl_store_mount_drop(struct csl_store *s, CslVolume *v, const char *target, struct err *e)
{
	CslMount *dropped;
	size_t i = 0;
	int r;

	while (i < v->n_mounts && strcmp(v->mounts[i]->target, target) != 0)
		i++;
	if (i == v->n_mounts)
		return 0;
	dropped = v->mounts[i];
	v->mounts[i] = v->mounts[--v->n_mounts];
	r = save_volume(s, v, e);
	if (r < 0) {
		v->mounts[v->n_mounts++] = v->mounts[i];
		v->mounts[i] = dropped;
		return r;
	}
	mount_free(dropped);
	return 0;
}
