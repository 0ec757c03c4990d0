/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h: TLS 1.2 and later as a client, on connections that never wait. The one file that knows
 * OpenSSL. Runs in: heartbeat, check-helper.
 */
#ifndef DROVER_COMMON_TLS_H
#define DROVER_COMMON_TLS_H

#include <sys/types.h>

#include "common/err.h"

struct ssl_ctx_st;
struct ssl_st;

/* Before the filter, because it opens libraries. 0 or -ENOENT with *e. */
int tls_load(struct err *e);

/*
 * What all connections of one kind share. ca_fd: a file of PEM that is open and stays the caller's,
 * whose certificates say whom to believe, and ca_name for the sentence about it; -1: whoever the
 * other side says it is, is believed. NULL with *e.
 */
struct ssl_ctx_st *tls_new(int ca_fd, const char *ca_name, struct err *e);
/* Who this side is, from PEM files that are open. 0, or -errno with the sentence that names what is
 * wrong with which. */
int tls_identify(struct ssl_ctx_st *ctx, int cert_fd, int key_fd, struct err *e);
void tls_free(struct ssl_ctx_st *ctx);

/*
 * A client on the connected, non-blocking fd. server_name: who the certificate has to be for, a
 * name or an address; NULL: anyone that the CA vouches for. NULL without memory.
 */
struct ssl_st *tls_begin(struct ssl_ctx_st *ctx, int fd, const char *server_name);
void tls_end(struct ssl_st *ssl);

/* 1 done; 0 when *ret_events (of poll) comes; -EPROTO with *e. */
int tls_shake(struct ssl_st *ssl, short *ret_events, struct err *e);
/* As read(2) and write(2): -EAGAIN, and 0 is the end. -EPROTO with *e. */
ssize_t tls_read(struct ssl_st *ssl, void *buf, size_t size, struct err *e);
ssize_t tls_write(struct ssl_st *ssl, const void *buf, size_t size, struct err *e);

#endif
