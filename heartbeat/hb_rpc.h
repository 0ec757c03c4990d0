/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_rpc.h: Go's net/rpc on msgpack on a stream: finds the end of an object, and encodes and
 * decodes the heads of requests and answers. The only body that it decodes is the answer to a
 * heartbeat. Runs in: heartbeat.
 */
#ifndef DROVER_HEARTBEAT_HB_RPC_H
#define DROVER_HEARTBEAT_HB_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heartbeat/hb_buf.h"

#define HB_RPC_HEAD_MAX   65536
#define HB_RPC_METHOD_MAX 128
#define HB_RPC_ERROR_MAX  4096
#define HB_RPC_ADDR_SIZE  256
#define HB_RPC_SERVERS    32

/* The first byte of a connection or of a stream selects its protocol. */
enum hb_rpc_mode { HB_RPC_NOMAD = 1, HB_RPC_TLS = 4, HB_RPC_STREAMING = 5, HB_RPC_MULTIPLEX = 6 };

/* Finds the end of an object in bytes that arrive in pieces. Starts as zeros. */
struct hb_rpc_scan {
	uint64_t todo, raw; /* objects still to come; bytes still to come of the current one */
	uint8_t marker;
	unsigned n_length, length_size; /* of its length field: bytes read; size */
	uint64_t length;
	bool started;
};

/*
 * Returns how many of the bytes belong to the object, and sets *ret_done if it ends with them;
 * -EBADMSG for invalid msgpack.
 */
ssize_t hb_rpc_scan(struct hb_rpc_scan *s, const uint8_t *data, size_t len, bool *ret_done);

/* Each appends one head. An answer with an error includes its empty body. */
void hb_rpc_put_request(struct hb_buf *out, const char *method, uint64_t seq);
void hb_rpc_put_answer(struct hb_buf *out, const char *method, uint64_t seq, const char *error);
void hb_rpc_put_opener(struct hb_buf *out, const char *method);
void hb_rpc_put_accept(struct hb_buf *out, const char *error);

/* A decoded head: of an answer, of a request, or of a streaming request, which has only a method.
 * Missing fields are empty. Text is made printable. */
struct hb_rpc_head {
	uint64_t seq;
	char method[HB_RPC_METHOD_MAX];
	char error[HB_RPC_ERROR_MAX];
};

/* data is one whole object. Returns 0, or -EBADMSG if it is not such a map or a method is too
 * long. */
int hb_rpc_get_head(const uint8_t *data, size_t len, struct hb_rpc_head *ret);

/* The fields that heartbeat needs from the answers to Node.Register and Node.UpdateStatus. */
struct hb_rpc_node {
	int64_t ttl_ns;
	int64_t n_nodes;
	unsigned n_servers;
	char servers[HB_RPC_SERVERS][HB_RPC_ADDR_SIZE];
};

/* Returns 0 or -EBADMSG. */
int hb_rpc_get_node(const uint8_t *data, size_t len, struct hb_rpc_node *ret);

#endif
