// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_mounts.c: what is mounted below the data directory, read again when the mounts of this
 * machine have changed, which poll(2) of mountinfo tells (proc(5)): reading all of it for each
 * removal would make that as slow as the machine has mounts. Runs in: mount-helper, as root.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/mountinfo.h"
#include "mount-helper/mnt.h"

/* The text shrinks in place to the paths below the data directory, each with its NUL, and an empty
 * one. Returns its length. */
static size_t
keep_own(const struct mnt *m, char *text)
{
	char *to = text, *at = text;
	struct mountinfo mi;
	int r;

	while ((r = mountinfo_next(&at, &mi)) != 0) {
		const char *rest = r < 0 ? NULL : mountinfo_below(mi.target, m->data_dir);
		size_t len = rest ? strlen(rest) : 0;

		if (len == 0)
			continue;
		memmove(to, rest, len + 1);
		to += len + 1;
	}
	*to = '\0';
	return (size_t)(to - text) + 1;
}

int
mnt_mounts_look(struct mnt *m, const char **ret, struct err *e)
{
	struct pollfd p = { .fd = m->mounts_fd, .events = POLLPRI };
	char *text = NULL, *small;
	int r;

	/* The descriptor is opened before the first reading: a change during that is one to poll.
	 */
	if (m->mounts_fd < 0)
		m->mounts_fd = p.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (!m->mounts || p.fd < 0 || poll(&p, 1, 0) != 0) {
		r = mountinfo_read(&text);
		if (r < 0)
			return err_set(e, r, "read the mounts of this machine");
		small = realloc(text, keep_own(m, text));
		free(m->mounts);
		m->mounts = small ?: text;
	}
	*ret = m->mounts;
	return 0;
}

int
mnt_on_mount_list(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	const char *paths, *at;
	int r = mnt_mounts_look(state, &paths, e);

	if (r < 0)
		return r;
	for (at = paths; *at; at += strlen(at) + 1)
		((MntMountListRep *)(void *)rep)->count++;
	*ret_fd = fd_memfd_sealed("mounts", paths, (size_t)(at - paths));
	return *ret_fd < 0 ? err_set(e, *ret_fd, "list the mounts") : 0;
}
