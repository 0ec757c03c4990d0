/* SPDX-License-Identifier: Apache-2.0 */
/* hb_buf.h: bytes that wait to go on. Runs in: heartbeat. */
#ifndef DROVER_HB_BUF_H
#define DROVER_HB_BUF_H

#include <stddef.h>
#include <stdint.h>

/* All zero is an empty one. data[0..len) are there; the memory behind them is let go when it is
 * empty. */
struct hb_buf {
	uint8_t *data;
	size_t len;
	uint8_t *memory;
	size_t size;
};

/* 0 or -ENOMEM, and then nothing was added. */
int hb_buf_add(struct hb_buf *b, const void *data, size_t len);
/* Takes the first n bytes away. */
void hb_buf_drop(struct hb_buf *b, size_t n);
void hb_buf_done(struct hb_buf *b);

#endif
