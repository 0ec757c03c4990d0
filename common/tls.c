// SPDX-License-Identifier: Apache-2.0
/* tls.c: TLS with OpenSSL. After tls_load() it opens no file, so it works after the drop and under
 * the filter. Runs in: heartbeat, check-helper, listener. */
#include "common/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/tls_openssl.h"

#define PEM_MAX      (4 * 1024 * 1024)
#define CERTS_MAX    (16 * 1024) /* bytes of all certificates that a client may send */
#define NAME_SIZE    64          /* of a setting, such as health.tls.cert_file */
#define TEXT(number) #number
#define LIBSSL(n)    "libssl.so." TEXT(n)

/* Finite-field Diffie-Hellman is disabled, because the server chooses its size: with 8192 bits each
 * handshake would cost this side a fifth of a second of CPU time. */
#define CIPHERS "DEFAULT:!DHE"
#define NIST    "P-256:P-384:P-521" /* all groups that OpenSSL supports in FIPS mode */
#define GROUPS  "X25519:" NIST

DEFINE_CLEANUP(SSL_CTX *, SSL_CTX_free);
DEFINE_CLEANUP(X509 *, X509_free);
DEFINE_CLEANUP(EVP_PKEY *, EVP_PKEY_free);

int
tls_load(struct err *e)
{
	static const char *const names[] = {
#define F(name) #name,
		TLS_OPENSSL_FUNCTIONS(F)
#undef F
	};
	void *library = dlopen(LIBSSL(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_LOCAL);
	void **at = (void **)(void *)&openssl;

	_Static_assert(sizeof openssl == ELEMENTSOF(names) * sizeof(void *), "one name each");
	if (!library)
		return err_say(e, -ENOENT, "TLS needs OpenSSL: %s", dlerror());
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		at[i] = dlsym(library, names[i]);
		if (!at[i])
			return err_say(e, -ENOENT, "TLS needs OpenSSL: %s", dlerror());
	}
	return 0;
}

/* Sets *e to the first error in OpenSSL's queue and clears the queue. */
static int
say_openssl(struct err *e, const char *what)
{
	unsigned long code = ERR_get_error();
	const char *why = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return err_say(e, -EPROTO, "%s: %s", what, why ? why : "the connection was closed");
}

static int
say_file(struct err *e, const char *file, const char *what)
{
	ERR_clear_error();
	return err_say(e, -EINVAL, "%s: expected %s in PEM", file, what);
}

/* A PEM file for OpenSSL. It is copied, because access to a mapped file that was truncated
 * meanwhile raises SIGBUS, and into pages of its own, so that no part of a key stays in the
 * heap. */
struct pem {
	BIO *bio;
	void *text;
	size_t size;
};

static void
pem_done(struct pem *pem)
{
	if (pem->bio)
		BIO_free_all(pem->bio);
	if (pem->text)
		(void)munmap(pem->text, pem->size);
}

/* Uses pread(), because the file offset is shared with the launcher and with earlier instances of
 * this process. */
static struct pem
pem_open(int fd)
{
	struct pem pem = { 0 };
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > PEM_MAX)
		return pem;
	pem.size = (size_t)st.st_size;
	pem.text = mmap(NULL, pem.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pem.text == MAP_FAILED) {
		pem.text = NULL;
		return pem;
	}
	n = pread(fd, pem.text, pem.size, 0);
	if (n > 0)
		pem.bio = BIO_new_mem_buf(pem.text, (int)n);
	return pem;
}

static int
load_ca(SSL_CTX *ctx, int fd, const char *name, struct err *e)
{
	__attribute__((__cleanup__(pem_done))) struct pem pem = pem_open(fd);
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	int n = 0, r = 1;

	while (pem.bio && r == 1) {
		cleanup_with(X509_free) X509 *cert = PEM_read_bio_X509(pem.bio, NULL, NULL, NULL);

		if (!cert)
			break;
		r = X509_STORE_add_cert(store, cert);
		n++;
	}
	if (n == 0)
		return say_file(e, name, "a certificate");
	if (r != 1)
		return say_openssl(e, name);
	ERR_clear_error(); /* the error at the end of the file */
	return 0;
}

