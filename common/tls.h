/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h: TLS 1.2 and later on non-blocking connections. tls.c is the only file that uses OpenSSL.
 * Runs in: heartbeat, check-helper, cli, as clients; listener, as a server.
 */
#ifndef DROVER_COMMON_TLS_H
#define DROVER_COMMON_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

struct ssl_ctx_st;
struct ssl_st;

/* Loads OpenSSL's libraries; must be called before the filter is installed. Returns 0, or -ENOENT
 * with *e. */
int tls_load(struct err *e);

/*
 * Makes a context for all connections of one kind to servers. ca_fd: an open PEM file with the
 * trusted CA certificates, which stays the caller's; ca_name is its name in errors. With ca_fd -1
 * no certificate is verified. Returns a context for tls_free(), or NULL with *e.
 */
struct ssl_ctx_st *tls_new(int ca_fd, const char *ca_name, struct err *e);
/* As tls_new(), for connections of clients: with a ca_fd, each client must have a certificate of
 * these authorities. tls_identify() must follow. */
struct ssl_ctx_st *tls_new_server(int ca_fd, const char *ca_name, struct err *e);
/* Sets this side's certificate and key from open PEM files. block: that of the configuration, such
 * as "tls". Returns 0, or -errno with a sentence in *e that names the setting. */
int tls_identify(struct ssl_ctx_st *ctx, int cert_fd, int key_fd, const char *block, struct err *e);
void tls_free(struct ssl_ctx_st *ctx);

/*
 * Starts TLS as a client on the connected, non-blocking fd. server_name is the name or address that
 * the certificate must have; with NULL any certificate of the CA is accepted. Returns NULL if
 * memory runs out; tls_end() frees the result.
 */
struct ssl_st *tls_begin(struct ssl_ctx_st *ctx, int fd, const char *server_name);
/* Starts TLS as a server on the accepted, non-blocking fd. Returns NULL if memory runs out. */
struct ssl_st *tls_accept(struct ssl_ctx_st *ctx, int fd);
/* Frees it. polite: tells the peer that nothing more comes, if the socket takes that now. */
void tls_end(struct ssl_st *ssl, bool polite);

#define TLS_SUBJECT_SIZE 200
/* After the handshake: writes the subject of the peer's certificate ("/O=x/CN=y"), in printable
 * ASCII; "" if it has none. */
void tls_peer_subject(struct ssl_st *ssl, char ret[TLS_SUBJECT_SIZE]);

/* Continues the handshake. Returns 1 when it is done, 0 to be called again after *ret_events (of
 * poll), or -EPROTO with *e. */
int tls_shake(struct ssl_st *ssl, short *ret_events, struct err *e);
/* As read(2) and write(2): return -EAGAIN if they would block, 0 at the end, or -EPROTO with *e. */
ssize_t tls_read(struct ssl_st *ssl, void *buf, size_t size, struct err *e);
ssize_t tls_write(struct ssl_st *ssl, const void *buf, size_t size, struct err *e);

#endif
