// SPDX-License-Identifier: Apache-2.0
/* mnt_main.c: the mount-helper, from its constant. Runs in: mount-helper, as root. */
#include "mount-helper/mnt.h"

#include <errno.h>
#include <linux/capability.h>

#include "common/privs.h"
#include "mount-helper/mnt_filter.h"

static struct mnt mnt = { .workers.spec = &mnt_spec };

static int
handle_request(void *state, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;

	m->workers.request = p;
	switch (p->type) {
#define MNT_CALL(NAME, call, ...)                                                                  \
	case NAME##_REQ:                                                                           \
		return mnt_on_##call(m, p->msg, rep, ret_fd, e);
#include "proto/ipc_msgs.def"
	}
	return -EPROTO;
}

static void
collect(void *state)
{
	struct mnt *m = state;

	workers_collect(&m->workers);
}

static int
next_timeout(void *state)
{
	const struct mnt *m = state;

	return workers_timeout(&m->workers);
}

const struct proc_spec mnt_spec = {
	.name = "mount-helper",
	.peer = IPC_MOUNT_HELPER,
	.stays_root = true, /* PRIVSEP.md, "mount-helper" */
	.caps = CAP_BIT(SYS_ADMIN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER),
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &mnt_prog,
	.handle = handle_request,
	.state = &mnt,
	.init = mnt_roots_open,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&mnt_spec, argc, argv);
}
