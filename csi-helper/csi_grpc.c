// SPDX-License-Identifier: Apache-2.0
/* csi_grpc.c: all uses of gRPC core's client side. Runs in: csi-helper. gRPC has no descriptor to
 * poll. One thread blocks in its completion queue, which also reads and writes the sockets; it
 * passes ended calls to the main thread through a list and an eventfd. */
#include "csi-helper/csi_grpc.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"

/* Memory that gRPC writes to until the call has ended. */
struct csi_call_state {
	grpc_call *call;
	grpc_metadata_array initial, trailing;
	grpc_byte_buffer *request, *answer;
	grpc_status_code status;
	grpc_slice message, data;
};

/* Passes an ended call to the main thread. */
static void
hand_over(struct csi_grpc *g, struct csi_call *call)
{
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&g->lock);
	STAILQ_INSERT_TAIL(&g->ended, call, link);
	(void)pthread_mutex_unlock(&g->lock);
	if (write(g->event_fd, &one, sizeof one) < 0 && errno != EAGAIN) {
		log_error("wake the main thread: %s", strerror(errno));
		_exit(1);
	}
}

static void *
queue_main(void *arg)
{
	struct csi_grpc *g = arg;

	for (;;) {
		grpc_event ev =
		    grpc_completion_queue_next(g->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

		if (ev.type == GRPC_OP_COMPLETE)
			hand_over(g, ev.tag);
	}
	return NULL;
}

int
csi_grpc_start(struct csi_grpc *g, struct err *e)
{
	pthread_t thread;
	int r;

	/* gRPC's eight threads hardly allocate: a malloc arena for each would cost more than
	 * contention. */
	(void)mallopt(M_ARENA_MAX, 1);
	*g = (struct csi_grpc){ .lock = PTHREAD_MUTEX_INITIALIZER,
		.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (g->event_fd < 0)
		return err_set(e, -errno, "make an eventfd");
	STAILQ_INIT(&g->ended);
	grpc_init();
	g->queue = grpc_completion_queue_create_for_next(NULL);
	r = pthread_create(&thread, NULL, queue_main, g);
	if (r != 0)
		return err_set(e, -r, "start the thread of the completion queue");
	(void)pthread_detach(thread);
	return 0;
}

static int
drop_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && !(p->p_flags & PF_W))
			(void)madvise(
			    (void *)(at & ~mask), p->p_memsz + (at & mask), MADV_DONTNEED);
	}
	return 0;
}

void
csi_grpc_trim(void)
{
	(void)dl_iterate_phdr(drop_object, NULL);
	(void)malloc_trim(0);
}

struct csi_channel *
csi_channel_new(int fd)
{
	/* Node.js servers refuse a call without an authority. Retries are disabled because the
	 * supervisor decides on them. */
	grpc_arg args[] = {
		{ .type = GRPC_ARG_STRING,
		    .key = GRPC_ARG_DEFAULT_AUTHORITY,
		    .value.string = "localhost" },
		{ .type = GRPC_ARG_INTEGER, .key = GRPC_ARG_ENABLE_RETRIES, .value.integer = 0 },
		{ .type = GRPC_ARG_INTEGER, .key = GRPC_ARG_HTTP2_BDP_PROBE, .value.integer = 0 },
		{ .type = GRPC_ARG_INTEGER,
		    .key = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		    .value.integer = CSI_ANSWER_BYTES_MAX },
		{ .type = GRPC_ARG_INTEGER,
		    .key = GRPC_ARG_MAX_METADATA_SIZE,
		    .value.integer = CSI_METADATA_BYTES_MAX },
		/* gRPC checks the size of a compressed message only after inflating it, so
		   decompression is disabled. The second argument asks the plugin not to compress.
		 */
		{ .type = GRPC_ARG_INTEGER,
		    .key = GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION,
		    .value.integer = 0 },
		{ .type = GRPC_ARG_INTEGER,
		    .key = GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
		    .value.integer = 1 << GRPC_COMPRESS_NONE },
	};
	const grpc_channel_args all = { .num_args = ELEMENTSOF(args), .args = args };
	grpc_channel_credentials *insecure;
	grpc_channel *channel;

	insecure = grpc_insecure_credentials_create();
	channel = grpc_channel_create_from_fd("localhost", fd, insecure, &all);
	grpc_channel_credentials_release(insecure);
	return (struct csi_channel *)channel;
}

void
csi_channel_free(struct csi_channel *ch)
{
	if (ch)
		grpc_channel_destroy((grpc_channel *)ch);
}

