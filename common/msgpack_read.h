/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack_read.h: reads msgpack from a buffer, one head at a time, without making anything of it.
 * Runs in: supervisor, heartbeat.
 *
 * msgpack-c's own reader makes room for what a head promises before the elements are there (five
 * bytes ask for 96 GiB), and a tree of the whole message. This one hands out what stands in the
 * buffer: a peer can make it do no more than read its bytes once.
 */
#ifndef DROVER_COMMON_MSGPACK_READ_H
#define DROVER_COMMON_MSGPACK_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mp_kind { MP_NIL, MP_BOOL, MP_INT, MP_UINT, MP_REAL, MP_BYTES, MP_EXT, MP_ARRAY, MP_MAP };

/* An int that is 0 or more is MP_UINT, whatever its form. Text and binary are both MP_BYTES. */
struct mp_item {
	enum mp_kind kind;
	union {
		bool boolean;
		int64_t integer; /* MP_INT: below 0 */
		uint64_t uinteger;
		double real;
		uint32_t n; /* of an array's elements or a map's pairs, which follow */
		struct {
			const char *bytes; /* in the buffer */
			uint32_t len;
		};
	};
};

struct mp_in {
	const uint8_t *at, *end;
};

/*
 * Takes the next head, with the bytes of a text. 0; -EAGAIN when the buffer ends before it does;
 * -EBADMSG for what is no msgpack, and for a container with more elements than bytes follow when
 * `whole`. A failure takes nothing.
 */
int mp_read(struct mp_in *in, bool whole, struct mp_item *ret);
/* Takes one value with all that is in it. 0, -EAGAIN, -EBADMSG; the buffer is the whole message. */
int mp_skip(struct mp_in *in);

/* Where does the first value of a stream end? Begin with zero; the same struct goes on when more
 * has come. */
struct mp_scan {
	uint64_t left; /* values that have to follow, 0 before the first */
	size_t at;     /* bytes that are behind us */
};

/*
 * data: the stream from the value's first byte on, as far as it has come. 1: the value is whole,
 * and scan->at bytes long; 0: not yet; -EBADMSG: no msgpack. Each byte is looked at once.
 */
int mp_scan(struct mp_scan *scan, const void *data, size_t len);

#endif
