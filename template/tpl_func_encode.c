/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_encode.c: base64 and hashes. Runs in: template-renderer. */
#include <md5.h>
#include <sha1.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>

#include "template/go_base64.h"
#include "template/tpl_functions.h"

#define BLOCK_SIZE 64 /* of SHA-256 */

static struct go_value
decode_or_fail(struct go_call *c, enum go_base64 kind)
{
	struct text t = { .arena = c->arena };
	const char *why = go_decode_base64(&t, c->args[0], kind);

	if (why)
		go_call_fail(c, "%s: %s", c->name, why);
	return go_text_value(&t);
}

struct go_value
tpl_fn_base64_encode(struct go_call *c)
{
	return go_encode_base64(c->arena, c->args[0], GO_BASE64);
}

struct go_value
tpl_fn_base64_url_encode(struct go_call *c)
{
	return go_encode_base64(c->arena, c->args[0], GO_BASE64_URL);
}

struct go_value
tpl_fn_base64_decode(struct go_call *c)
{
	return decode_or_fail(c, GO_BASE64);
}

struct go_value
tpl_fn_base64_url_decode(struct go_call *c)
{
	return decode_or_fail(c, GO_BASE64_URL);
}

/* sprig's decoding returns the sentence. */
static struct go_value
decode_or_say(struct go_call *c, enum go_base64 kind)
{
	struct text t = { .arena = c->arena };
	const char *why = go_decode_base64(&t, c->args[0], kind);

	return why ? go_text(why) : go_text_value(&t);
}

struct go_value
tpl_fn_sprig_b64dec(struct go_call *c)
{
	return decode_or_say(c, GO_BASE64);
}

struct go_value
tpl_fn_sprig_b32enc(struct go_call *c)
{
	return go_encode_base64(c->arena, c->args[0], GO_BASE32);
}

struct go_value
tpl_fn_sprig_b32dec(struct go_call *c)
{
	return decode_or_say(c, GO_BASE32);
}

static struct go_value
hex_text(struct go_call *c, const char *hex)
{
	return go_string(arena_strndup(c->arena, hex, strlen(hex)), strlen(hex));
}

static struct go_value
hash(struct go_call *c, char *(*fn)(const uint8_t *, size_t, char *))
{
	char hex[SHA512_DIGEST_STRING_LENGTH];

	arena_count_bytes(c->arena, 4 * c->args[0].len);
	return hex_text(c, fn((const uint8_t *)c->args[0].s, c->args[0].len, hex));
}

struct go_value
tpl_fn_md5(struct go_call *c)
{
	return hash(c, MD5Data);
}

struct go_value
tpl_fn_sha1(struct go_call *c)
{
	return hash(c, SHA1Data);
}

struct go_value
tpl_fn_sha256(struct go_call *c)
{
	return hash(c, SHA256Data);
}

struct go_value
tpl_fn_sha512(struct go_call *c)
{
	return hash(c, SHA512Data);
}

static void
hmac_round(const uint8_t key[BLOCK_SIZE], uint8_t mask, const void *data, size_t len,
    uint8_t ret[SHA256_DIGEST_LENGTH])
{
	uint8_t block[BLOCK_SIZE];
	SHA2_CTX sha;

	for (size_t i = 0; i < BLOCK_SIZE; i++)
		block[i] = key[i] ^ mask;
	SHA256Init(&sha);
	SHA256Update(&sha, block, sizeof block);
	SHA256Update(&sha, data, len);
	SHA256Final(ret, &sha);
}

struct go_value
tpl_fn_hmac_sha256(struct go_call *c)
{
	struct go_value message = c->args[0], secret = c->args[1];
	uint8_t key[BLOCK_SIZE] = { 0 }, inner[SHA256_DIGEST_LENGTH], outer[SHA256_DIGEST_LENGTH];
	char hex[2 * SHA256_DIGEST_LENGTH + 1];
	SHA2_CTX sha;

	arena_count_bytes(c->arena, 4 * (message.len + secret.len));
	if (secret.len > BLOCK_SIZE) {
		SHA256Init(&sha);
		SHA256Update(&sha, (const uint8_t *)secret.s, secret.len);
		SHA256Final(key, &sha);
	} else {
		memcpy(key, secret.s, secret.len);
	}
	hmac_round(key, 0x36, message.s, message.len, inner);
	hmac_round(key, 0x5c, inner, sizeof inner, outer);
	for (size_t i = 0; i < sizeof outer; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", outer[i]);
	return hex_text(c, hex);
}

struct go_value
tpl_fn_sprig_adler32(struct go_call *c)
{
	uint32_t a = 1, b = 0;

	arena_count_bytes(c->arena, c->args[0].len);
	for (size_t i = 0; i < c->args[0].len; i++) {
		a = (a + (unsigned char)c->args[0].s[i]) % 65521;
		b = (b + a) % 65521;
	}
	return hex_text(c, arena_printf(c->arena, "%u", b << 16 | a));
}
