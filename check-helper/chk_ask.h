/* SPDX-License-Identifier: Apache-2.0 */
/* chk_ask.h: one HTTPS request and the beginning of its answer, without blocking. Runs in:
 * check-helper. */
#ifndef DROVER_CHECK_HELPER_CHK_ASK_H
#define DROVER_CHECK_HELPER_CHK_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/http_answer.h"
#include "proto/check_helper.pb-c.h"

struct chk_trust;

struct chk_ask {
	uint32_t serial; /* serial number of the request */
	int fd;
	short events; /* poll events that it waits for */
	uint64_t deadline_ms;
	ChkStep step;
	int dial_error;          /* error of connect(2) */
	bool skip_verify, heard; /* heard: the server has sent something */
	char server_name[256];
	struct ssl_st *ssl;
	size_t sent, request_len;
	struct http_answer answer;
	uint8_t request[];
};

/* Starts the request. Returns 0; -EINVAL, or -errno if there is no socket, with *e. */
int chk_ask_new(const ChkHttpsAskReq *req, uint32_t serial, uint64_t now_ms, struct chk_ask **ret,
    struct err *e);
void chk_ask_free(struct chk_ask *a);

/* Continues with a bounded piece of work, so that other requests get their turn. Returns true at
 * the end, with *rep filled in; its bytes point into *a and its text into *e. */
bool chk_ask_go(struct chk_ask *a, struct chk_trust *trust, ChkHttpsAskRep *rep, struct err *e);
/* Ends the request because its time is over; fills in *rep in the same way. */
void chk_ask_expire(struct chk_ask *a, ChkHttpsAskRep *rep);

#endif
