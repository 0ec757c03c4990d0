/* SPDX-License-Identifier: Apache-2.0 */
/* hb_buf.h: a byte queue. Runs in: heartbeat. */
#ifndef DROVER_HEARTBEAT_HB_BUF_H
#define DROVER_HEARTBEAT_HB_BUF_H

#include <stddef.h>
#include <stdint.h>

/* Starts as zeros. Its bytes are data[0..len); its memory is freed when it is empty. */
struct hb_buf {
	uint8_t *data;
	size_t len;
	uint8_t *memory;
	size_t size;
};

/* Appends len bytes. */
void hb_buf_add(struct hb_buf *b, const void *data, size_t len);
/* Removes the first n bytes. */
void hb_buf_drop(struct hb_buf *b, size_t n);
void hb_buf_done(struct hb_buf *b);

#endif
