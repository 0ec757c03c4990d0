// SPDX-License-Identifier: Apache-2.0
/* nomad_exec.c: Allocations.Exec runs a command inside a task for a user of the servers. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/api/exec_stream.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/cluster/rpc/rpc_stream.h"
#include "supervisor/core/sup_timer.h"

/* Servers do not report that the user of a silent command has left. But users' programs send an
 * empty object every 10 s, so a user who sent some and then stops has left. */
#define SILENCE_USEC 30000000

/* Lives from the request until either side ends the stream. */
struct command {
	struct exec_stream es;
	uint64_t stream;
	struct sup_timer silence; /* since the first empty object */
	bool paused;
};

static void
free_command(struct command *c)
{
	sup_timer_cancel(&c->silence);
	exec_stream_done(&c->es);
	free(c);
}

static void
end_with_error(struct sup *sup, struct command *c, int status, const char *message)
{
	nomad_stream_fail(sup, c->stream, status, message);
	free_command(c);
}

static void begin_silence(struct command *c);

/* Pauses input while the command accepts none. The user's heartbeats cannot arrive then either. */
static void
update_pause(struct sup *sup, struct command *c)
{
	bool paused = !exec_stream_has_room(&c->es);

	link_stream_pause(sup, c->stream, paused);
	if (sup_timer_is_set(&c->silence) && c->paused && !paused)
		begin_silence(c);
	c->paused = paused;
}

static void
on_silence(void *arg)
{
	struct command *c = arg;

	if (!c->paused) {
		end_with_error(c->es.sup, c, 500, "no heartbeat of the user for 30 s");
		return;
	}
	begin_silence(c);
}

/* The user is silent until the next object comes. */
static void
begin_silence(struct command *c)
{
	sup_timer_set(c->es.sup, &c->silence, CLOCK_MONOTONIC, SILENCE_USEC, on_silence, c);
}

/* Sends as many frames as there is room for. May free c. */
static void
pump_command(struct sup *sup, struct command *c)
{
	int r = 1;

	while (r > 0 && link_stream_room(sup, c->stream) > 0) {
		struct text json = { 0 }, frame = { 0 };

		r = exec_stream_next(&c->es, &json);
		if (r > 0) {
			rpc_frame_data(&frame, json.text, json.len);
			link_stream_write(sup, c->stream, frame.text, frame.len);
		}
		text_done(&json);
		text_done(&frame);
	}
	if (r < 0 && c->es.status != 0) {
		end_with_error(sup, c, c->es.status, c->es.error.msg);
	} else if (r < 0) {
		link_stream_close(sup, c->stream);
		free_command(c);
	} else {
		update_pause(sup, c);
	}
}

static void
on_wake(struct exec_stream *es)
{
	pump_command(es->sup, container_of(es, struct command, es));
}

static void
on_room(struct sup *sup, void *arg, uint64_t stream)
{
	pump_command(sup, arg);
}

static void
on_gone(struct sup *sup, void *arg, uint64_t stream)
{
	free_command(arg);
}

static void
on_input(struct sup *sup, void *arg, uint64_t stream, const void *body, size_t len)
{
	struct command *c = arg;
	struct rpc_exec_input in;
	struct err e = { 0 };

	if (rpc_exec_input_parse(body, len, &in, &e) < 0) {
		end_with_error(sup, c, 400, e.msg);
		return;
	}
	if (in.has_size)
		exec_stream_resize(&c->es, (long)in.height, (long)in.width);
	if (in.has_stdin && in.len > 0)
		exec_stream_input(&c->es, in.data, in.len);
	if (in.has_stdin && in.close)
		exec_stream_input_end(&c->es);
	if ((!in.has_stdin && !in.has_size) || sup_timer_is_set(&c->silence))
		begin_silence(c);
	update_pause(sup, c);
}

static const struct link_stream_ops command_ops = {
	.on_input = on_input,
	.on_room = on_room,
	.on_gone = on_gone,
};

void
nomad_exec(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_exec_req) struct rpc_exec_req req;
	struct command *c = mem_new(struct command);
	struct exec_wish wish = { 0 };
	struct err e = { 0 };
	int status = 400;
	struct id id;

	c->es = (struct exec_stream){ .sup = sup, .wake = on_wake };
	c->stream = stream;
	link_stream_watch(sup, stream, &command_ops, c);
	rpc_exec_req_init(&req);
	if (model_from_msgpack(&rpc_exec_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) == 0) {
		wish =
		    (struct exec_wish){ .alloc = id_from_uuid(str(req.alloc_id), &id) ? &id : NULL,
			    .alloc_text = req.alloc_id,
			    .task = req.task,
			    .job = req.job_id,
			    .action = req.action,
			    .command = req.cmd.v,
			    .n_command = req.cmd.n,
			    .tty = req.tty };
		status = exec_stream_open(sup, &c->es, &wish, &e);
	}
	if (status != 0)
		end_with_error(sup, c, status, e.msg);
}
