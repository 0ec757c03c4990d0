// SPDX-License-Identifier: Apache-2.0
/* mnt_roots.c: opens the roots of all paths. Runs in: mount-helper. */
#include <fcntl.h>

#include "common/config_map.h"
#include "common/fd.h"
#include "mount-helper/mnt.h"

/* The launcher has made all of them with their owner and mode. */
static const char *const places[MNT_PLACES] = {
	[MNT_PLACE_ALLOC] = "alloc",
	[MNT_PLACE_CSI] = "csi",
	[MNT_PLACE_SOCK] = "csi/sock",
};

int
mnt_roots_open(void *state, const struct proc_args *args, struct err *e)
{
	struct mnt *m = state;
	int r;

	m->args = args;
	m->policy = policy_map(FD_CONFIG, e);
	if (!m->policy)
		return e->code;
	for (size_t i = 0; i < MNT_PLACES; i++) {
		r = m->root_fds[i] = fd_open_beneath(FD_DATA, places[i], O_RDONLY | O_DIRECTORY, 0);
		if (r < 0)
			return err_set(e, r, "open %s/%s", args->data_dir, places[i]);
	}
	return 0;
}