static int
load_cert(SSL_CTX *ctx, int fd, const char *name, struct err *e)
{
	__attribute__((__cleanup__(pem_done))) struct pem pem = pem_open(fd);
	cleanup_with(X509_free) X509 *cert = NULL;
	X509 *more;

	if (pem.bio)
		cert = PEM_read_bio_X509(pem.bio, NULL, NULL, NULL);
	if (!cert)
		return say_file(e, name, "a certificate");
	if (SSL_CTX_use_certificate(ctx, cert) != 1)
		return say_openssl(e, name);
	while ((more = PEM_read_bio_X509(pem.bio, NULL, NULL, NULL)))
		if (SSL_CTX_add0_chain_cert(ctx, more) != 1) {
			X509_free(more);
			return say_openssl(e, name);
		}
	ERR_clear_error();
	return 0;
}

/* Without this callback OpenSSL would ask for the password on a terminal. */
static int
no_password(char *buf, int size, int rwflag, void *userdata)
{
	return -1;
}

static int
load_key(SSL_CTX *ctx, int fd, const char *name, struct err *e)
{
	__attribute__((__cleanup__(pem_done))) struct pem pem = pem_open(fd);
	cleanup_with(EVP_PKEY_free) EVP_PKEY *key = NULL;

	if (pem.bio)
		key = PEM_read_bio_PrivateKey(pem.bio, NULL, no_password, NULL);
	if (!key)
		return say_file(e, name, "a private key without a password");
	/* OpenSSL compares it with the certificate's key. */
	if (SSL_CTX_use_PrivateKey(ctx, key) != 1) {
		char what[2 * NAME_SIZE];

		(void)snprintf(what, sizeof what, "%s does not belong to the certificate", name);
		return say_openssl(e, what);
	}
	return 0;
}

/* Makes the settings that clients and servers share. Returns NULL with *e. */
static SSL_CTX *
new_context(
    const SSL_METHOD *(*method)(void), int ca_fd, const char *ca_name, int verify, struct err *e)
{
	cleanup_with(SSL_CTX_free) SSL_CTX *ctx = NULL;

	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) == 1)
		ctx = SSL_CTX_new(method());
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, CIPHERS) != 1 ||
	    (SSL_CTX_set1_groups_list(ctx, GROUPS) != 1 &&
		SSL_CTX_set1_groups_list(ctx, NIST) != 1)) {
		(void)say_openssl(e, "begin TLS");
		return NULL;
	}
	ERR_clear_error(); /* the error for a group that it does not support */
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					SSL_MODE_RELEASE_BUFFERS);
	/* Without this mode OpenSSL returns after each non-application record; otherwise a peer
	 * could keep it busy with an endless series of them. */
	(void)SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, ca_fd >= 0 ? verify : SSL_VERIFY_NONE, NULL);
	if (ca_fd >= 0 && load_ca(ctx, ca_fd, ca_name, e) < 0)
		return NULL;
	return steal_ptr(&ctx);
}

struct ssl_ctx_st *
tls_new(int ca_fd, const char *ca_name, struct err *e)
{
	return new_context(TLS_client_method, ca_fd, ca_name, SSL_VERIFY_PEER, e);
}

struct ssl_ctx_st *
tls_new_server(int ca_fd, const char *ca_name, struct err *e)
{
	SSL_CTX *ctx = new_context(TLS_server_method, ca_fd, ca_name,
	    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, e);

	if (!ctx)
		return NULL;
	/* Without tickets each client proves itself in each handshake, and nothing of it is kept.
	 */
	(void)SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
	(void)SSL_CTX_set_max_cert_list(ctx, CERTS_MAX);
	return ctx;
}