static struct csi_call_state *
state_new(const ProtobufCMessage *req)
{
	struct csi_call_state *s = mem_new(struct csi_call_state);
	size_t size = protobuf_c_message_get_packed_size(req);
	grpc_slice slice;

	grpc_metadata_array_init(&s->initial);
	grpc_metadata_array_init(&s->trailing);
	s->message = s->data = grpc_empty_slice();
	slice = grpc_slice_malloc(size);
	(void)protobuf_c_message_pack(req, GRPC_SLICE_START_PTR(slice));
	s->request = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	return s;
}

static void
state_free(struct csi_call_state *s)
{
	if (s->call)
		grpc_call_unref(s->call);
	grpc_metadata_array_destroy(&s->initial);
	grpc_metadata_array_destroy(&s->trailing);
	grpc_byte_buffer_destroy(s->request);
	grpc_byte_buffer_destroy(s->answer);
	grpc_slice_unref(s->message);
	grpc_slice_unref(s->data);
	free(s);
}

/* A unary call is a single batch, so it has a single completion. */
static grpc_call_error
start_batch(struct csi_call *call)
{
	struct csi_call_state *s = call->state;
	const grpc_op ops[] = {
		{ .op = GRPC_OP_SEND_INITIAL_METADATA },
		{ .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = s->request },
		{ .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
		{ .op = GRPC_OP_RECV_INITIAL_METADATA,
		    .data.recv_initial_metadata.recv_initial_metadata = &s->initial },
		{ .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &s->answer },
		{ .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		    .data.recv_status_on_client = { .trailing_metadata = &s->trailing,
			.status = &s->status,
			.status_details = &s->message } },
	};

	return grpc_call_start_batch(s->call, ops, ELEMENTSOF(ops), call, NULL);
}

void
csi_call_start(struct csi_grpc *g, struct csi_call *call, struct csi_channel *ch,
    const char *method, const ProtobufCMessage *req)
{
	gpr_timespec deadline = gpr_time_add(
	    gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(call->timeout_ms, GPR_TIMESPAN));
	struct csi_call_state *s = state_new(req);

	call->state = s;
	s->call = grpc_channel_create_call((grpc_channel *)ch, NULL, GRPC_PROPAGATE_DEFAULTS,
	    g->queue, grpc_slice_from_static_string(method), NULL, deadline, NULL);
	if (start_batch(call) != GRPC_CALL_OK) {
		log_error("gRPC refuses a batch of %s", method);
		_exit(1);
	}
}

void
csi_call_cancel(struct csi_call *call)
{
	call->cancelled = true;
	(void)grpc_call_cancel(call->state->call, NULL);
}

void
csi_call_free(struct csi_call *call)
{
	state_free(call->state);
	csi_secrets_done(&call->secrets);
	free(call);
}

/* Copies the answer into one buffer, which the call owns. */
static void
read_result(struct csi_call *call)
{
	struct csi_call_state *s = call->state;
	grpc_byte_buffer_reader reader;

	call->result.status = s->status;
	call->result.message = GRPC_SLICE_START_PTR(s->message);
	call->result.message_len = GRPC_SLICE_LENGTH(s->message);
	if (s->status != GRPC_STATUS_OK || !s->answer ||
	    !grpc_byte_buffer_reader_init(&reader, s->answer))
		return;
	s->data = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	call->result.data = GRPC_SLICE_START_PTR(s->data);
	call->result.len = GRPC_SLICE_LENGTH(s->data);
}

static struct csi_call *
take_ended(struct csi_grpc *g)
{
	struct csi_call *call;
	uint64_t n;

	(void)pthread_mutex_lock(&g->lock);
	call = STAILQ_FIRST(&g->ended);
	if (call) {
		STAILQ_REMOVE_HEAD(&g->ended, link);
	} else {
		/* The eventfd is read under the lock; otherwise a call that ends between the check
		 * and the read would be missed. */
		(void)!read(g->event_fd, &n, sizeof n);
	}
	(void)pthread_mutex_unlock(&g->lock);
	return call;
}

struct csi_call *
csi_grpc_next(struct csi_grpc *g)
{
	struct csi_call *call = take_ended(g);

	if (call)
		read_result(call);
	return call;
}

const char *
csi_status_name(int status)
{
	static const char *const names[] = { "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
		"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED" };

	return status >= 0 && (size_t)status < ELEMENTSOF(names) ? names[status]
								 : "status out of range";
}
