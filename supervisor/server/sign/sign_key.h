/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sign_key.h: one key pair with which the embedded server signs tokens (RFC 7519, JWT): Ed25519
 * (EdDSA, RFC 8037) or RSA with 2048 bits (RS256, RFC 7518). Runs in: supervisor.
 *
 * On a machine of 2020 a pair of RSA takes 30 to 100 ms to make, and a signature of it 2 ms;
 * Ed25519 takes 0.04 ms for either.
 */
#ifndef DROVER_SUPERVISOR_SERVER_SIGN_SIGN_KEY_H
#define DROVER_SUPERVISOR_SERVER_SIGN_SIGN_KEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sign_key;

enum sign_algorithm { SIGN_EDDSA, SIGN_RS256, SIGN_ALGORITHMS };

/* The values of "alg" in a token: "EdDSA", "RS256". */
extern const char *const sign_algorithm_names[SIGN_ALGORITHMS];

/* Makes a new pair of Ed25519. The caller frees the result with sign_key_free(), which ignores
 * NULL. */
struct sign_key *sign_key_new(void);
void sign_key_free(struct sign_key *key);

/* Makes a new pair of RSA in some hundred steps of at most a few milliseconds. A step returns NULL
 * if there must be another one; else the pair, after which only sign_maker_free() may be called,
 * which ignores NULL. */
struct sign_maker *sign_maker_new(void);
struct sign_key *sign_maker_step(struct sign_maker *m);
void sign_maker_free(struct sign_maker *m);

/* The secret of a pair as bytes, from which sign_key_from_secret() makes the pair again. The caller
 * frees *ret with seal_wipe(). NULL: they are not such a secret. */
void sign_key_secret(const struct sign_key *key, uint8_t **ret, size_t *ret_len);
struct sign_key *sign_key_from_secret(
    enum sign_algorithm algorithm, const uint8_t *secret, size_t len);

/* Returns the public key as a JSON Web Key (RFC 7517) with this id: a new reference. */
json_t *sign_key_public(const struct sign_key *key, const char *id);

/* Returns the token with these claims in its compact form, which names the key by its id. The
 * caller frees it. */
char *sign_key_token(const struct sign_key *key, const char *id, const json_t *claims);

/* Returns whether this pair made the signature of len bytes. */
bool sign_key_verify(const struct sign_key *key, const char *text, size_t len,
    const uint8_t *signature, size_t signature_len);

#endif
