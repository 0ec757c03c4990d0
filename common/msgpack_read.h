/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack_read.h: parses msgpack from a buffer, one head at a time. Runs in: supervisor, heartbeat.
 *
 * msgpack-c's own parser allocates what a head announces before the elements have arrived (five
 * bytes can ask for 96 GiB), and builds a tree of the whole message. This one only points into the
 * buffer: all that a peer can cause is one pass over its bytes.
 */
#ifndef DROVER_COMMON_MSGPACK_READ_H
#define DROVER_COMMON_MSGPACK_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mp_kind { MP_NIL, MP_BOOL, MP_INT, MP_UINT, MP_REAL, MP_BYTES, MP_EXT, MP_ARRAY, MP_MAP };

/* An integer of 0 or more is MP_UINT in any encoding. Text and binary are both MP_BYTES. */
struct mp_item {
	enum mp_kind kind;
	union {
		bool boolean;
		int64_t integer; /* MP_INT: always negative */
		uint64_t uinteger;
		double real;
		uint32_t n; /* number of an array's elements or a map's pairs, which follow */
		struct {
			const char *bytes; /* points into the buffer */
			uint32_t len;
		};
	};
};

struct mp_in {
	const uint8_t *at, *end;
};

/*
 * Reads the next head, and the bytes of a text. Returns 0; -EAGAIN if the buffer ends too early;
 * -EBADMSG for invalid msgpack and, if `whole`, for a container that has more elements than bytes
 * follow. After a failure the position is unchanged.
 */
int mp_read(struct mp_in *in, bool whole, struct mp_item *ret);
/* Skips one value with everything in it. The buffer must be the whole message. Returns 0, -EAGAIN
 * or -EBADMSG. */
int mp_skip(struct mp_in *in);

/* Finds the end of the first value in a stream. Starts as zeros; the same struct continues when
 * more bytes have arrived. */
struct mp_scan {
	uint64_t left; /* values still to come; 0 before the first */
	size_t at;     /* bytes scanned so far */
};

/*
 * data is the stream so far, from the value's first byte. Returns 1 if the value is complete (it
 * has scan->at bytes), 0 if it is not, -EBADMSG for invalid msgpack. Each byte is read once.
 */
int mp_scan(struct mp_scan *scan, const void *data, size_t len);

#endif
