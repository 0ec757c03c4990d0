// SPDX-License-Identifier: Apache-2.0
/* sign_key.c: key pairs that sign tokens. Runs in: supervisor. */
#include "supervisor/server/sign/sign_key.h"

#include <nettle/bignum.h>
#include <nettle/buffer.h>
#include <nettle/eddsa.h>
#include <nettle/rsa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define RSA_BITS     2048
#define RSA_BYTES    (RSA_BITS / 8)
#define RSA_EXPONENT 65537
#define PRIME_ROUNDS 30 /* a test by Baillie and others, and 6 of Miller and Rabin */

struct sign_key {
	enum sign_algorithm algorithm;
	/* EdDSA */
	uint8_t secret[ED25519_KEY_SIZE], public[ED25519_KEY_SIZE];
	/* RS256 */
	struct rsa_public_key rsa_public;
	struct rsa_private_key rsa;
};

const char *const sign_algorithm_names[SIGN_ALGORITHMS] = { "EdDSA", "RS256" };

/* --- pairs --- */

/* Of the type nettle_random_func. getrandom(2) gives up to 256 bytes whole, and does not fail once
 * the machine has booted. */
static void
fill_random(void *arg, size_t len, uint8_t *ret)
{
	(void)arg;
	for (size_t n; len > 0; len -= n, ret += n) {
		n = len < 256 ? len : 256;
		if (getrandom(ret, n, 0) != (ssize_t)n)
			abort();
	}
}

static struct sign_key *
new_key(enum sign_algorithm algorithm)
{
	struct sign_key *key = mem_new(struct sign_key);

	key->algorithm = algorithm;
	rsa_public_key_init(&key->rsa_public);
	rsa_private_key_init(&key->rsa);
	return key;
}

struct sign_key *
sign_key_new(void)
{
	struct sign_key *key = new_key(SIGN_EDDSA);

	fill_random(NULL, sizeof key->secret, key->secret);
	ed25519_sha512_public_key(key->public, key->secret);
	return key;
}

void
sign_key_free(struct sign_key *key)
{
	if (!key)
		return;
	rsa_public_key_clear(&key->rsa_public);
	rsa_private_key_clear(&key->rsa);
	explicit_bzero(key, sizeof *key);
	free(key);
}

void
sign_key_secret(const struct sign_key *key, uint8_t **ret, size_t *ret_len)
{
	struct nettle_buffer b;

	if (key->algorithm == SIGN_EDDSA) {
		*ret = mem_alloc(sizeof key->secret);
		*ret_len = sizeof key->secret;
		memcpy(*ret, key->secret, sizeof key->secret);
		return;
	}
	nettle_buffer_init(&b);
	if (!rsa_keypair_to_sexp(&b, "rsa-pkcs1", &key->rsa_public, &key->rsa))
		mem_exhausted();
	*ret = mem_alloc(b.size);
	*ret_len = b.size;
	memcpy(*ret, b.contents, b.size);
	explicit_bzero(b.contents, b.size);
	nettle_buffer_clear(&b);
}

struct sign_key *
sign_key_from_secret(enum sign_algorithm algorithm, const uint8_t *secret, size_t len)
{
	struct sign_key *key = new_key(algorithm);

	if (algorithm == SIGN_EDDSA && len == sizeof key->secret) {
		memcpy(key->secret, secret, len);
		ed25519_sha512_public_key(key->public, key->secret);
		return key;
	}
	if (algorithm == SIGN_RS256 &&
	    rsa_keypair_from_sexp(&key->rsa_public, &key->rsa, RSA_BITS, len, secret) &&
	    key->rsa_public.size == RSA_BYTES)
		return key;
	sign_key_free(key);
	return NULL;
}

/* --- a new pair of RSA --- */

struct sign_maker {
	struct sign_key *key; /* its primes are 0 until they are found */
};

struct sign_maker *
sign_maker_new(void)
{
	struct sign_maker *m = mem_new(struct sign_maker);

	m->key = new_key(SIGN_RS256);
	mpz_set_ui(m->key->rsa_public.e, RSA_EXPONENT);
	return m;
}

void
sign_maker_free(struct sign_maker *m)
{
	if (m)
		sign_key_free(m->key);
	free(m);
}

/* Sets a random odd number whose two highest bits are set, so that the product of two has RSA_BITS
 * bits. Returns whether it is a prime that suits the exponent. */
static bool
try_prime(mpz_t ret)
{
	uint8_t bytes[RSA_BYTES / 2];

	fill_random(NULL, sizeof bytes, bytes);
	bytes[0] |= 0xc0;
	bytes[sizeof bytes - 1] |= 1;
	nettle_mpz_set_str_256_u(ret, sizeof bytes, bytes);
	explicit_bzero(bytes, sizeof bytes);
	return mpz_probab_prime_p(ret, PRIME_ROUNDS) > 0 && mpz_fdiv_ui(ret, RSA_EXPONENT) != 1;
}

