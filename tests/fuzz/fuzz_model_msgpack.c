/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_model_msgpack.c: any bytes as a server's answer: decoding stays within its memory limit, and
 * a decoded object survives being sent on. Runs in: a fuzzer. */
#include <stdlib.h>
#include <string.h>

#include "common/msgpack_read.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "tests/fuzz/fuzz.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"
#include "supervisor/cluster/rpc/rpc_claim.h"
#include "supervisor/cluster/rpc/rpc_csi.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

#define MEMORY_MAX ((size_t)1 << 20)

/* From the sanitizers; NULL without them. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t
allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
						       : 0;
}

/* The result in pieces is the same as at once. */
static void
check_scan(const uint8_t *data, size_t size)
{
	struct mp_in in = { .at = data, .end = data + size };
	struct mp_scan scan = { 0 }, once = { 0 };
	size_t n, step = size ? 1 + data[size - 1] % 7 : 1;
	int r = 0, whole = mp_scan(&once, data, size);

	for (n = 0; n <= size && r == 0; n += step)
		r = mp_scan(&scan, data, n);
	if (r == 0)
		r = mp_scan(&scan, data, size);
	HOLDS(r == whole);
	HOLDS(r != 1 || (scan.at == once.at && scan.at <= size));
	/* A container may announce more than follows; that shows only when all bytes are there. */
	if (mp_skip(&in) == 0)
		HOLDS(whole == 1 && (size_t)(in.at - data) == once.at);
	else
		HOLDS(whole != 1);
}

/* Raw JSON loses its nils in the first pass; after that nothing changes. */
static void
check_survives(const struct type *type, const void *obj, enum model_flags flags)
{
	void *back = model_new(type);
	struct text once = { 0 }, twice = { 0 }, json = { 0 };
	struct mp_scan scan = { 0 };
	struct err e = { 0 };

	model_to_msgpack(type, obj, flags, &once);
	HOLDS(mp_scan(&scan, once.text, once.len) == 1 && scan.at == once.len);
	HOLDS(model_from_msgpack(type, once.text, once.len, back, SIZE_MAX / 2, &e) == 0);
	model_to_msgpack(type, back, flags, &twice);
	HOLDS(once.len == twice.len && memcmp(once.text, twice.text, once.len) == 0);
	model_to_text(type, obj, flags, &json);
	model_free(type, back);
	text_done(&once);
	text_done(&twice);
	text_done(&json);
}

static void
check_allocs(const struct rpc_allocs_rep *rep)
{
	struct err e = { 0 };
	struct alloc a;
	size_t i;

	for (i = 0; i < rep->allocs.n && i < 4; i++) {
		alloc_init(&a);
		if (rpc_alloc_decode(&rep->allocs.v[i], &a, &e) == 0)
			check_survives(&alloc_type, &a, 0);
		alloc_done(&a);
	}
}

static void
try_as(const struct type *type, const uint8_t *data, size_t size)
{
	void *obj = model_new(type);
	struct err e = { 0 };
	size_t before = allocated(), after;

	HOLDS(obj);
	if (model_from_msgpack(type, data, size, obj, MEMORY_MAX, &e) == 0) {
		after = allocated();
		HOLDS(after <= before || after - before <= MEMORY_MAX);
		check_survives(type, obj, 0);
		check_survives(type, obj, MODEL_COMPACT);
		if (type == &rpc_allocs_rep_type)
			check_allocs(obj);
	} else {
		HOLDS(*e.msg);
		HOLDS(allocated() <= before);
	}
	model_free(type, obj);
}

static bool
is_within(const char *part, size_t len, const uint8_t *data, size_t size)
{
	const char *all = (const char *)data;

	return !part || (part >= all && len <= size && (size_t)(part - all) <= size - len);
}

/* The parts point into the message. */
static void
try_frames(const uint8_t *data, size_t size)
{
	struct rpc_exec_input in;
	struct rpc_frame f;
	struct err e = { 0 };

	if (rpc_frame_parse(data, size, &f, &e) == 0)
		HOLDS(is_within(f.payload, f.len, data, size) &&
		      is_within(f.message, f.message_len, data, size));
	if (rpc_exec_input_parse(data, size, &in, &e) == 0)
		HOLDS(is_within(in.data, in.len, data, size));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct type *const types[] = { &rpc_register_req_type, &rpc_node_rep_type,
		&rpc_node_req_type, &rpc_client_allocs_rep_type, &rpc_allocs_rep_type, &alloc_type,
		&rpc_update_req_type, &rpc_sign_rep_type, &rpc_claim_rep_type, &rpc_events_req_type,
		&rpc_get_node_rep_type, &rpc_task_req_type, &rpc_fs_req_type,
		&rpc_meta_apply_req_type, &rpc_csi_node_req_type, &rpc_csi_controller_req_type };
	size_t i;

	check_scan(data, size);
	try_frames(data, size);
	for (i = 0; i < ELEMENTSOF(types); i++)
		try_as(types[i], data, size);
	return 0;
}
