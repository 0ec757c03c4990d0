/* SPDX-License-Identifier: Apache-2.0 */
/* check_tls.h: a check's question over TLS, which check-helper asks: its connections are to
 * anybody, and OpenSSL costs memory that a node without such checks has no use for. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECK_TLS_H
#define DROVER_SUPERVISOR_SERVICE_CHECK_TLS_H

#include "common/http_answer.h"
#include "supervisor/service/http_target.h"
#include "supervisor/core/sup_calls.h"

struct text;

struct check_tls_question {
	const union check_addr *addr;
	const char *server_name; /* NULL: the address */
	bool skip_verify, no_body;
	const struct text *request;
	uint64_t deadline_usec; /* CLOCK_MONOTONIC */
};

/* *ret_call is for check_tls_cancel(), which ignores 0. -EINVAL with *e: it cannot be asked. */
int check_tls_ask(struct sup *sup, const struct check_tls_question *q, call_cb *cb, void *arg,
    uint64_t *ret_call, struct err *e);
void check_tls_cancel(struct sup *sup, uint64_t call);
/* What came of it. -EBADMSG with the sentence: no answer. */
int check_tls_take(const ChkHttpsAskRep *rep, struct http_answer *ret, struct err *e);

#endif
