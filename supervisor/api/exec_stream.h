/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_stream.h: a command inside a task as Nomad's frames: what it says as
 * JSON texts, what it is told. Where they go is the caller's; where the command runs, too, if not
 * here. Runs in: supervisor.
 */
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

/* A command elsewhere, with es->far_arg as its own; each is the function below of that name. next
 * sets es->status and error as that does. */
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

/* Embedded; what is below the line is its own. */
struct exec_stream {
	struct sup *sup;
	/* There may be another frame, or room for input again. May free it. */
	void (*wake)(struct exec_stream *es);

	const struct exec_far_ops *far; /* NULL: it runs here */
	void *far_arg;

	/* --- */
	struct session *session;
	char *name; /* of the command, for whom it cannot be run */
	bool tty, told_why;
	int status; /* of a failure: as HTTP has it */
	struct err error;
};

struct exec_wish {
	const struct id *alloc; /* NULL: the request names none that could be one */
	const char *alloc_text; /* as the request has it */
	const char *task;
	const char *job;    /* if not empty, the alloc's must be it */
	const char *action; /* if not empty, the command is the task's of that name */
	char *const *command;
	size_t n_command;
	bool tty;
};

/* Begins it: 0, or an HTTP status with *e. Ended with exec_stream_done() in either case. */
int exec_stream_open(
    struct sup *sup, struct exec_stream *es, const struct exec_wish *wish, struct err *e);
void exec_stream_done(struct exec_stream *es);

/* 1: frame has the next one appended; 0: none just now; -1: the end, es->status says how (0:
 * well, else es->error too). */
int exec_stream_next(struct exec_stream *es, struct text *frame);

/* Input. An owner reads no more while there is no room. */
void exec_stream_input(struct exec_stream *es, const void *data, size_t len);
void exec_stream_input_end(struct exec_stream *es);
void exec_stream_resize(struct exec_stream *es, long rows, long columns);
/* Its user is there, and says nothing. */
void exec_stream_beat(struct exec_stream *es);
bool exec_stream_has_room(const struct exec_stream *es);

#endif
