/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_hash.c: hashes of texts, and UUIDs. Runs in: cli, job-parser. */
#include <ctype.h>
#include <crypt.h>
#include <md5.h>
#include <sha1.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "common/id.h"
#include "hcl/hcl_func.h"

#define BCRYPT_COST        10
#define BCRYPT_COST_MIN    4
#define BCRYPT_COST_MAX    31
#define BCRYPT_BYTES_MAX   72
#define BCRYPT_SALT_BYTES  16
#define BCRYPT_ROUND_STEPS 256 /* a round takes about 50 µs */

typedef char *digest_fn(const uint8_t *data, size_t len, char *hex);

static struct hcl_value *
hash_text(struct hcl_call *c, digest_fn *digest)
{
	char hex[SHA512_DIGEST_STRING_LENGTH];

	hcl_count_bytes(c->h, c->args[0]->len);
	return hcl_text(c->h, digest((const uint8_t *)c->args[0]->string, c->args[0]->len, hex));
}

struct hcl_value *
hcl_fn_md5(struct hcl_call *c)
{
	return hash_text(c, MD5Data);
}

struct hcl_value *
hcl_fn_sha1(struct hcl_call *c)
{
	return hash_text(c, SHA1Data);
}

struct hcl_value *
hcl_fn_sha256(struct hcl_call *c)
{
	return hash_text(c, SHA256Data);
}

struct hcl_value *
hcl_fn_sha512(struct hcl_call *c)
{
	return hash_text(c, SHA512Data);
}

/* A cost that is too small becomes the default, as in the original. */
static unsigned
read_cost(struct hcl_call *c)
{
	int64_t cost = c->n > 1 ? hcl_arg_int(c, 1) : BCRYPT_COST;

	if (cost > BCRYPT_COST_MAX)
		hcl_refuse_argument(c, 1, "the cost must not be greater than %d", BCRYPT_COST_MAX);
	return cost < BCRYPT_COST_MIN ? BCRYPT_COST : (unsigned)cost;
}

struct hcl_value *
hcl_fn_bcrypt(struct hcl_call *c)
{
	struct crypt_data *data = hcl_alloc(c->h, sizeof *data);
	unsigned cost = read_cost(c);
	char salt[BCRYPT_SALT_BYTES], setting[CRYPT_GENSALT_OUTPUT_SIZE];
	const char *hash;

	if (c->args[0]->len > BCRYPT_BYTES_MAX)
		hcl_refuse_argument(
		    c, 0, "a password must not be longer than %d bytes", BCRYPT_BYTES_MAX);
	if (strlen(c->args[0]->string) != c->args[0]->len)
		hcl_refuse_argument(c, 0, "a password must not contain a NUL character");
	hcl_step(c->h, (uint64_t)BCRYPT_ROUND_STEPS << cost);
	if (getrandom(salt, sizeof salt, 0) != (ssize_t)sizeof salt)
		abort(); /* it does not fail once the machine has booted */
	if (!crypt_gensalt_rn("$2a$", cost, salt, sizeof salt, setting, sizeof setting))
		hcl_refuse_argument(c, 0, "the C library has no bcrypt");
	hash = crypt_r(c->args[0]->string, setting, data);
	if (!hash || *hash == '*')
		hcl_refuse_argument(c, 0, "the C library has no bcrypt");
	return hcl_text(c->h, hash);
}

static struct hcl_value *
uuid_text(struct hcl_call *c, const struct id *id)
{
	char text[ID_UUID_SIZE];

	id_to_uuid(id, text);
	return hcl_text(c->h, text);
}

struct hcl_value *
hcl_fn_uuidv4(struct hcl_call *c)
{
	struct id id = id_random_uuid();

	return uuid_text(c, &id);
}

/* Parses the forms that the original accepts: of 36 characters, with "urn:uuid:" before them, with
 * braces around them, or 32 digits. */
static bool
read_uuid(const char *s, size_t len, struct id *ret)
{
	char text[ID_UUID_SIZE] = "", *end = text;

	if (len == 45 && strncasecmp(s, "urn:uuid:", 9) == 0)
		s += 9;
	else if (len == 38)
		s++;
	else if (len != 36 && len != 32)
		return false;
	for (size_t i = 0; i < (len == 32 ? 32 : 36); i++) {
		*end++ = (char)tolower((unsigned char)s[i]);
		if (len == 32 && (i == 7 || i == 11 || i == 15 || i == 19))
			*end++ = '-';
	}
	return id_from_uuid(text, ret);
}

static struct id
read_namespace(struct hcl_call *c)
{
	static const struct {
		const char *name, *uuid;
	} known[] = {
		{ "dns", "6ba7b810-9dad-11d1-80b4-00c04fd430c8" },
		{ "url", "6ba7b811-9dad-11d1-80b4-00c04fd430c8" },
		{ "oid", "6ba7b812-9dad-11d1-80b4-00c04fd430c8" },
		{ "x500", "6ba7b814-9dad-11d1-80b4-00c04fd430c8" },
	};
	const char *name = c->args[0]->string;
	size_t len = c->args[0]->len;
	struct id id;

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(name, known[i].name) == 0) {
			name = known[i].uuid;
			len = strlen(name);
		}
	if (!read_uuid(name, len, &id))
		hcl_refuse_argument(c, 0,
		    "the namespace must be dns, url, oid, x500 or a UUID, not \"%.80s\"", name);
	return id;
}

struct hcl_value *
hcl_fn_uuidv5(struct hcl_call *c)
{
	struct id id = read_namespace(c);
	uint8_t digest[SHA1_DIGEST_LENGTH];
	SHA1_CTX sha;

	hcl_count_bytes(c->h, c->args[1]->len);
	SHA1Init(&sha);
	SHA1Update(&sha, id.b, sizeof id.b);
	SHA1Update(&sha, (const uint8_t *)c->args[1]->string, c->args[1]->len);
	SHA1Final(digest, &sha);
	memcpy(id.b, digest, sizeof id.b);
	id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x50);
	id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
	return uuid_text(c, &id);
}
