/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hb_tls.h: TLS 1.2 and later to the servers, both sides with certificates. The one file that knows
 * OpenSSL. Runs in: heartbeat.
 */
#ifndef DROVER_HB_TLS_H
#define DROVER_HB_TLS_H

#include <sys/types.h>

#include "common/err.h"

struct ssl_ctx_st;
struct ssl_st;

/* Before the filter, because it opens libraries. 0 or -ENOENT with *e. */
int hb_tls_load(struct err *e);

/*
 * From PEM files that are open; -1: there is none. NULL with *e: the sentence names what is wrong
 * with which.
 */
struct ssl_ctx_st *hb_tls_new(int ca_fd, int cert_fd, int key_fd, struct err *e);

/* A client on the connected, non-blocking fd. server_name: who the certificate has to be for; NULL:
 * anyone that the CA vouches for. NULL without memory. */
struct ssl_st *hb_tls_begin(struct ssl_ctx_st *ctx, int fd, const char *server_name);
void hb_tls_end(struct ssl_st *ssl);

/* 1 done; 0 when *ret_events (of poll) comes; -EPROTO with *e. */
int hb_tls_shake(struct ssl_st *ssl, short *ret_events, struct err *e);
/* As read(2) and write(2): -EAGAIN, and 0 is the end. -EPROTO with *e. */
ssize_t hb_tls_read(struct ssl_st *ssl, void *buf, size_t size, struct err *e);
ssize_t hb_tls_write(struct ssl_st *ssl, const void *buf, size_t size, struct err *e);

#endif
