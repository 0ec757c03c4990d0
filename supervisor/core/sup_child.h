/* SPDX-License-Identifier: Apache-2.0 */
/* sup_child.h: calls to helpers, their answers and deadlines. When a helper dies, the launcher
 * sends a new socket, and calls that may be repeated are sent again. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_CHILD_H
#define DROVER_SUPERVISOR_CORE_SUP_CHILD_H

#include <stdint.h>

#include "common/ipc.h"
#include "supervisor/core/histogram.h"
#include "supervisor/core/sup.h"

/* Called exactly once at the end of a call, never from within child_call(). r is 0 with rep, or a
 * negative errno with *e: the helper's own error (IPC_ERROR_REP), -ETIMEDOUT, or -ECONNRESET if the
 * helper died and the call may not be repeated. rep is valid until the callback returns. fd is the
 * reply's descriptor (-1: none); the callback owns it. */
typedef void call_cb(
    struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e);

enum call_flag {
	CALL_REPEAT =
	    1, /* idempotent: repeated to the helper's successor, sent at most three times */
	CALL_ONCE = 0, /* not to be repeated */
	CALL_TELL = 2, /* used by child_tell() only */
};

int children_new(struct sup *sup, struct err *e);
void children_free(struct sup *sup);

/* Encodes msg now and sends it after this turn's commit. Takes over fd (-1: none). Returns a handle
 * for child_call_cancel(), never 0. Aborts if the table does not permit the message, because that
 * is a bug of this process. */
uint64_t child_call(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg, int fd,
    unsigned timeout_ms, unsigned flags, call_cb *cb, void *arg);
/* Asks a helper for nothing but an answer, after the requests before it. A helper that is started
 * on demand is started. */
uint64_t child_ping(struct sup *sup, enum ipc_peer to, call_cb *cb, void *arg);
/* The same for a message without answer, X_EV. */
void child_tell(struct sup *sup, enum ipc_peer to, unsigned type, const void *msg);

/* Called for a message that a helper sends by itself, X_EV; with NULL when the helper has died with
 * all its state. Returns -EPROTO for an invalid message, and the helper is cut off. */
typedef int child_event_cb(struct sup *sup, struct ipc_packet *p);
void child_listen(struct sup *sup, enum ipc_peer from, child_event_cb *cb);

/* Provides the body of the answer to a beat, called after the turn's commit; it must stay valid
 * until the next turn. NULL: answers have no body. */
typedef void child_beat_cb(struct sup *sup, uint8_t **ret_data, size_t *ret_len);
void child_answer_beats(struct sup *sup, child_beat_cb *cb);

/* Cancels a call: its callback is not called, but the helper may still execute it. Ignores 0 and
 * ended calls. */
void child_call_cancel(struct sup *sup, uint64_t call);
/* Cancels a call to a concurrent helper without calling back. Returns its arg, which is now the
 * caller's, or NULL if the call has already ended. */
void *child_call_drop(struct sup *sup, uint64_t call);
/* Returns true if calls to this helper are unanswered. */
bool child_busy(struct sup *sup, enum ipc_peer to);
/* Lets a helper that is started on demand exit, unless calls are unanswered; the next call starts
 * another one. */
void child_let_go(struct sup *sup, enum ipc_peer who);
/* Return how often the helper was started (0: never), and its process id, for the API. */
uint32_t child_generation(struct sup *sup, enum ipc_peer to);
uint32_t child_pid(struct sup *sup, enum ipc_peer to);
/* For the metrics: what was sent to a helper and came from it. */
struct child_counts {
	uint64_t packets_in, packets_out, bytes_out;
	uint64_t failures;           /* calls that ended with an error */
	struct histogram round_trip; /* of answered calls, from sending to the answer */
};
/* Returns NULL if this is no helper. The calls that are not sent yet, and those that are
 * unanswered. */
const struct child_counts *child_counts(
    const struct sup *sup, enum ipc_peer to, unsigned *ret_waiting, unsigned *ret_sent);
/* Returns how often the helper ended without being let go, and the time (CLOCK_REALTIME) of the
 * last end. */
uint32_t child_losses(struct sup *sup, enum ipc_peer to, int64_t *ret_last_ns);

#endif
