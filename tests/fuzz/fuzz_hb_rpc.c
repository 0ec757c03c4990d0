// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_hb_rpc.c: heads and bodies of servers: the end of an object is where the unpacker finds it,
 * whole or in pieces, and no object costs more memory than its size. Runs in: a fuzzer.
 */
#include <msgpack.h>
#include <string.h>

#include "heartbeat/hb_rpc.h"
#include "tests/fuzz/fuzz.h"

static void
check_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	HOLDS(len < size);
	for (size_t i = 0; i < len; i++)
		HOLDS((unsigned char)text[i] >= 0x20);
}

static void
look_into(const uint8_t *data, size_t len)
{
	static struct hb_rpc_head head;
	static struct hb_rpc_node node;
	struct hb_buf out = { 0 };

	if (hb_rpc_get_head(data, len, &head) == 0) {
		check_text(head.method, sizeof head.method);
		check_text(head.error, sizeof head.error);
		hb_rpc_put_answer(&out, head.method, head.seq, head.error);
		hb_buf_done(&out);
	}
	if (hb_rpc_get_node(data, len, &node) == 0) {
		HOLDS(node.n_servers <= HB_RPC_SERVERS);
		for (unsigned i = 0; i < node.n_servers; i++)
			check_text(node.servers[i], sizeof node.servers[i]);
	}
}

/* Compares with the unpacker, which limits the depth. */
static void
compare_ends(const uint8_t *data, size_t size, ssize_t n)
{
	msgpack_unpacked u;
	size_t at = 0;

	msgpack_unpacked_init(&u);
	if (msgpack_unpack_next(&u, (const char *)data, size, &at) == MSGPACK_UNPACK_SUCCESS)
		HOLDS((size_t)n == at);
	msgpack_unpacked_destroy(&u);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hb_rpc_scan whole = { 0 }, pieces = { 0 };
	bool done = false, done2 = false;
	ssize_t n = hb_rpc_scan(&whole, data, size, &done), r = 0, sum = 0;

	for (size_t i = 0; i < size && !done2 && r >= 0; i++) {
		r = hb_rpc_scan(&pieces, data + i, 1, &done2);
		sum += r;
	}
	HOLDS(n < 0 ? r < 0 : done == done2 && sum == n);
	if (n < 0 || !done)
		return 0;
	compare_ends(data, (size_t)n, n);
	look_into(data, (size_t)n);
	return 0;
}
