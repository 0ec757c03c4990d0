// SPDX-License-Identifier: Apache-2.0
/* csl_store.c: stores volumes, snapshots and groups as files. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/path.h"
#include "contrib/csi-local/csl_copy.h"
#include "contrib/csi-local/csl_index.h"
#include "contrib/csi-local/csl_store_impl.h"
#include "contrib/csi-local/csl_trash.h"

#define LOCK_WAIT_MS 10000

/* The properties of each kind of object. The record of each has an id, a name, and whether it is
 * unfinished. */
static const struct kind {
	const char *records, *data, *noun;
	const ProtobufCMessageDescriptor *descriptor;
	size_t id, name, unfinished; /* offsets */
} kinds[CSL_N_KINDS] = {
#define KIND(type) offsetof(type, id), offsetof(type, name), offsetof(type, unfinished)
	[CSL_VOLUME] = { "meta", "volumes", "volume", &csl_volume__descriptor, KIND(CslVolume) },
	[CSL_SNAPSHOT] = { "snapshot-meta", "snapshots", "snapshot", &csl_snapshot__descriptor,
	    KIND(CslSnapshot) },
	[CSL_GROUP] = { "groups", NULL, "group", &csl_group__descriptor, KIND(CslGroup) },
#undef KIND
};

static const char *
record_text(const void *record, size_t offset)
{
	return *(char *const *)((const char *)record + offset);
}

static bool
record_unfinished(const void *record, enum csl_kind kind)
{
	return *(const protobuf_c_boolean *)((const char *)record + kinds[kind].unfinished) != 0;
}

int
csl_dir_open(int dir_fd, const char *name, int *ret_fd, struct err *e)
{
	int r = dir_make_at(dir_fd, name, 0700, geteuid(), getegid(), ret_fd);

	return r < 0 ? err_set(e, r, "make the directory %s", name) : 0;
}