/* Computes the other numbers from the two primes (RFC 8017, 3.2). */
static void
finish_pair(struct sign_key *key)
{
	struct rsa_private_key *k = &key->rsa;
	mpz_t p1, q1, both;

	mpz_inits(p1, q1, both, NULL);
	mpz_sub_ui(p1, k->p, 1);
	mpz_sub_ui(q1, k->q, 1);
	mpz_lcm(both, p1, q1);
	mpz_mul(key->rsa_public.n, k->p, k->q);
	if (!mpz_invert(k->d, key->rsa_public.e, both) || !mpz_invert(k->c, k->q, k->p))
		abort(); /* neither prime is 1 modulo the exponent, and they differ */
	mpz_mod(k->a, k->d, p1);
	mpz_mod(k->b, k->d, q1);
	mpz_clears(p1, q1, both, NULL);
	if (!rsa_public_key_prepare(&key->rsa_public) || !rsa_private_key_prepare(k))
		abort();
}

struct sign_key *
sign_maker_step(struct sign_maker *m)
{
	struct rsa_private_key *k = &m->key->rsa;
	mpz_ptr prime = mpz_sgn(k->p) == 0 ? k->p : k->q;

	if (!try_prime(prime) || mpz_cmp(k->p, k->q) == 0) {
		mpz_set_ui(prime, 0);
		return NULL;
	}
	if (prime == k->p)
		return NULL;
	finish_pair(m->key);
	return steal_ptr(&m->key);
}

/* --- texts --- */

static json_t *
base64url_json(const uint8_t *bytes, size_t len)
{
	cleanup_free char *text = mem_alloc(BASE64_SIZE(len));

	(void)base64url_encode(bytes, len, text);
	return json_string(text);
}

json_t *
sign_key_public(const struct sign_key *key, const char *id)
{
	/* 65537 in as few bytes as possible */
	static const uint8_t exponent[] = { 1, 0, 1 };
	json_t *jwk = json_pack("{s:s, s:s, s:s}", "use", "sig", "kid", id, "alg",
	    sign_algorithm_names[key->algorithm]);
	uint8_t modulus[RSA_BYTES];

	if (key->algorithm == SIGN_EDDSA) {
		(void)json_object_set_new(jwk, "kty", json_string("OKP"));
		(void)json_object_set_new(jwk, "crv", json_string("Ed25519"));
		(void)json_object_set_new(
		    jwk, "x", base64url_json(key->public, sizeof key->public));
		return jwk;
	}
	nettle_mpz_get_str_256(sizeof modulus, modulus, key->rsa_public.n);
	(void)json_object_set_new(jwk, "kty", json_string("RSA"));
	(void)json_object_set_new(jwk, "n", base64url_json(modulus, sizeof modulus));
	(void)json_object_set_new(jwk, "e", base64url_json(exponent, sizeof exponent));
	return jwk;
}

/* Appends base64url of bytes to text. */
static char *
put_part(char *at, const void *bytes, size_t len)
{
	return at + base64url_encode(bytes, len, at);
}

/* Returns the length of the signature. */
static size_t
sign(const struct sign_key *key, const char *text, size_t len, uint8_t ret[RSA_BYTES])
{
	struct sha256_ctx hash;
	mpz_t number;

	if (key->algorithm == SIGN_EDDSA) {
		ed25519_sha512_sign(key->public, key->secret, len, (const uint8_t *)text, ret);
		return ED25519_SIGNATURE_SIZE;
	}
	sha256_init(&hash);
	sha256_update(&hash, len, (const uint8_t *)text);
	mpz_init(number);
	/* It blinds the secret against measurements, and checks the result. */
	if (!rsa_sha256_sign_tr(&key->rsa_public, &key->rsa, NULL, fill_random, &hash, number))
		abort();
	nettle_mpz_get_str_256(RSA_BYTES, ret, number);
	mpz_clear(number);
	return RSA_BYTES;
}

char *
sign_key_token(const struct sign_key *key, const char *id, const json_t *claims)
{
	cleanup_free char *head = mem_printf("{\"alg\":\"%s\",\"kid\":\"%s\",\"typ\":\"JWT\"}",
	    sign_algorithm_names[key->algorithm], id);
	cleanup_free char *body = json_dumps(claims, JSON_COMPACT);
	uint8_t signature[RSA_BYTES];
	char *token, *at;
	size_t n;

	if (!body)
		mem_exhausted(); /* strings of JSON are always valid */
	token = mem_alloc(
	    BASE64_SIZE(strlen(head)) + BASE64_SIZE(strlen(body)) + BASE64_SIZE(RSA_BYTES));
	at = put_part(token, head, strlen(head));
	*at++ = '.';
	at = put_part(at, body, strlen(body));
	n = sign(key, token, (size_t)(at - token), signature);
	*at++ = '.';
	(void)put_part(at, signature, n);
	return token;
}

bool
sign_key_verify(const struct sign_key *key, const char *text, size_t len, const uint8_t *signature,
    size_t signature_len)
{
	struct sha256_ctx hash;
	mpz_t number;
	bool valid;

	if (key->algorithm == SIGN_EDDSA)
		return signature_len == ED25519_SIGNATURE_SIZE &&
		       ed25519_sha512_verify(key->public, len, (const uint8_t *)text, signature);
	if (signature_len != RSA_BYTES)
		return false;
	sha256_init(&hash);
	sha256_update(&hash, len, (const uint8_t *)text);
	nettle_mpz_init_set_str_256_u(number, signature_len, signature);
	valid = rsa_sha256_verify(&key->rsa_public, &hash, number);
	mpz_clear(number);
	return valid;
}
