// SPDX-License-Identifier: Apache-2.0
/* mnt_release.c: what mount-helper does before an alloc's directories are removed. Runs in:
 * mount-helper, as root. Asked by: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mountinfo.h"
#include "mount-helper/mnt.h"

/* alloc/<alloc>/<task>/secrets: a raw_exec task's, mounted by its executor. */
static bool
is_secrets(const char *path, const char *alloc)
{
	const char *task = mountinfo_below(path, "alloc");
	const char *name = task ? mountinfo_below(task, alloc) : NULL;

	name = name ? strchr(name, '/') : NULL;
	return name && strcmp(name, "/secrets") == 0;
}

static int
unmount(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char dir[PATH_MAX], at[NAME_MAX + 32];
	cleanup_close int fd = -1;

	(void)snprintf(dir, sizeof dir, "%.*s", (int)(name - 1 - path), path);
	fd = fd_open_beneath(FD_DATA, dir, O_PATH | O_DIRECTORY, 0);
	(void)snprintf(at, sizeof at, "/proc/self/fd/%d/%s", fd, name);
	return fd < 0 ? fd : umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

/*
 * drover mounts nothing else below an alloc; somebody else may have. Its volumes are below
 * csi/…/per-alloc/<alloc>/. What is in the trash already has more than the id for its name.
 */
static int
release_mounts(struct mnt *m, const char *alloc, bool refuse, struct err *e)
{
	const char *path;
	int r = mnt_mounts_look(m, &path, e);

	for (; r >= 0 && *path; path += strlen(path) + 1) {
		if (is_secrets(path, alloc)) {
			r = unmount(path);
			if (r < 0)
				return err_set(e, r, "unmount %s/%.256s", m->data_dir, path);
			continue;
		}
		for (const char *at = path; refuse && (at = strstr(at, alloc)); at++)
			if (mountinfo_below(at, alloc))
				return err_say(e, -EBUSY,
				    "alloc %s cannot be removed: %s/%.256s is still mounted", alloc,
				    m->data_dir, path);
	}
	return r;
}

int
mnt_secrets_unmount(struct mnt *m, const char *alloc, struct err *e)
{
	return release_mounts(m, alloc, false, e);
}

int
mnt_on_alloc_release(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntAllocReleaseReq *req = (const MntAllocReleaseReq *)(const void *)p->msg;
	char alloc[ID_UUID_SIZE];
	int r;

	if ((r = id_alloc_read(req->alloc.data, req->alloc.len, alloc, e)) < 0 ||
	    (r = release_mounts(m, alloc, true, e)) < 0 ||
	    (r = mnt_volume_alloc_remove(m, alloc, e)) < 0)
		return r;
	mnt_quota_drop(m, alloc);
	CRASH_POINT(MNT_AFTER_RELEASE);
	return 0;
}
