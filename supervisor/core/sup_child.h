/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup_child.h: the supervisor's ends of the star: calls to helpers, their answers, deadlines, and
 * what happens when a helper dies (the launcher sends a new end; calls that may be repeated are).
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CORE_SUP_CHILD_H
#define DROVER_SUPERVISOR_CORE_SUP_CHILD_H

#include <stdint.h>

#include "common/ipc.h"
#include "supervisor/core/sup.h"

/*
 * The end of a call, exactly once, never from within child_call(). r is 0 with rep, or a negative
 * errno with *e: the helper's own (IPC_ERROR_REP), -ETIMEDOUT, or -ECONNRESET when the helper died
 * and the call may not be repeated. rep lives until the callback returns. fd is the reply's
 * descriptor (-1: none): the callback owns it.
 */
typedef void call_cb(
    struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e);

enum call_flag {
	CALL_REPEAT =
	    1, /* idempotent: sent again to the helper's successor, at most three times in all */
	CALL_ONCE = 0, /* the opposite */
	CALL_TELL = 2, /* child_tell()'s own */
};

int children_new(struct sup *sup, struct err *e);
void children_free(struct sup *sup);

/*
 * Packs msg now and sends it after this turn's commit. fd (-1: none) is taken over. Returns a
 * handle for child_call_cancel(), never 0. A message that the table does not permit aborts: that is
 * a bug here.
 */
uint64_t child_call(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg, int fd,
    unsigned timeout_ms, unsigned flags, call_cb *cb, void *arg);
/* The same for a message without an answer, X_EV. */
void child_tell(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg);

/* What a helper says by itself, X_EV; NULL: it is gone, and with it all that it held. Returns
 * -EPROTO for nonsense: it is cut off. */
typedef int child_event_cb(struct sup *sup, struct ipc_packet *p);
void child_listen(struct sup *sup, enum ipc_peer from, child_event_cb *cb);

/* The body of the answer to a beat of heartbeat, asked for after the turn's commit; it lives until
 * the next turn. NULL: answers have none. */
typedef void child_beat_cb(struct sup *sup, uint8_t **ret_data, size_t *ret_len);
void child_answer_beats(struct sup *sup, child_beat_cb *cb);

/* The callback will not be called; what the call does in the helper still happens. 0 and ended
 * calls are ignored. */
void child_call_cancel(struct sup *sup, uint64_t call);
/* The same for a helper whose calls run side by side; forgets it, and returns its arg for the
 * caller to free. NULL: it has ended. */
void *child_call_drop(struct sup *sup, uint64_t call);
/* Is anything unanswered at this helper? */
bool child_busy(struct sup *sup, enum ipc_peer to);
/* A helper that is started when it is needed ends, unless something is unanswered; the next call
 * starts another. */
void child_let_go(struct sup *sup, enum ipc_peer who);
/* Counts helper starts (1: the first), for the API. 0: not started. */
uint32_t child_generation(struct sup *sup, enum ipc_peer to);
uint32_t child_pid(struct sup *sup, enum ipc_peer to);

#endif
