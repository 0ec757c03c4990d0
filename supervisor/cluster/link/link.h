/* SPDX-License-Identifier: Apache-2.0 */
/* link.h: the supervisor's side of the link to the servers: calls, beats, streams, and requests of
 * servers. The process heartbeat holds the connections; this interface has methods and bodies. A
 * body is one complete msgpack object, which is not decoded here. Nothing is sent before the turn's
 * commit. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_LINK_LINK_H
#define DROVER_SUPERVISOR_CLUSTER_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/core/sup.h"
#include "supervisor/source/source_api.h"

/* Limits in bytes. */
#define LINK_BODY_MAX   (64u << 20) /* largest body of a call and its answer */
#define LINK_OBJECT_MAX (1u << 20)  /* largest object on a stream that a server opened */
#define LINK_FRAME_MAX  (16u << 20) /* largest object on a stream that this node opened */
#define LINK_BEAT_MAX   15360       /* largest body of a beat */

/* Calls. */

enum link_flag {
	/* For reads and idempotent writes: the call is sent to the next server if a server is lost
	 * before its whole answer has arrived. */
	LINK_REPEAT = 1,
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

/* Calls a method ("Node.Register") at the current server. body is copied. Until the deadline the
 * call waits for a server and retries after "No cluster leader"; the deadline of a blocking query
 * is its MaxQueryTime and a sixteenth plus 20 s. Returns a handle for link_cancel(), never 0. */
uint64_t link_call(struct sup *sup, const char *method, const void *body, size_t len,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg);
/* Cancels a call without calling back; its effects at a server remain. Ignores 0 and ended calls.
 */
void link_cancel(struct sup *sup, uint64_t call);

/* Callbacks of the source. */

struct link_events {
	/*
	 * The arguments of Node.UpdateStatus, at most LINK_BEAT_MAX bytes in memory that lives
	 * until the next turn; *ret_len 0 while the node is not registered. heartbeat asks when a
	 * beat is due: HeartbeatTTL after the last beat, soon after each answered Node.Register (it
	 * reads the answers of both), and at once after a change of server.
	 */
	void (*beat)(struct sup *sup, const void **ret_body, size_t *ret_len);
	/* The result of the beat, as for a call. 0: the lease was extended. */
	link_cb *beat_done; /* arg is NULL */
	/* The current server has changed; "" means none, and *why is the reason. Waiting calls may
	 * be retried now. */
	void (*server_changed)(struct sup *sup, const char *server, const char *why);
};

/* A request of a server, called with its argument in body. The stream's number is valid until the
 * stream is answered, closed, or on_gone() is called. Functions that take a stream ignore a stale
 * number. */
struct link_method {
	const char *name; /* "Allocations.Signal"; NULL ends the table */
	bool streaming;
	void (*fn)(struct sup *sup, uint64_t stream, const void *body, size_t len);
	enum acl_need need; /* for the gate: the permission that the request needs */
};

/* For a streaming method, or one that is answered later. Each may be NULL. */
struct link_stream_ops {
	/* An object came after the argument. */
	void (*on_input)(struct sup *sup, void *arg, uint64_t stream, const void *body, size_t len);
	/* All written bytes were sent, and there is room again. */
	void (*on_room)(struct sup *sup, void *arg, uint64_t stream);
	/* The server or its user has ended the stream, which is now invalid. A cancelled request is
	 * reported only in this way. */
	void (*on_gone)(struct sup *sup, void *arg, uint64_t stream);
	/* For a stream that this node opened, instead of on_gone: the stream has ended. error is
	 * NULL if the server ended it; otherwise the server refused the method or was lost. */
	void (*on_end)(struct sup *sup, void *arg, uint64_t stream, const char *error);
};

/* Called instead of the method. It calls the method at once, or later, between link_stream_hold()
 * and link_stream_go_on(), or ends the stream. */
typedef void link_gate(struct sup *sup, const struct link_method *method, uint64_t stream,
    const void *body, size_t len);

/* A node of servers has a source that begins with this: sup->source is &src->base. */
struct link_source {
	struct source base;
	struct link *link;
};

/* Called only with servers in the configuration. The pointers must stay valid. Unknown methods are
 * answered with the error of a Go server. */
void link_new(struct link_source *src, const struct link_events *events,
    const struct link_method *methods, link_gate *gate);
void link_free(struct link_source *src);

/* Opens a stream of a streaming method at the current server, with its argument in body (copied).
 * Objects of the server come by on_input(); link_stream_write() sends more, and link_stream_close()
 * ends the stream. Returns its number, or 0 if there are too many streams. Does not call ops. */
uint64_t link_stream_ask(struct sup *sup, const char *method, const void *body, size_t len,
    const struct link_stream_ops *ops, void *arg);

/* Buffers objects that come after the argument, up to LINK_OBJECT_MAX, until link_stream_go_on().
 * The server can still send what its window allows, as while a stream is paused. */
void link_stream_hold(struct sup *sup, uint64_t stream);
void link_stream_go_on(struct sup *sup, uint64_t stream);
void link_stream_watch(
    struct sup *sup, uint64_t stream, const struct link_stream_ops *ops, void *arg);
/* Answers a method that is not streaming, with error or body; both are copied. */
void link_answer(struct sup *sup, uint64_t stream, const char *error, const void *body, size_t len);
/* Sends bytes of complete objects on a streaming method; they are copied. Bytes beyond
 * link_stream_room() are buffered. */
void link_stream_write(struct sup *sup, uint64_t stream, const void *data, size_t len);
/* Returns how many bytes can be sent at once; 0 while bytes are buffered. */
size_t link_stream_room(struct sup *sup, uint64_t stream);
/* While paused, the server can still send what its window allows: 256 KiB. */
void link_stream_pause(struct sup *sup, uint64_t stream, bool pause);
/* Closes the stream after all written bytes were sent. on_gone() is not called. */
void link_stream_close(struct sup *sup, uint64_t stream);

/* For the API. */

/* Return the current server ("": none), and the i-th known server (NULL after the last). */
const char *link_server(const struct sup *sup);
const char *link_server_known(const struct sup *sup, size_t i);
const struct source_link *link_counts(const struct sup *sup);
/* Returns the time (CLOCK_REALTIME) since when no server is reachable, with the reason ("": not
 * known yet); 0 if a server is in use. */
int64_t link_lost_since(const struct sup *sup, const char **ret_why);

#endif
