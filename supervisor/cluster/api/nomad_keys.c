// SPDX-License-Identifier: Apache-2.0
/* nomad_keys.c: the public keys by which anybody can verify tokens that servers signed, in the
 * forms of RFC 7517 and of OpenID Connect Discovery. Runs in: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/cluster/api/nomad_json.h"
#include "supervisor/cluster/api/nomad_mapped.h"

#define ED25519_BYTES 32

static json_t *
base64url_json(const uint8_t *bytes, size_t len)
{
	cleanup_free char *text = mem_alloc(BASE64_SIZE(len));

	(void)base64url_encode(bytes, len, text);
	return json_string(text);
}

/* --- the DER of an RSA key (RFC 8017, A.1.1): SEQUENCE { INTEGER n, INTEGER e } --- */

enum { DER_INTEGER = 0x02, DER_SEQUENCE = 0x30 };

/* Takes an object of this type from *at, *len, which become what follows. Returns its contents, or
 * NULL. */
static const uint8_t *
take_der(uint8_t type, const uint8_t **at, size_t *len, size_t *ret_len)
{
	const uint8_t *p = *at, *end = *at + *len;
	size_t n;

	if (end - p < 2 || p[0] != type)
		return NULL;
	n = p[1];
	p += 2;
	if (n & 0x80) {
		size_t bytes = n & 0x7f;

		if (bytes == 0 || bytes > 3 || (size_t)(end - p) < bytes)
			return NULL;
		for (n = 0; bytes > 0; bytes--)
			n = n << 8 | *p++;
	}
	if ((size_t)(end - p) < n)
		return NULL;
	*at = p + n;
	*len = (size_t)(end - *at);
	*ret_len = n;
	return p;
}

static bool
put_number(json_t *jwk, const char *name, const uint8_t **at, size_t *len)
{
	size_t n;
	const uint8_t *number = take_der(DER_INTEGER, at, len, &n);

	for (; number && n > 0 && number[0] == 0; number++)
		n--;
	return number && n > 0 && json_object_set_new(jwk, name, base64url_json(number, n)) == 0;
}

static bool
put_rsa(json_t *jwk, const uint8_t *bytes, size_t len)
{
	size_t n;
	const uint8_t *numbers = take_der(DER_SEQUENCE, &bytes, &len, &n);

	(void)json_object_set_new(jwk, "kty", json_string("RSA"));
	return numbers && put_number(jwk, "n", &numbers, &n) && put_number(jwk, "e", &numbers, &n);
}

/* --- answers --- */

static const char *
text_of(const json_t *object, const char *name)
{
	return str(json_string_value(json_object_get(object, name)));
}

/* Returns a key in the form of RFC 7517; NULL for a key of another kind, which later servers may
 * have. */
static json_t *
make_jwk(const json_t *key)
{
	const char *algorithm = text_of(key, "Algorithm"), *encoded = text_of(key, "PublicKey");
	cleanup_free uint8_t *bytes = mem_alloc(strlen(encoded) + 1);
	cleanup_json json_t *jwk = json_pack("{s:s, s:s, s:s}", "use", text_of(key, "Use"), "kid",
	    text_of(key, "KeyID"), "alg", algorithm);
	size_t len;

	if (!jwk || base64_decode(encoded, bytes, &len) < 0)
		return NULL;
	if (strcmp(algorithm, "RS256") == 0)
		return put_rsa(jwk, bytes, len) ? steal_ptr(&jwk) : NULL;
	if (strcmp(algorithm, "EdDSA") != 0 || len != ED25519_BYTES)
		return NULL;
	(void)json_object_set_new(jwk, "kty", json_string("OKP"));
	(void)json_object_set_new(jwk, "crv", json_string("Ed25519"));
	(void)json_object_set_new(jwk, "x", base64url_json(bytes, len));
	return steal_ptr(&jwk);
}

void
reply_keys(struct api_req *req, const void *body, size_t len)
{
	cleanup_json json_t *object = nomad_take_object(req, body, len);
	json_t *keys = json_array(), *key, *jwk;
	size_t i;

	json_array_foreach (json_object_get(object, "PublicKeys"), i, key)
		if ((jwk = make_jwk(key)))
			(void)json_array_append_new(keys, jwk);
	if (object)
		api_reply_json(req, json_pack("{s:O}", "keys", keys));
	json_decref(keys);
}

void
reply_discovery(struct api_req *req, const void *body, size_t len)
{
	static const char *const names[][2] = { { "Issuer", "issuer" }, { "JWKS", "jwks_uri" },
		{ "IDTokenAlgs", "id_token_signing_alg_values_supported" },
		{ "ResponseTypes", "response_types_supported" },
		{ "Subjects", "subject_types_supported" } };
	cleanup_json json_t *object = nomad_take_object(req, body, len);
	json_t *found = json_object_get(object, "OIDCDiscovery"), *shown;

	if (!object)
		return;
	if (!json_is_object(found)) {
		api_reply_error(req, 404, "OIDC Discovery endpoint disabled");
		return;
	}
	shown = json_object();
	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		(void)json_object_set(shown, names[i][1], json_object_get(found, names[i][0]));
	api_reply_json(req, shown);
}
