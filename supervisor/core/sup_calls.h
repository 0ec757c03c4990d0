/* SPDX-License-Identifier: Apache-2.0 */
/* sup_calls.h: typed stubs over child_call(), generated from proto/ipc_msgs.def:
 * exec_call_task_start() for EXEC_CALL(EXEC_TASK_START, task_start, …). A stub takes over the
 * request's descriptor, if it has one. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_CALLS_H
#define DROVER_SUPERVISOR_CORE_SUP_CALLS_H

#include "proto/check_helper.pb-c.h"
#include "proto/csi_helper.pb-c.h"
#include "proto/heartbeat.pb-c.h"
#include "supervisor/core/sup_child.h"

/* By the number of the request's descriptors. */
#define SUP_FD_PARAMETER_0
#define SUP_FD_PARAMETER_1 int fd,
#define SUP_FD_0           -1
#define SUP_FD_1           fd
#define SUP_STUB(name, type, to, message, fds, timeout_ms, again)                                  \
	static inline uint64_t name(                                                               \
	    struct sup *sup, const message *msg, SUP_FD_PARAMETER_##fds call_cb *cb, void *arg)    \
	{                                                                                          \
		return child_call(                                                                 \
		    sup, IPC_##to, type, msg, SUP_FD_##fds, timeout_ms, CALL_##again, cb, arg);    \
	}
#define IPC_CALL(NAME, prefix, call, no, to, req_fds, rep_fds, timeout_ms, deadline_ms, again)     \
	SUP_STUB(prefix##_call_##call, NAME##_REQ, to, struct prefix##_##call##_req, req_fds,      \
	    timeout_ms, again)
#define PB_CALL(NAME, prefix, call, Message, no, to, req_bytes, req_fds, rep_bytes, rep_fds,       \
    timeout_ms, again)                                                                             \
	SUP_STUB(prefix##_call_##call, NAME##_REQ, to, Message##Req, req_fds, timeout_ms, again)
#include "proto/ipc_msgs.def"
#undef SUP_STUB

#endif
