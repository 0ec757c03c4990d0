/* SPDX-License-Identifier: Apache-2.0 */
/* exec_stream.h: runs a command inside a task and exchanges Nomad's frames: output as JSON texts,
 * and input. The caller transports them, and may run the command on another node instead (far).
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_EXEC_STREAM_H
#define DROVER_SUPERVISOR_API_EXEC_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "common/id.h"
#include "model/engine/field.h"
#include "supervisor/core/sup.h"

struct session;

/* The operations of a command on another node, with es->far_arg as their state; each has the
 * meaning of the function below with its name. next sets es->status and error in the same way. */
struct exec_stream;
struct exec_far_ops {
	int (*next)(struct exec_stream *es, struct text *frame);
	void (*input)(struct exec_stream *es, const void *data, size_t len);
	void (*input_end)(struct exec_stream *es);
	void (*resize)(struct exec_stream *es, long rows, long columns);
	void (*beat)(struct exec_stream *es);
	bool (*has_room)(const struct exec_stream *es);
	void (*done)(struct exec_stream *es);
};

/* Embedded by its owner; members below the line are private. */
struct exec_stream {
	struct sup *sup;
	/* Called when there may be another frame, or room for input. May free the stream. */
	void (*wake)(struct exec_stream *es);

	const struct exec_far_ops *far; /* NULL: the command runs on this node */
	void *far_arg;

	/* --- */
	struct session *session;
	char *name; /* name of the command, for the message if it cannot be run */
	bool tty;
	bool reported; /* the reason why the command could not be run was sent */
	int status;    /* HTTP status of a failure */
	struct err error;
};

struct exec_wish {
	const struct id *alloc; /* NULL: the request has no valid alloc id */
	const char *alloc_text; /* the id as the request has it */
	const char *task;
	const char *job;    /* if not empty, the job that the alloc must belong to */
	const char *action; /* if not empty, the name of the task's action to run */
	char *const *command;
	size_t n_command;
	bool tty;
};

/* Starts the command. Returns 0, or an HTTP status with *e. Call exec_stream_done() in both cases.
 */
int exec_stream_open(
    struct sup *sup, struct exec_stream *es, const struct exec_wish *wish, struct err *e);
void exec_stream_done(struct exec_stream *es);

/* Returns 1 with the next frame appended, 0 if there is none now, -1 at the end; then es->status is
 * 0 for success, otherwise es->error is set too. */
int exec_stream_next(struct exec_stream *es, struct text *frame);

/* Passes on input. The owner must not read more while there is no room. */
void exec_stream_input(struct exec_stream *es, const void *data, size_t len);
void exec_stream_input_end(struct exec_stream *es);
void exec_stream_resize(struct exec_stream *es, long rows, long columns);
/* To be called for a heartbeat of the user. */
void exec_stream_beat(struct exec_stream *es);
bool exec_stream_has_room(const struct exec_stream *es);

#endif
