// SPDX-License-Identifier: Apache-2.0
/* csi_main.c: the csi-helper, from its constant, and its loop. Runs in: csi-helper. */
#include <errno.h>
#include <unistd.h>

#include "common/ipc_protobuf.h"
#include "common/proc_many.h"
#include "csi-helper/csi.h"
#include "csi-helper/csi_filter.h"

static struct csi only;

static int
on_big_call(struct csi *csi, const struct ipc_packet *p, struct err *e)
{
	ProtobufCMessage *msg =
	    ipc_protobuf_take(&csi_call_req__descriptor, p->fds[0], CSI_REQ_BYTES_MAX, e);
	int r;

	if (!msg)
		return e->code;
	r = csi_on_call(csi, p, (const CsiCallReq *)(const void *)msg, e);
	protobuf_c_message_free_unpacked(msg, NULL);
	return r;
}

static int
handle_message(void *state, struct ipc_packet *p, struct err *e)
{
	CsiPluginCloseRep closed = CSI_PLUGIN_CLOSE_REP__INIT;
	struct err why = { 0 };
	int r;

	switch (p->type) {
	case CSI_CALL_CANCEL_EV:
		csi_on_call_cancel(state, p->msg);
		return 0;
	case CSI_PLUGIN_OPEN_REQ:
		r = csi_on_plugin_open(state, p, p->msg, &why);
		break;
	case CSI_PLUGIN_CLOSE_REQ:
		r = csi_on_plugin_close(state, p->msg, &why);
		break;
	case CSI_CALL_REQ:
		r = csi_on_call(state, p, p->msg, &why);
		break;
	case CSI_CALL_BIG_REQ:
		r = on_big_call(state, p, &why);
		break;
	default:
		return err_say(e, -EPROTO, "%s has no handler", ipc_msg_info(p->type)->name);
	}
	return r == PROC_LATER
		   ? 0
		   : proc_answer(&csi_helper, p->type, p->serial, r, &closed, -1, &why, e);
}

static int
prepare_turn(void *state, struct proc_turn *turn, struct err *e)
{
	struct csi *csi = state;

	turn->timeout_ms = csi_calls_timeout_ms(csi, e);
	turn->fds[turn->n++] = (struct pollfd){ .fd = csi->grpc.event_fd, .events = POLLIN };
	return turn->timeout_ms == 0 ? e->code : 1;
}

static int
handle_events(void *state, const struct proc_turn *turn, struct err *e)
{
	int r = turn->fds[0].revents ? csi_calls_finish(state, e) : 0;

	return r < 0 ? r : 1;
}

static const struct proc_many turns = {
	.spec = &csi_helper,
	.prepare = prepare_turn,
	.ready = handle_events,
	.handle = handle_message,
};

static int
run_csi_helper(void *state, const struct proc_args *args)
{
	struct csi *csi = state;
	struct err e = { 0 };
	int r = csi_grpc_start(&csi->grpc, &e);

	if (r < 0)
		log_error("%s", e.msg);
	/* _exit() instead of a return from main: gRPC's threads still run, and exit() would destroy
	 * objects that they use. */
	_exit(r < 0 ? 1 : proc_serve_many(&turns, csi));
}

const struct proc_spec csi_helper = {
	.name = "csi-helper",
	.peer = IPC_CSI_HELPER,
	.no_new_privs = true,
	.filter = &csi_prog,
	.codec = &ipc_protobuf,
	.state = &only,
	.run = run_csi_helper,
};

int
main(int argc, char **argv)
{
	proc_many_outlive_sigterm();
	return proc_main(&csi_helper, argc, argv);
}
