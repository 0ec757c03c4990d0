/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.h: frames of RFC 6455, for both ends: heads are written, what was received is taken
 * apart and put together to messages. Pure. Runs in: supervisor, cli.
 */
#ifndef DROVER_COMMON_WEBSOCKET_H
#define DROVER_COMMON_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WS_HEAD_MAX    14
#define WS_CONTROL_MAX 125
#define WS_ACCEPT_SIZE 29 /* base64 of a SHA-1 */

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

/* Why a connection is closed. */
enum ws_close {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_POLICY = 1008,
	WS_CLOSE_TOO_BIG = 1009,
	WS_CLOSE_ERROR = 1011,
};

/* The head of one whole message of len bytes; mask as a client has to, NULL for a server. Returns
 * its size. */
size_t ws_head(uint8_t head[WS_HEAD_MAX], enum ws_opcode op, size_t len, const uint8_t *mask);
/* Masks len bytes that stand at offset at of a frame's body; once more takes it away. */
void ws_mask(void *data, size_t len, const uint8_t mask[4], size_t at);

/* A message, or a control frame between two parts of one. */
struct ws_message {
	enum ws_opcode op; /* TEXT, BINARY, CLOSE, PING or PONG */
	const char *data;  /* a NUL follows; the reader's, until the next call */
	size_t len;
};

/* Zero but for the first two is a fresh one. */
struct ws_reader {
	bool masked; /* who sends is a client */
	size_t max;  /* bytes of a message */

	uint8_t head[WS_HEAD_MAX], mask[4];
	size_t head_len, at; /* of the head; of the frame's body */
	uint64_t body_len;
	bool in_body, last, in_message;
	enum ws_opcode frame_op, message_op;
	char *message;
	size_t message_len, message_size;
	char control[WS_CONTROL_MAX + 1];
};

/*
 * Takes what there is up to the end of a message: the number of bytes that it took (all, if
 * ret->data is NULL: no message is whole). -EPROTO for what no frame may be, -EMSGSIZE for a
 * message beyond max, -ENOMEM; the connection is to be closed then.
 */
ssize_t ws_read(struct ws_reader *r, const void *data, size_t len, struct ws_message *ret);
void ws_reader_done(struct ws_reader *r);

/* What a server answers to a client's Sec-WebSocket-Key. */
void ws_accept(const char *key, char ret[WS_ACCEPT_SIZE]);

#endif
