/* SPDX-License-Identifier: Apache-2.0 */
/* check_tls.h: requests of checks over TLS, which check-helper makes: it connects to anyone, and
 * OpenSSL needs memory that a node without such checks should not spend. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECK_TLS_H
#define DROVER_SUPERVISOR_SERVICE_CHECK_TLS_H

#include "common/http_answer.h"
#include "supervisor/service/http_target.h"
#include "supervisor/core/sup_calls.h"

struct text;

struct check_tls_question {
	const union check_addr *addr;
	const char *server_name; /* that the certificate must be for; NULL: the address */
	bool skip_verify, no_body;
	const struct text *request;
	uint64_t deadline_usec; /* CLOCK_MONOTONIC */
};

void check_tls_new(struct sup *sup);
void check_tls_free(struct sup *sup);

/* Makes a request. *ret_call is for check_tls_cancel(). Returns 0, or -EINVAL with *e if the
 * request is too long. */
int check_tls_ask(struct sup *sup, const struct check_tls_question *q, call_cb *cb, void *arg,
    uint64_t *ret_call, struct err *e);
/* Ignores 0 and calls that have ended. */
void check_tls_cancel(struct sup *sup, uint64_t call);
/* Takes the answer from check-helper's reply. Returns 0, or -EBADMSG with *e if there was none. */
int check_tls_take(const ChkHttpsAskRep *rep, struct http_answer *ret, struct err *e);

#endif