int
csl_lock_take(int dir_fd, int *ret_fd, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 50 * 1000000L };
	cleanup_close int fd =
	    openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(e, -errno, "open the lock file");
	for (int waited = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited += 50) {
		if (errno != EWOULDBLOCK || waited >= LOCK_WAIT_MS)
			return err_set(e, -errno, "another plugin holds the volumes");
		(void)nanosleep(&pause, NULL);
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

int
csl_store_fd(const struct csl_store *s)
{
	return s->root_fd;
}

/* --- records --- */

void *
csl_store_load(
    struct csl_store *s, enum csl_kind kind, const char *id, struct csl_arena *a, struct err *e)
{
	struct id parsed;
	void *record;

	/* An id of another form than ours cannot exist and must never become part of a path. */
	if (!id_from_hex(id, &parsed)) {
		(void)err_say(e, -ENOENT, "%s '%.128s' does not exist", kinds[kind].noun, id);
		return NULL;
	}
	record =
	    csl_record_read(s->record_fd[kind], kinds[kind].noun, id, kinds[kind].descriptor, a, e);
	if (record && record_unfinished(record, kind))
		record = NULL, e->code = -ENOENT;
	if (!record && e->code == -ENOENT)
		(void)err_say(e, -ENOENT, "%s '%s' does not exist", kinds[kind].noun, id);
	return record;
}

static void
index_record(struct csl_store *s, enum csl_kind kind, const void *record)
{
	const char *id = record_text(record, kinds[kind].id);
	const char *name = record_text(record, kinds[kind].name);

	(void)pthread_mutex_lock(&s->mutex);
	csl_index_add(s->by_id[kind], id, id);
	if (name[0] != '\0')
		csl_index_add(s->by_name[kind], name, id);
	(void)pthread_mutex_unlock(&s->mutex);
}

int
csl_store_save(struct csl_store *s, enum csl_kind kind, const void *record, struct err *e)
{
	int r = csl_record_write(
	    s->record_fd[kind], kinds[kind].noun, record_text(record, kinds[kind].id), record, e);

	if (r == 0 && !record_unfinished(record, kind))
		index_record(s, kind, record);
	return r;
}

/* Moves data to the trash: this rename deletes it, for good once it is synced. */
static int
discard_data(struct csl_store *s, enum csl_kind kind, const char *id, struct err *e)
{
	if (!kinds[kind].data)
		return 0;
	if (renameat(s->data_fd[kind], id, s->trash_fd, id) < 0 && errno != ENOENT)
		return err_set(e, -errno, "delete %s %s", kinds[kind].noun, id);
	if (fsync(s->data_fd[kind]) < 0 || fsync(s->trash_fd) < 0)
		return err_set(e, -errno, "delete %s %s", kinds[kind].noun, id);
	return 0;
}

int
csl_store_remove(struct csl_store *s, enum csl_kind kind, const char *id, struct err *e)
{
	struct csl_arena a;
	void *record;
	int r;

	csl_arena_init(&a);
	record = csl_record_read(
	    s->record_fd[kind], kinds[kind].noun, id, kinds[kind].descriptor, &a, NULL);
	r = discard_data(s, kind, id, e);
	/* After a crash here the record is removed at the next start. */
	if (r == 0)
		r = csl_record_remove(s->record_fd[kind], kinds[kind].noun, id, e);
	if (r == 0 && record) {
		const char *name = record_text(record, kinds[kind].name);
		const char *named;

		(void)pthread_mutex_lock(&s->mutex);
		csl_index_drop(s->by_id[kind], id);
		named = csl_index_get(s->by_name[kind], name);
		if (named && strcmp(named, id) == 0)
			csl_index_drop(s->by_name[kind], name);
		(void)pthread_mutex_unlock(&s->mutex);
	}
	csl_arena_done(&a);
	(void)unlinkat(s->locks_fd, id, 0);
	if (s->trash)
		csl_trash_wake(s->trash);
	return r;
}

bool
csl_store_find(struct csl_store *s, enum csl_kind kind, const char *name, char ret_id[ID_HEX_SIZE])
{
	const char *id;

	(void)pthread_mutex_lock(&s->mutex);
	id = csl_index_get(s->by_name[kind], name);
	if (id)
		(void)strcpy(ret_id, id);
	(void)pthread_mutex_unlock(&s->mutex);
	return id != NULL;
}

size_t
csl_store_list(struct csl_store *s, enum csl_kind kind, const char *from, size_t max,
    struct csl_arena *a, char (**ret)[ID_HEX_SIZE])
{
	size_t first, n = 0;

	(void)pthread_mutex_lock(&s->mutex);
	first = csl_index_from(s->by_id[kind], from);
	while ((max == 0 || n < max) && csl_index_at(s->by_id[kind], first + n))
		n++;
	*ret = csl_alloc(a, n, sizeof **ret);
	for (size_t i = 0; i < n; i++)
		(void)strcpy((*ret)[i], csl_index_at(s->by_id[kind], first + i));
	(void)pthread_mutex_unlock(&s->mutex);
	return n;
}

/* --- data --- */

/* The mode is 0777 regardless of the umask: access to the volume is decided by who gets a mount of
 * it. */
int
csl_store_make_data(struct csl_store *s, const char *id, bool block, int64_t size, struct err *e)
{
	int volumes_fd = s->data_fd[CSL_VOLUME];
	cleanup_close int fd = -1;
	int r;

	if (!block) {
		r = dir_make_at(volumes_fd, id, 0777, geteuid(), getegid(), NULL);
	} else {
		fd = openat(
		    volumes_fd, id, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = fd < 0 || ftruncate(fd, size) < 0 || fsync(fd) < 0 ? -errno : 0;
	}
	if (r >= 0 && fsync(volumes_fd) < 0)
		r = -errno;
	return r < 0 ? err_set(e, r, "make the data of volume %s", id) : 0;
}

int
csl_store_data(struct csl_store *s, enum csl_kind kind, const char *id, bool block, struct err *e)
{
	int fd = fd_open_beneath(
	    s->data_fd[kind], id, block ? O_RDWR | O_NOFOLLOW : O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? err_set(e, fd, "open the data of %s %s", kinds[kind].noun, id) : fd;
}

int
csl_store_copy_data(struct csl_store *s, enum csl_kind from_kind, const char *from,
    enum csl_kind kind, const char *id, struct err *e)
{
	int r = csl_copy_at(s->data_fd[from_kind], from, s->data_fd[kind], id, e);

	if (r < 0)
		return err_prefix(e, "copy %s %s", kinds[from_kind].noun, from);
	return syncfs(s->root_fd) < 0 ? err_set(e, -errno, "sync the copy of %s", from) : 0;
}

int
csl_store_lock(struct csl_store *s, const char *id, struct err *e)
{
	cleanup_close int fd =
	    openat(s->locks_fd, id, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	while (fd >= 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_set(e, -errno, "lock volume %s", id);
	return fd < 0 ? err_set(e, -errno, "open the lock of volume %s", id) : steal_fd(&fd);
}

/* --- start --- */

/* Calls fn for each entry of dir_fd. */
static int
for_each_entry(struct csl_store *s, enum csl_kind kind, int dir_fd,
    int (*fn)(struct csl_store *, enum csl_kind, const char *, struct err *), struct err *e)
{
	cleanup_dir DIR *dir = NULL;
	const char *name;
	int r = dir_open_at(dir_fd, ".", &dir);

	if (r < 0)
		return err_set(e, r, "read the list of %ss", kinds[kind].noun);
	while ((name = dir_next(dir)))
		if ((r = fn(s, kind, name, e)) < 0)
			return r;
	return 0;
}

static bool
has_data(struct csl_store *s, enum csl_kind kind, const char *id)
{
	struct stat st;

	return !kinds[kind].data || fstatat(s->data_fd[kind], id, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

/* The mounts in a volume's record are of an older plugin, which was its node's only one. */
static int
move_old_mounts(struct csl_store *s, CslVolume *v, struct csl_arena *a, struct err *e)
{
	CslNodeVolume *mounts = csl_store_mounts(s, s->node_id, v->id, a);
	int r = 0;

	for (size_t i = 0; r == 0 && i < v->n_mounts; i++)
		if (strcmp(v->mounts[i]->boot_id, s->boot_id) == 0 &&
		    !csl_mount_find(mounts, v->mounts[i]->target))
			r = csl_store_mount_add(s, v->id, mounts, v->mounts[i], a, e);
	v->n_mounts = 0;
	return r < 0 ? r : csl_store_save(s, CSL_VOLUME, v, e);
}

/* Whether a record is of an interrupted create or delete. */
static bool
is_remainder(struct csl_store *s, enum csl_kind kind, const char *id, const void *record)
{
	const char *group = kind == CSL_SNAPSHOT ? ((const CslSnapshot *)record)->group_id : "";

	return record_unfinished(record, kind) || !has_data(s, kind, id) ||
	       (group[0] != '\0' && !csl_index_get(s->by_id[CSL_GROUP], group));
}

static int
load_record(struct csl_store *s, enum csl_kind kind, const char *id, struct err *e)
{
	struct csl_arena a;
	struct id parsed;
	CslVolume *v;
	void *record;
	int r = 0;

	if (!id_from_hex(id, &parsed)) {
		(void)unlinkat(s->record_fd[kind], id, 0); /* of an interrupted write */
		return 0;
	}
	csl_arena_init(&a);
	record = csl_record_read(
	    s->record_fd[kind], kinds[kind].noun, id, kinds[kind].descriptor, &a, e);
	v = kind == CSL_VOLUME ? record : NULL;
	if (!record)
		r = e->code;
	else if (strcmp(record_text(record, kinds[kind].id), id) != 0)
		r = err_say(e, -EBADMSG, "the record of %s %s is damaged", kinds[kind].noun, id);
	else if (is_remainder(s, kind, id, record))
		r = csl_store_remove(s, kind, id, e);
	else
		index_record(s, kind, record);
	if (r == 0 && v && v->n_mounts > 0 && s->node_id)
		r = move_old_mounts(s, v, &a, e);
	csl_arena_done(&a);
	return r;
}

/* Removes the empty data of an interrupted create; data with contents is kept. */
static int
drop_unfinished(struct csl_store *s, enum csl_kind kind, const char *id, struct err *e)
{
	struct stat st;
	struct id parsed;

	(void)e;
	if (!id_from_hex(id, &parsed) || csl_index_get(s->by_id[kind], id) ||
	    fstatat(s->data_fd[kind], id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		(void)unlinkat(s->data_fd[kind], id, AT_REMOVEDIR);
	else if (S_ISREG(st.st_mode) && st.st_blocks == 0)
		(void)unlinkat(s->data_fd[kind], id, 0);
	return 0;
}

static int
load_all(struct csl_store *s, struct err *e)
{
	int r = 0;

	for (enum csl_kind kind = 0; r == 0 && kind < CSL_N_KINDS; kind++) {
		s->by_id[kind] = csl_index_new();
		s->by_name[kind] = csl_index_new();
		r = for_each_entry(s, kind, s->record_fd[kind], load_record, e);
		if (r == 0 && kinds[kind].data)
			r = for_each_entry(s, kind, s->data_fd[kind], drop_unfinished, e);
	}
	return r < 0 ? r : csl_trash_start(s->trash_fd, &s->trash, e);
}

static int
open_dirs(struct csl_store *s, const char *root, struct err *e)
{
	int r;

	if (mkdir(root, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "make it");
	s->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->root_fd < 0)
		return err_set(e, -errno, "open it");
	for (enum csl_kind kind = 0; kind < CSL_N_KINDS; kind++)
		if ((r = csl_dir_open(s->root_fd, kinds[kind].records, &s->record_fd[kind], e)) <
			0 ||
		    (kinds[kind].data &&
			(r = csl_dir_open(s->root_fd, kinds[kind].data, &s->data_fd[kind], e)) < 0))
			return r;
	if ((r = csl_dir_open(s->root_fd, "nodes", &s->nodes_fd, e)) < 0 ||
	    (r = csl_dir_open(s->root_fd, "locks", &s->locks_fd, e)) < 0 ||
	    (r = csl_dir_open(s->root_fd, "trash", &s->trash_fd, e)) < 0)
		return r;
	return fsync(s->root_fd) < 0 ? err_set(e, -errno, "sync it") : 0;
}

int
csl_store_open(
    const char *root, bool controller, const char *node_id, struct csl_store **ret, struct err *e)
{
	struct csl_store *s = mem_new(struct csl_store);
	int r = boot_id_read(s->boot_id);

	/* After a failure the process exits, so nothing is freed. */
	if (r < 0)
		return err_set(e, r, "read the boot id");
	(void)pthread_mutex_init(&s->mutex, NULL);
	s->node_id = node_id;
	r = open_dirs(s, root, e);
	if (r == 0 && controller)
		r = csl_lock_take(s->root_fd, &s->lock_fd, e);
	if (r == 0 && node_id)
		r = csl_node_store_open(s, e);
	if (r == 0 && controller)
		r = load_all(s, e);
	if (r < 0)
		return err_prefix(e, "%s", root);
	*ret = s;
	return 0;
}
