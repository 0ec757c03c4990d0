/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h: the supervisor's side of the link to the servers: calls, beats, streams at the servers,
 * and what servers ask. The
 * process heartbeat holds the connections; here are methods and bodies. A body is one msgpack
 * object, whole, as the servers have it; this looks into none. Nothing leaves before the turn's
 * commit. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_LINK_LINK_H
#define DROVER_SUPERVISOR_CLUSTER_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "supervisor/core/sup.h"

#define LINK_BODY_MAX   (64u << 20) /* of a call and its answer */
#define LINK_OBJECT_MAX (1u << 20)  /* of what a server says on a stream that it opened */
#define LINK_FRAME_MAX  (16u << 20) /* of one on a stream that was asked for */
#define LINK_BEAT_MAX   15360

/* --- calls --- */

enum link_flag {
	LINK_REPEAT = 1, /* a read, or a write that may come twice: sent to the next server when one
			    is lost in the middle of its answer */
};

/*
 * The end of a call, exactly once, never from within link_call(). r is 0 with the answer's body,
 * which lives until the callback returns, or negative with *e:
 *   -EREMOTEIO     a server answered with an error; e->msg is its text and nothing else
 *   -ETIMEDOUT     no answer within the deadline
 *   -ENETUNREACH   no server within the deadline; e->msg says what is wrong with each
 *   -ECONNRESET    the server or heartbeat was lost after the request was sent, and no LINK_REPEAT
 *   -EMSGSIZE      a body beyond LINK_BODY_MAX;  -EBUSY  too many calls
 */
typedef void link_cb(
    struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e);

/*
 * Calls a method ("Node.Register") at the current server. body is copied. Until the deadline it
 * waits for a server, and "No cluster leader" is tried again; for a blocking query that is its
 * MaxQueryTime and a sixteenth plus 20 s. Returns a handle for link_cancel(), never 0.
 */
uint64_t link_call(struct sup *sup, const char *method, const void *body, size_t len,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg);
/* The callback is not called; what the call did at a server is done. 0 and ended calls are ignored.
 */
void link_cancel(struct sup *sup, uint64_t call);

/* --- what the source is asked and told --- */

struct link_events {
	/*
	 * The arguments of Node.UpdateStatus, at most LINK_BEAT_MAX bytes in memory that lives
	 * until the next turn; *ret_len 0 while the node is not registered. heartbeat asks when a
	 * beat is due: HeartbeatTTL after the last, soon after each answered Node.Register (it
	 * looks into these two answers), and at once after a change of server.
	 */
	void (*beat)(struct sup *sup, const void **ret_body, size_t *ret_len);
	/* What became of it, as for a call. 0: the lease has moved. */
	link_cb *beat_done; /* arg is NULL */
	/* Another server is in use; "": none, *why says why. Calls that wait anyway may be tried
	 * now. */
	void (*server_changed)(struct sup *sup, const char *server, const char *why);
};

/*
 * A request of a server. Called with its argument, body; the stream's number is good until it is
 * answered or closed here, or on_gone(). Functions that take a stream ignore one that is no more.
 */
struct link_method {
	const char *name; /* "Allocations.Signal"; NULL ends the table */
	bool streaming;
	void (*fn)(struct sup *sup, uint64_t stream, const void *body, size_t len);
};

/* Of a streaming method, or of one that is not answered at once. Each may be NULL. */
struct link_stream_ops {
	/* An object that came after the argument. */
	void (*on_input)(struct sup *sup, void *arg, uint64_t stream, const void *body, size_t len);
	/* Everything written has left, and there is room again. */
	void (*on_room)(struct sup *sup, void *arg, uint64_t stream);
	/* The server, or its user, has gone; the stream is no more. The only sign of a cancel. */
	void (*on_gone)(struct sup *sup, void *arg, uint64_t stream);
	/* Of one that was asked for, in the place of on_gone: nothing more comes. error NULL: the
	 * server has ended it; else it refused the method, or was lost. */
	void (*on_end)(struct sup *sup, void *arg, uint64_t stream, const char *error);
};

/* Called in the method's place, which it calls: at once, or later between link_stream_hold() and
 * link_stream_go_on(); or it ends the stream. */
typedef void link_gate(struct sup *sup, const struct link_method *method, uint64_t stream,
    const void *body, size_t len);

/* With servers in the configuration only. All are kept; methods that are not there are answered
 * with the error that a Go server gives. */
int link_new(struct sup *sup, const struct link_events *events, const struct link_method *methods,
    link_gate *gate, struct err *e);
void link_free(struct sup *sup);

/*
 * Opens a stream of a streaming method at the server in use, with its argument, body (copied). What
 * the server says comes as on_input(); more is said by link_stream_write(), and
 * link_stream_close() tells the server that nobody listens any more. Its number, or 0: there are
 * too many. No function of ops is called within.
 */
uint64_t link_stream_ask(struct sup *sup, const char *method, const void *body, size_t len,
    const struct link_stream_ops *ops, void *arg);

/* Objects that come after the argument are kept, up to LINK_OBJECT_MAX, until ..._go_on().
 * Meanwhile the server may send what it was allowed already, as while a stream is paused. */
void link_stream_hold(struct sup *sup, uint64_t stream);
void link_stream_go_on(struct sup *sup, uint64_t stream);
void link_stream_watch(
    struct sup *sup, uint64_t stream, const struct link_stream_ops *ops, void *arg);
/* Ends a stream that is not streaming: error (NULL: none) or body. Copied. */
void link_answer(struct sup *sup, uint64_t stream, const char *error, const void *body, size_t len);
/* Of a streaming one: bytes of whole objects, copied. What does not fit into link_stream_room() is
 * kept here. */
void link_stream_write(struct sup *sup, uint64_t stream, const void *data, size_t len);
/* Bytes that leave at once; 0 while something is kept. */
size_t link_stream_room(struct sup *sup, uint64_t stream);
/* While it is paused, what still comes is what the server was allowed already: 256 KiB. */
void link_stream_pause(struct sup *sup, uint64_t stream, bool pause);
/* After what was written has left. on_gone() is not called. */
void link_stream_close(struct sup *sup, uint64_t stream);

/* --- for the API --- */

/* The server in use ("": none), and the i-th that is known (NULL behind the last). */
const char *link_server(const struct sup *sup);
const char *link_server_known(const struct sup *sup, size_t i);

#endif