int
tls_identify(struct ssl_ctx_st *ctx, int cert_fd, int key_fd, const char *block, struct err *e)
{
	char cert[NAME_SIZE], key[NAME_SIZE];
	int r;

	(void)snprintf(cert, sizeof cert, "%s.cert_file", block);
	(void)snprintf(key, sizeof key, "%s.key_file", block);
	r = load_cert(ctx, cert_fd, cert, e);
	return r < 0 ? r : load_key(ctx, key_fd, key, e);
}

void
tls_free(struct ssl_ctx_st *ctx)
{
	if (ctx)
		SSL_CTX_free(ctx);
}

/* Returns whether name is an address: a certificate can contain one, but SNI cannot. */
static bool
is_address(const char *name)
{
	struct in6_addr addr;

	return inet_pton(AF_INET, name, &addr) == 1 || inet_pton(AF_INET6, name, &addr) == 1;
}

struct ssl_st *
tls_begin(struct ssl_ctx_st *ctx, int fd, const char *server_name)
{
	SSL *ssl = SSL_new(ctx);

	if (!ssl)
		return NULL;
	/* The same rules as Nomad's: only names in subjectAltName count, and a wildcard replaces a
	 * whole label. */
	SSL_set_hostflags(
	    ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (SSL_set_fd(ssl, fd) != 1 || (server_name && SSL_set1_host(ssl, server_name) != 1) ||
	    (server_name && !is_address(server_name) &&
		SSL_set_tlsext_host_name(ssl, server_name) != 1)) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}

struct ssl_st *
tls_accept(struct ssl_ctx_st *ctx, int fd)
{
	SSL *ssl = SSL_new(ctx);

	if (ssl && SSL_set_fd(ssl, fd) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	if (ssl)
		SSL_set_accept_state(ssl);
	return ssl;
}

void
tls_end(struct ssl_st *ssl, bool polite)
{
	if (ssl && polite) {
		(void)SSL_shutdown(ssl);
		ERR_clear_error();
	}
	SSL_free(ssl);
}

void
tls_peer_subject(struct ssl_st *ssl, char ret[TLS_SUBJECT_SIZE])
{
	cleanup_with(X509_free) X509 *cert = SSL_get1_peer_certificate(ssl);

	ret[0] = '\0';
	if (!cert)
		return;
	/* It writes what is not printable as \xHH. */
	(void)X509_NAME_oneline(X509_get_subject_name(cert), ret, TLS_SUBJECT_SIZE);
	if (!ret[0])
		(void)strcpy(ret, "(no subject)");
}

static int
say_handshake(SSL *ssl, struct err *e)
{
	long verified = SSL_get_verify_result(ssl);

	if (verified == X509_V_OK)
		return say_openssl(e, "TLS handshake");
	ERR_clear_error();
	return err_say(e, -EPROTO, "the %s's certificate is refused: %s",
	    SSL_is_server(ssl) ? "client" : "server", X509_verify_cert_error_string(verified));
}

int
tls_shake(struct ssl_st *ssl, short *ret_events, struct err *e)
{
	int r = SSL_do_handshake(ssl);

	if (r == 1)
		return 1;
	switch (SSL_get_error(ssl, r)) {
	case SSL_ERROR_WANT_READ:
		*ret_events = POLLIN;
		return 0;
	case SSL_ERROR_WANT_WRITE:
		*ret_events = POLLOUT;
		return 0;
	default:
		return say_handshake(ssl, e);
	}
}

/* TLS 1.3 has no renegotiation and it is disabled in 1.2, so a read only ever waits for input and a
 * write only for output. */
static ssize_t
result(SSL *ssl, int r, const char *what, struct err *e)
{
	if (r > 0)
		return r;
	switch (SSL_get_error(ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		return say_openssl(e, what);
	}
}

ssize_t
tls_read(struct ssl_st *ssl, void *buf, size_t size, struct err *e)
{
	return result(ssl, SSL_read(ssl, buf, size > INT_MAX ? INT_MAX : (int)size), "TLS", e);
}

ssize_t
tls_write(struct ssl_st *ssl, const void *buf, size_t size, struct err *e)
{
	return result(ssl, SSL_write(ssl, buf, size > INT_MAX ? INT_MAX : (int)size), "TLS", e);
}
