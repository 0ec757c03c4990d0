/* SPDX-License-Identifier: Apache-2.0 */
/* chk_ask.h: one question over HTTP within TLS, and the beginning of its answer. It never waits.
 * Runs in: check-helper. */
#ifndef DROVER_CHK_ASK_H
#define DROVER_CHK_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/http_answer.h"
#include "proto/check_helper.pb-c.h"

struct chk_ask {
	uint32_t serial; /* of the request */
	int fd;
	short events; /* of poll: what it waits for */
	uint64_t deadline_ms;
	ChkStep step;
	int dial_error;          /* what connect(2) failed with */
	bool skip_verify, heard; /* heard: the other side has said something */
	char server_name[256];
	struct ssl_st *ssl;
	size_t sent, request_len;
	struct http_answer answer;
	uint8_t request[];
};

/* Begins. 0, or -errno with *e: it could not be asked. */
int chk_ask_new(const ChkHttpsAskReq *req, uint32_t serial, uint64_t now_ms, struct chk_ask **ret,
    struct err *e);
void chk_ask_free(struct chk_ask *a);

/*
 * Goes on with what it waited for, a piece of it: others have their turn too. True: this is the
 * end, and *rep says how; its bytes are a's, its sentence *e's.
 */
bool chk_ask_go(struct chk_ask *a, ChkHttpsAskRep *rep, struct err *e);
/* Its time is over: the same. */
void chk_ask_expire(struct chk_ask *a, ChkHttpsAskRep *rep);

#endif
