// SPDX-License-Identifier: Apache-2.0
/* file_main.c: the file-helper, from its constant. Runs in: file-helper. */
#include <errno.h>
#include <linux/capability.h>

#include "common/privs.h"
#include "file-helper/file.h"
#include "file-helper/file_filter.h"

static const struct proc_spec file_spec;
static struct file file = { .workers.spec = &file_spec };

static int
handle_request(void *state, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	struct file *f = state;

	f->workers.request = p;
	switch (p->type) {
#define FILE_CALL(NAME, call, ...)                                                                 \
	case NAME##_REQ:                                                                           \
		return file_on_##call(f, p->msg, rep, ret_fd, e);
#include "proto/ipc_msgs.def"
	}
	return -EPROTO;
}

static void
collect(void *state)
{
	struct file *f = state;

	workers_collect(&f->workers);
	file_trash_empty(f);
}

static int
next_timeout(void *state)
{
	const struct file *f = state;

	return workers_timeout(&f->workers);
}

static const struct proc_spec file_spec = {
	.name = "file-helper",
	.peer = IPC_FILE_HELPER,
	/* CHOWN to give directories away; DAC_OVERRIDE and FOWNER to read and remove files of
	   others, also in sticky directories. */
	.caps = CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER),
	.no_new_privs = true,
	.lock_securebits = true,
	.filter = &file_prog,
	.handle = handle_request,
	.state = &file,
	.init = file_roots_open,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&file_spec, argc, argv);
}
