// SPDX-License-Identifier: Apache-2.0
/* mount_proof.c: takes and compares the identity of a mount. Runs in: mount-helper, executor. */
#include "common/mount_proof.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

int
mount_identity_take(int fd, struct mount_proof *ret)
{
	/*
	 * Requests both kinds of mount id: an older kernel ignores the bit that it does not know,
	 * and a newer one returns the unique id.
	 */
	const unsigned want =
	    STATX_TYPE | STATX_INO | STATX_BTIME | STATX_MNT_ID | STATX_MNT_ID_UNIQUE;
	const int flags = AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
	struct mount_proof p = { 0 };
	struct statx st = { 0 };
	bool is_mount;

	if (statx(fd, "", flags, want, &st) < 0)
		return -errno;
	is_mount = (st.stx_attributes_mask & st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	p.is_block = S_ISBLK(st.stx_mode);
	if (!is_mount && !p.is_block)
		return -ENODEV;
	if (p.is_block) {
		p.rdev_major = st.stx_rdev_major;
		p.rdev_minor = st.stx_rdev_minor;
	}
	p.mnt_id = st.stx_mnt_id;
	p.mnt_id_unique = (st.stx_mask & STATX_MNT_ID_UNIQUE) != 0;
	p.dev_major = st.stx_dev_major;
	p.dev_minor = st.stx_dev_minor;
	p.ino = st.stx_ino;
	if (st.stx_mask & STATX_BTIME) {
		p.btime_sec = st.stx_btime.tv_sec;
		p.btime_nsec = st.stx_btime.tv_nsec;
	}
	*ret = p;
	return is_mount;
}

int
mount_proof_take(int fd, struct mount_proof *ret)
{
	struct mount_proof p;
	struct statfs fs;
	/* The root of a FUSE file system has another inode number until it is asked for it. */
	int r = fstatfs(fd, &fs) < 0 ||
		statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &(struct statx){ 0 }) < 0;

	r = r ? -errno : mount_identity_take(fd, &p);
	if (r < 0)
		return r;
	p.fs_type = (uint64_t)fs.f_type;
	p.fs_id = (uint64_t)(uint32_t)fs.f_fsid.__val[1] << 32 | (uint32_t)fs.f_fsid.__val[0];
	p.fs_flags = (uint64_t)fs.f_flags;
	*ret = p;
	return 0;
}

enum exe_proof
mount_identity_compare(const struct mount_proof *promised, const struct mount_proof *found)
{
	if (promised->mnt_id_unique != found->mnt_id_unique || promised->mnt_id != found->mnt_id)
		return EXE_PROOF_MOUNT_ID;
	if (promised->is_block != found->is_block || promised->rdev_major != found->rdev_major ||
	    promised->rdev_minor != found->rdev_minor)
		return EXE_PROOF_NODE;
	if (promised->dev_major != found->dev_major || promised->dev_minor != found->dev_minor)
		return EXE_PROOF_DEVICE;
	if (promised->ino != found->ino)
		return EXE_PROOF_INODE;
	if (promised->btime_sec != found->btime_sec || promised->btime_nsec != found->btime_nsec)
		return EXE_PROOF_BIRTH;
	return EXE_PROOF_NONE;
}

enum exe_proof
mount_proof_compare(const struct mount_proof *promised, const struct mount_proof *found)
{
	enum exe_proof differs = mount_identity_compare(promised, found);

	if (differs != EXE_PROOF_NONE)
		return differs;
	if (promised->fs_type != found->fs_type || promised->fs_id != found->fs_id ||
	    promised->fs_flags != found->fs_flags)
		return EXE_PROOF_FS;
	return EXE_PROOF_NONE;
}
