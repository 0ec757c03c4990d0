/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_openssl.h: OpenSSL's functions, loaded at run time if TLS is used: linking alone would cost
 * every node 0.7 MB of private memory. Included by tls.c alone, in place of OpenSSL's headers; the
 * macros map OpenSSL's names to the loaded functions. Runs in: heartbeat, check-helper, listener.
 */
#ifndef DROVER_COMMON_TLS_OPENSSL_H
#define DROVER_COMMON_TLS_OPENSSL_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* The functions used, of libcrypto and libssl; libssl loads libcrypto. */
#define TLS_OPENSSL_FUNCTIONS(F)                                                                   \
	F(BIO_free_all)                                                                            \
	F(BIO_new_mem_buf)                                                                         \
	F(ERR_clear_error)                                                                         \
	F(ERR_get_error)                                                                           \
	F(ERR_reason_error_string)                                                                 \
	F(EVP_PKEY_free)                                                                           \
	F(OPENSSL_init_ssl)                                                                        \
	F(PEM_read_bio_PrivateKey)                                                                 \
	F(PEM_read_bio_X509)                                                                       \
	F(SSL_CTX_ctrl)                                                                            \
	F(SSL_CTX_free)                                                                            \
	F(SSL_CTX_get_cert_store)                                                                  \
	F(SSL_CTX_new)                                                                             \
	F(SSL_CTX_set_cipher_list)                                                                 \
	F(SSL_CTX_set_num_tickets)                                                                 \
	F(SSL_CTX_set_options)                                                                     \
	F(SSL_CTX_set_verify)                                                                      \
	F(SSL_CTX_use_PrivateKey)                                                                  \
	F(SSL_CTX_use_certificate)                                                                 \
	F(SSL_ctrl)                                                                                \
	F(SSL_do_handshake)                                                                        \
	F(SSL_free)                                                                                \
	F(SSL_get1_peer_certificate)                                                               \
	F(SSL_get_error)                                                                           \
	F(SSL_get_verify_result)                                                                   \
	F(SSL_is_server)                                                                           \
	F(SSL_new)                                                                                 \
	F(SSL_read)                                                                                \
	F(SSL_set1_host)                                                                           \
	F(SSL_set_accept_state)                                                                    \
	F(SSL_set_connect_state)                                                                   \
	F(SSL_set_fd)                                                                              \
	F(SSL_set_hostflags)                                                                       \
	F(SSL_shutdown)                                                                            \
	F(SSL_write)                                                                               \
	F(TLS_client_method)                                                                       \
	F(TLS_server_method)                                                                       \
	F(X509_NAME_oneline)                                                                       \
	F(X509_STORE_add_cert)                                                                     \
	F(X509_free)                                                                               \
	F(X509_get_subject_name)                                                                   \
	F(X509_verify_cert_error_string)

static struct {
#define F(name) __typeof__(name) *name;
	TLS_OPENSSL_FUNCTIONS(F)
#undef F
} openssl;

#define BIO_free_all                  openssl.BIO_free_all
#define BIO_new_mem_buf               openssl.BIO_new_mem_buf
#define ERR_clear_error               openssl.ERR_clear_error
#define ERR_get_error                 openssl.ERR_get_error
#define ERR_reason_error_string       openssl.ERR_reason_error_string
#define EVP_PKEY_free                 openssl.EVP_PKEY_free
#define OPENSSL_init_ssl              openssl.OPENSSL_init_ssl
#define PEM_read_bio_PrivateKey       openssl.PEM_read_bio_PrivateKey
#define PEM_read_bio_X509             openssl.PEM_read_bio_X509
#define SSL_CTX_ctrl                  openssl.SSL_CTX_ctrl
#define SSL_CTX_free                  openssl.SSL_CTX_free
#define SSL_CTX_get_cert_store        openssl.SSL_CTX_get_cert_store
#define SSL_CTX_new                   openssl.SSL_CTX_new
#define SSL_CTX_set_cipher_list       openssl.SSL_CTX_set_cipher_list
#define SSL_CTX_set_num_tickets       openssl.SSL_CTX_set_num_tickets
#define SSL_CTX_set_options           openssl.SSL_CTX_set_options
#define SSL_CTX_set_verify            openssl.SSL_CTX_set_verify
#define SSL_CTX_use_PrivateKey        openssl.SSL_CTX_use_PrivateKey
#define SSL_CTX_use_certificate       openssl.SSL_CTX_use_certificate
#define SSL_ctrl                      openssl.SSL_ctrl
#define SSL_do_handshake              openssl.SSL_do_handshake
#define SSL_free                      openssl.SSL_free
#define SSL_get1_peer_certificate     openssl.SSL_get1_peer_certificate
#define SSL_get_error                 openssl.SSL_get_error
#define SSL_get_verify_result         openssl.SSL_get_verify_result
#define SSL_is_server                 openssl.SSL_is_server
#define SSL_new                       openssl.SSL_new
#define SSL_read                      openssl.SSL_read
#define SSL_set1_host                 openssl.SSL_set1_host
#define SSL_set_accept_state          openssl.SSL_set_accept_state
#define SSL_set_connect_state         openssl.SSL_set_connect_state
#define SSL_set_fd                    openssl.SSL_set_fd
#define SSL_set_hostflags             openssl.SSL_set_hostflags
#define SSL_shutdown                  openssl.SSL_shutdown
#define SSL_write                     openssl.SSL_write
#define TLS_client_method             openssl.TLS_client_method
#define TLS_server_method             openssl.TLS_server_method
#define X509_NAME_oneline             openssl.X509_NAME_oneline
#define X509_STORE_add_cert           openssl.X509_STORE_add_cert
#define X509_free                     openssl.X509_free
#define X509_get_subject_name         openssl.X509_get_subject_name
#define X509_verify_cert_error_string openssl.X509_verify_cert_error_string

#endif
