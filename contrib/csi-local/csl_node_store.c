// SPDX-License-Identifier: Apache-2.0
/* csl_node_store.c: stores nodes and their mounts. Runs in: drover-csi-local. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/path.h"
#include "contrib/csi-local/csl_store_impl.h"

#define NODE_RECORD "node"

size_t
csl_store_nodes(struct csl_store *s, struct csl_arena *a, const char *(**ret))
{
	cleanup_dir DIR *dir = NULL;
	const char *name;
	size_t n = 0;

	*ret = NULL;
	if (dir_open_at(s->nodes_fd, ".", &dir) < 0)
		return 0;
	while ((name = dir_next(dir))) {
		*ret = csl_grown(a, *ret, n);
		(*ret)[n++] = csl_copy(a, name);
	}
	return n;
}

/* Opens the directory of any node; -ENOENT if there is none of this name. */
static int
open_node(struct csl_store *s, const char *node_id)
{
	return name_is_component(node_id)
		   ? fd_open_beneath(s->nodes_fd, node_id, O_RDONLY | O_DIRECTORY, 0)
		   : -ENOENT;
}

CslNode *
csl_store_node(struct csl_store *s, const char *node_id, struct csl_arena *a)
{
	cleanup_close int fd = open_node(s, node_id);
	struct err e;

	return fd < 0 ? NULL
		      : csl_record_read(fd, "the", NODE_RECORD, &csl_node__descriptor, a, &e);
}

int
csl_store_node_save(struct csl_store *s, const CslNode *node, struct err *e)
{
	return csl_record_write(s->node_fd, "the", NODE_RECORD, node, e);
}

CslNodeVolume *
csl_store_mounts(struct csl_store *s, const char *node_id, const char *id, struct csl_arena *a)
{
	cleanup_close int fd = open_node(s, node_id);
	CslNodeVolume *found = NULL;
	struct id parsed;
	size_t kept = 0;
	struct err e;

	if (fd >= 0 && id_from_hex(id, &parsed))
		found = csl_record_read(fd, "mounts", id, &csl_node_volume__descriptor, a, &e);
	if (!found) {
		found = csl_alloc(a, 1, sizeof *found);
		csl_node_volume__init(found);
		found->version = 1;
	}
	for (size_t i = 0; i < found->n_mounts; i++) /* mounts do not survive a reboot */
		if (strcmp(found->mounts[i]->boot_id, s->boot_id) == 0)
			found->mounts[kept++] = found->mounts[i];
	found->n_mounts = kept;
	return found;
}

CslMount *
csl_mount_find(const CslNodeVolume *mounts, const char *target)
{
	for (size_t i = 0; i < mounts->n_mounts; i++)
		if (strcmp(mounts->mounts[i]->target, target) == 0)
			return mounts->mounts[i];
	return NULL;
}

int
csl_store_mount_add(struct csl_store *s, const char *id, CslNodeVolume *mounts,
    const CslMount *mount, struct csl_arena *a, struct err *e)
{
	CslMount *added = csl_alloc(a, 1, sizeof *added);
	int r;

	*added = *mount;
	added->boot_id = s->boot_id;
	mounts->mounts = csl_grown(a, mounts->mounts, mounts->n_mounts);
	mounts->mounts[mounts->n_mounts++] = added;
	r = csl_record_write(s->node_fd, "mounts", id, mounts, e);
	if (r < 0)
		mounts->n_mounts--;
	return r;
}

int
csl_store_mount_drop(
    struct csl_store *s, const char *id, CslNodeVolume *mounts, const char *target, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < mounts->n_mounts; i++)
		if (strcmp(mounts->mounts[i]->target, target) != 0)
			mounts->mounts[kept++] = mounts->mounts[i];
	mounts->n_mounts = kept;
	return kept > 0 ? csl_record_write(s->node_fd, "mounts", id, mounts, e)
			: csl_record_remove(s->node_fd, "mounts", id, e);
}

/* Removes what interrupted writes left, and records that have only mounts of earlier boots. */
static int
tidy_node(struct csl_store *s, struct err *e)
{
	cleanup_dir DIR *dir = NULL;
	struct csl_arena a;
	const char *name;
	struct id id;
	int r = dir_open_at(s->node_fd, ".", &dir);

	if (r < 0)
		return err_set(e, r, "read the mounts of the node");
	csl_arena_init(&a);
	while ((name = dir_next(dir)))
		if (name[0] == '.' || (id_from_hex(name, &id) &&
					  csl_store_mounts(s, s->node_id, name, &a)->n_mounts == 0))
			(void)unlinkat(s->node_fd, name, 0);
	csl_arena_done(&a);
	return 0;
}

int
csl_node_store_open(struct csl_store *s, struct err *e)
{
	int r = csl_dir_open(s->nodes_fd, s->node_id, &s->node_fd, e);

	if (r == 0)
		r = csl_lock_take(s->node_fd, &s->node_lock_fd, e);
	return r == 0 ? tidy_node(s, e) : r;
}
