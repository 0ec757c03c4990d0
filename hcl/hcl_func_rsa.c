/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_rsa.c: decrypts with RSA (PKCS #1 v1.5). OpenSSL is loaded when it is needed, so that
 * the others who evaluate do not link it. Runs in: cli, job-parser. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <dlfcn.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <string.h>
#include <unistr.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"

#define TEXT(number) #number
#define LIBRARY(n)   "libcrypto.so." TEXT(n)
#define KEY_BITS_MIN 1024

#define FUNCTIONS(F)                                                                               \
	F(BIO_free)                                                                                \
	F(BIO_new_mem_buf)                                                                         \
	F(CRYPTO_free)                                                                             \
	F(ERR_clear_error)                                                                         \
	F(PEM_read_bio)                                                                            \
	F(RSA_bits)                                                                                \
	F(RSA_free)                                                                                \
	F(RSA_private_decrypt)                                                                     \
	F(RSA_size)                                                                                \
	F(d2i_RSAPrivateKey)

struct openssl {
#define F(name) __typeof__(name) *name;
	FUNCTIONS(F)
#undef F
};

static bool
load(struct openssl *ssl)
{
	static const char *const names[] = {
#define F(name) #name,
		FUNCTIONS(F)
#undef F
	};
	void *library = dlopen(LIBRARY(OPENSSL_SHLIB_VERSION), RTLD_NOW | RTLD_LOCAL);
	void **at = (void **)(void *)ssl;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		at[i] = library ? dlsym(library, names[i]) : NULL;
		if (!at[i])
			return false;
	}
	return true;
}

/* The key in the first PEM block of the text, or NULL and why. */
static RSA *
read_key(const struct openssl *ssl, const struct hcl_value *text, const char **ret_why)
{
	BIO *bio = ssl->BIO_new_mem_buf(text->string, (int)text->len);
	unsigned char *data = NULL;
	char *name = NULL, *header = NULL;
	const unsigned char *at;
	RSA *key = NULL;
	long len = 0;

	if (!bio || ssl->PEM_read_bio(bio, &name, &header, &data, &len) != 1) {
		*ret_why = "the key must be in PEM";
	} else if (strstr(header, "4,ENCRYPTED")) {
		*ret_why = "the key is encrypted with a password";
	} else {
		at = data;
		key = ssl->d2i_RSAPrivateKey(NULL, &at, len);
		*ret_why = "the key must be an RSA key of the form PKCS #1";
	}
	ssl->CRYPTO_free(name, __FILE__, __LINE__);
	ssl->CRYPTO_free(header, __FILE__, __LINE__);
	ssl->CRYPTO_free(data, __FILE__, __LINE__);
	(void)ssl->BIO_free(bio);
	return key;
}

struct hcl_value *
hcl_fn_rsadecrypt(struct hcl_call *c)
{
	const char *why = "the text cannot be decrypted with this key";
	struct openssl ssl;
	char *sealed;
	uint8_t *plain;
	size_t len;
	RSA *key;
	int n = -1;

	if (!hcl_base64_bytes(c->h, c->args[0]->string, c->args[0]->len, &sealed, &len))
		hcl_refuse_argument(c, 0, "the text to decrypt is not base64");
	plain = hcl_alloc(c->h, len + 1);
	hcl_count_bytes(c->h, c->args[1]->len);
	hcl_step(c->h, 10000);
	if (!load(&ssl))
		hcl_refuse_argument(c, 0, "this needs OpenSSL (%s), which is not installed",
		    LIBRARY(OPENSSL_SHLIB_VERSION));
	key = read_key(&ssl, c->args[1], &why);
	if (key && ssl.RSA_bits(key) < KEY_BITS_MIN) {
		why = "the key has less than 1024 bits";
	} else if (key) {
		why = "the text cannot be decrypted with this key";
		if (len == (size_t)ssl.RSA_size(key))
			n = ssl.RSA_private_decrypt(
			    (int)len, (const unsigned char *)sealed, plain, key, RSA_PKCS1_PADDING);
	}
	ssl.RSA_free(key);
	ssl.ERR_clear_error();
	if (n < 0)
		hcl_refuse_argument(c, key ? 0 : 1, "%s", why);
	if (u8_check(plain, (size_t)n))
		hcl_refuse_argument(c, 0, "the decrypted bytes are not UTF-8");
	return hcl_normal_string(c->h, (const char *)plain, (size_t)n);
}
