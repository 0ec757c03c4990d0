// SPDX-License-Identifier: Apache-2.0
/* csi_main.c: the csi-helper, from its constant, and its loop. Runs in: csi-helper. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/ipc_protobuf.h"
#include "csi-helper/csi.h"
#include "csi-helper/csi_filter.h"
#include "csi-helper/csi_grpc.h"

static int
handle(const struct ipc_packet *p, struct err *e)
{
	CsiPluginCloseRep closed = CSI_PLUGIN_CLOSE_REP__INIT;
	struct err why = { 0 };
	int r;

	switch (p->type) {
	case IPC_HELLO_REQ:
		return proc_answer_hello(&csi_helper, p, e);
	case CSI_CALL_CANCEL_EV:
		csi_on_call_cancel(p->msg);
		return 0;
	case CSI_PLUGIN_OPEN_REQ:
		r = csi_on_plugin_open(p, p->msg, &why);
		break;
	case CSI_PLUGIN_CLOSE_REQ:
		r = csi_on_plugin_close(p->msg, &why);
		break;
	case CSI_CALL_REQ:
		r = csi_on_call(p, p->msg, &why);
		break;
	default:
		return err_say(e, -EPROTO, "%s has no handler", ipc_msg_info(p->type)->name);
	}
	return r == PROC_LATER
		   ? 0
		   : proc_answer(&csi_helper, p->type, p->serial, r, &closed, -1, &why, e);
}

/* Returns 1 if a request was handled, 0 if the supervisor is gone, or -errno. */
static int
receive(struct err *e)
{
	static struct ipc_packet packet;
	int r = ipc_recv(FD_IPC, IPC_CSI_HELPER, IPC_SUPERVISOR, &packet, 0, e);

	if (r <= 0)
		return r;
	r = handle(&packet, e);
	/* The packet may have held secrets of volumes. */
	explicit_bzero(packet.arena, packet.arena_used);
	ipc_packet_done(&packet);
	return r < 0 ? r : 1;
}

/* Runs one turn. Returns 1 to continue, 0 to end, or -errno. */
static int
turn(int event_fd, struct err *e)
{
	struct pollfd fds[] = { { .fd = FD_LINK, .events = POLLIN },
		{ .fd = FD_IPC, .events = POLLIN }, { .fd = event_fd, .events = POLLIN } };
	int timeout = csi_calls_timeout_ms(e), r;

	if (timeout == 0)
		return e->code;
	if (poll(fds, ELEMENTSOF(fds), timeout) < 0)
		return errno == EINTR ? 1 : err_set(e, -errno, "poll");
	if (fds[0].revents) /* a helper's link carries no data: any event on it means its end */
		return 0;
	if (fds[2].revents && (r = csi_calls_finish(e)) < 0)
		return r;
	return fds[1].revents ? receive(e) : 1;
}

static int
run(void *state, const struct proc_args *args)
{
	struct err e = { 0 };
	int r, event_fd = csi_grpc_start(&e);

	for (r = event_fd < 0 ? event_fd : 1; r > 0;)
		r = turn(event_fd, &e);
	if (r == -EPIPE || r == -ECONNRESET)
		r = 0;
	if (r < 0)
		log_error("%s", e.msg);
	/* _exit() instead of a return from main: gRPC's threads still run, and exit() would destroy
	 * objects that they use. */
	_exit(r < 0);
}

const struct proc_spec csi_helper = {
	.name = "csi-helper",
	.peer = IPC_CSI_HELPER,
	.no_new_privs = true,
	.filter = &csi_prog,
	.codec = &ipc_protobuf,
	.run = run,
};

int
main(int argc, char **argv)
{
	return proc_main(&csi_helper, argc, argv);
}
