/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket.h: frames of RFC 6455, for both ends: writes heads, parses received frames and joins
 * them to messages. Does no I/O. Runs in: supervisor, cli.
 */
#ifndef DROVER_COMMON_WEBSOCKET_H
#define DROVER_COMMON_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WS_HEAD_MAX    14
#define WS_CONTROL_MAX 125
#define WS_ACCEPT_SIZE 29 /* the length of a SHA-1 in base64, with the NUL */

enum ws_opcode {
	WS_CONTINUATION = 0,
	WS_TEXT = 1,
	WS_BINARY = 2,
	WS_CLOSE = 8,
	WS_PING = 9,
	WS_PONG = 10,
};

/* The reason for closing a connection. */
enum ws_close {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_POLICY = 1008,
	WS_CLOSE_TOO_BIG = 1009,
	WS_CLOSE_ERROR = 1011,
};

/* Writes the head of a message of len bytes in one frame. mask is the key that a client has to use,
 * NULL for a server. Returns the head's size. */
size_t ws_head(uint8_t head[WS_HEAD_MAX], enum ws_opcode op, size_t len, const uint8_t *mask);
/* Masks len bytes from offset `at` of a frame's body; a second call unmasks them. */
void ws_mask(void *data, size_t len, const uint8_t mask[4], size_t at);

/* A complete message, or a control frame between two parts of one. */
struct ws_message {
	enum ws_opcode op; /* TEXT, BINARY, CLOSE, PING or PONG */
	const char *data;  /* followed by a NUL; belongs to the reader, valid until the next call */
	size_t len;
};

/* Reads frames into messages. Starts with `masked` and `max` set and all other fields zero. */
struct ws_reader {
	bool masked; /* the peer is a client, whose frames are masked */
	size_t max;  /* largest message in bytes */

	uint8_t head[WS_HEAD_MAX], mask[4];
	size_t head_len, at; /* bytes of the head so far; position in the frame's body */
	uint64_t body_len;
	bool in_body, last, in_message;
	enum ws_opcode frame_op, message_op;
	char *message;
	size_t message_len, message_size;
	char control[WS_CONTROL_MAX + 1];
};

/*
 * Consumes bytes up to the end of a message and returns their number. ret->data is NULL if no
 * message is complete yet; then all len bytes were consumed. -EPROTO for an invalid frame,
 * -EMSGSIZE for a message longer than max, -ENOMEM; the connection must be closed then.
 */
ssize_t ws_read(struct ws_reader *r, const void *data, size_t len, struct ws_message *ret);
void ws_reader_done(struct ws_reader *r);

/* Writes the answer to a client's Sec-WebSocket-Key to ret. */
void ws_accept(const char *key, char ret[WS_ACCEPT_SIZE]);

#endif
