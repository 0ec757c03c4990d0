// SPDX-License-Identifier: Apache-2.0
/* mnt_release.c: what mount-helper does before an alloc's directories are removed. Runs in:
 * mount-helper, as root. Asked by: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/crash.h"
#include "common/mountinfo.h"
#include "mount-helper/mnt.h"

/*
 * drover mounts nothing below an alloc; somebody else may have. Its volumes are below
 * csi/…/per-alloc/<alloc>/. What is in the trash already has more than the id for its name.
 */
static int
refuse_mounts(struct mnt *m, const char *alloc, struct err *e)
{
	const char *path;
	int r = mnt_mounts_look(m, &path, e);

	if (r < 0)
		return r;
	for (; *path; path += strlen(path) + 1)
		for (const char *at = path; (at = strstr(at, alloc)); at++)
			if (mountinfo_below(at, alloc))
				return err_say(e, -EBUSY,
				    "alloc %s cannot be removed: %s/%.256s is still mounted", alloc,
				    m->data_dir, path);
	return 0;
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
	    (r = refuse_mounts(m, alloc, e)) < 0 || (r = mnt_volume_alloc_remove(m, alloc, e)) < 0)
		return r;
	mnt_quota_drop(m, alloc);
	CRASH_POINT(MNT_AFTER_RELEASE);
	return 0;
}
