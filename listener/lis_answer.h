/* SPDX-License-Identifier: Apache-2.0 */
/* lis_answer.h: reads an answer of the supervisor, and keeps it as long as clients read it. Runs
 * in: listener. */
#ifndef DROVER_LISTENER_LIS_ANSWER_H
#define DROVER_LISTENER_LIS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

#define LIS_ANSWER_HEAD_MAX 4096
#define LIS_ANSWER_MAX      (64u * 1024 * 1024) /* bytes: the metrics of 10,000 allocs are less */

/* An answer, shared by the clients that asked the same. */
struct lis_answer {
	unsigned refs;
	int status;
	char type[96];    /* Content-Type: printable ASCII */
	size_t len, size; /* of the body, and of its memory */
	char body[];
};

struct lis_reader {
	size_t head_len;
	char head[LIS_ANSWER_HEAD_MAX];
	struct lis_answer *answer; /* once the head is complete */
	bool chunked;              /* then its length is known at the end */
	enum { LIS_CHUNK_SIZE, LIS_CHUNK, LIS_CHUNK_END, LIS_TRAILER } part;
	size_t left;     /* bytes of the body or the chunk that are missing */
	unsigned digits; /* of the chunk's size that were read */
	bool has_cr;     /* a line break is half read */
};

/* Adds len bytes. Returns 1 when the answer is complete, 0 if more is needed; -EBADMSG, -EFBIG or
 * -ENOMEM with *e. */
int lis_reader_feed(struct lis_reader *r, const char *data, size_t len, struct err *e);
/* Returns the complete answer, with one reference that is the caller's, and empties the reader. */
struct lis_answer *lis_reader_take(struct lis_reader *r);
void lis_reader_done(struct lis_reader *r);

struct lis_answer *lis_answer_ref(struct lis_answer *a);
/* Accepts NULL. */
void lis_answer_unref(struct lis_answer *a);
/* Returns the bytes of all answers that are kept. */
size_t lis_answers_held(void);

#endif
