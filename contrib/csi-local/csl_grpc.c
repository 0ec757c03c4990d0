// SPDX-License-Identifier: Apache-2.0
/* csl_grpc.c: all uses of gRPC core's server side. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_grpc.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/mem.h"

struct csl_server {
	grpc_server *server;
	grpc_completion_queue *cq;
	csl_handler *handler;
	void *arg;
};

/* The state of a call; each step ends with one event whose tag is the call. */
enum call_state { CALL_AWAITED, CALL_READING, CALL_HANDLED, CALL_ANSWERED };

struct csl_call {
	struct csl_server *server;
	enum call_state state;
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *request;
	grpc_byte_buffer *answer;
	grpc_slice message;
	int cancelled;
};

/* gRPC returns an error only if it is used wrongly, so the process cannot continue. */
static void
must(grpc_call_error error, const char *what)
{
	if (error == GRPC_CALL_OK)
		return;
	fprintf(stderr, "grpc: %s: %s\n", what, grpc_call_error_to_string(error));
	abort();
}

static struct csl_call *
call_new(struct csl_server *s)
{
	struct csl_call *c = gpr_zalloc(sizeof *c);

	c->server = s;
	c->message = grpc_empty_slice();
	grpc_call_details_init(&c->details);
	grpc_metadata_array_init(&c->metadata);
	return c;
}

static void
call_free(struct csl_call *c)
{
	if (c->call)
		grpc_call_unref(c->call);
	grpc_call_details_destroy(&c->details);
	grpc_metadata_array_destroy(&c->metadata);
	grpc_byte_buffer_destroy(c->request);
	grpc_byte_buffer_destroy(c->answer);
	grpc_slice_unref(c->message);
	gpr_free(c);
}

/* Requests the next call from gRPC. */
static void
await_call(struct csl_server *s)
{
	struct csl_call *c = call_new(s);

	must(grpc_server_request_call(
		 s->server, &c->call, &c->details, &c->metadata, s->cq, s->cq, c),
	    "request a call");
}

static void
read_request(struct csl_call *c)
{
	const grpc_op op = { .op = GRPC_OP_RECV_MESSAGE,
		.data.recv_message.recv_message = &c->request };

	c->state = CALL_READING;
	must(grpc_call_start_batch(c->call, &op, 1, c, NULL), "receive a message");
}

static void
handle_request(struct csl_call *c)
{
	grpc_byte_buffer_reader reader;
	cleanup_free char *method = NULL;
	grpc_slice data;

	c->state = CALL_HANDLED;
	if (!c->request || !grpc_byte_buffer_reader_init(&reader, c->request)) {
		csl_call_answer(
		    c, GRPC_STATUS_INVALID_ARGUMENT, "the call came without a message", NULL, 0);
		return;
	}
	data = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	method = mem_strndup((const char *)GRPC_SLICE_START_PTR(c->details.method),
	    GRPC_SLICE_LENGTH(c->details.method));
	c->server->handler(
	    c->server->arg, c, method, GRPC_SLICE_START_PTR(data), GRPC_SLICE_LENGTH(data));
	grpc_slice_unref(data);
}

void
csl_call_answer(struct csl_call *c, int status, const char *message, const void *data, size_t len)
{
	grpc_op ops[4] = { 0 };
	grpc_slice slice;
	size_t n = 0;

	c->state = CALL_ANSWERED;
	ops[n++].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (status == GRPC_STATUS_OK && data) {
		slice = grpc_slice_from_copied_buffer(data, len);
		c->answer = grpc_raw_byte_buffer_create(&slice, 1);
		grpc_slice_unref(slice);
		ops[n].op = GRPC_OP_SEND_MESSAGE;
		ops[n++].data.send_message.send_message = c->answer;
	}
	c->message = grpc_slice_from_copied_string(message ? message : "");
	ops[n].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[n].data.send_status_from_server.status = (grpc_status_code)status;
	ops[n++].data.send_status_from_server.status_details = &c->message;
	ops[n].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
	ops[n++].data.recv_close_on_server.cancelled = &c->cancelled;
	must(grpc_call_start_batch(c->call, ops, n, c, NULL), "answer a call");
}

static void
on_event(struct csl_server *s, struct csl_call *c, bool success)
{
	switch (c->state) {
	case CALL_AWAITED:
		await_call(s);
		if (success)
			read_request(c);
		else
			call_free(c);
		return;
	case CALL_READING:
		handle_request(c);
		return;
	case CALL_ANSWERED:
		call_free(c);
		return;
	case CALL_HANDLED:
		return; /* the call has no event */
	}
}

void
csl_server_run(struct csl_server *s)
{
	await_call(s);
	for (;;) {
		grpc_event ev =
		    grpc_completion_queue_next(s->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

		if (ev.type == GRPC_OP_COMPLETE)
			on_event(s, ev.tag, ev.success != 0);
	}
}

int
csl_server_new(const char *socket_path, csl_handler *handler, void *arg, struct csl_server **ret,
    struct err *e)
{
	grpc_server_credentials *insecure;
	cleanup_free struct csl_server *s = NULL;
	cleanup_free char *address = NULL;
	mode_t mask;
	int port;

	if (strlen(socket_path) >= sizeof((struct sockaddr_un *)0)->sun_path)
		return err_set(e, -ENAMETOOLONG, "listen on %s", socket_path);
	s = mem_new(struct csl_server);
	address = mem_printf("unix:%s", socket_path);
	grpc_init();
	s->handler = handler;
	s->arg = arg;
	s->cq = grpc_completion_queue_create_for_next(NULL);
	s->server = grpc_server_create(NULL, NULL);
	grpc_server_register_completion_queue(s->server, s->cq, NULL);
	insecure = grpc_insecure_server_credentials_create();
	mask = umask(077);
	port = grpc_server_add_http2_port(s->server, address, insecure);
	(void)umask(mask);
	grpc_server_credentials_release(insecure);
	if (port == 0)
		return err_say(
		    e, -EADDRINUSE, "cannot listen on %s: see the previous line", socket_path);
	grpc_server_start(s->server);
	*ret = steal_ptr(&s);
	return 0;
}
