// SPDX-License-Identifier: Apache-2.0
/* csl_secret.c: secrets that every call must bring. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_secret.h"

#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "common/sha1.h"

#define DIGEST_HEX (2 * SHA1_SIZE)

struct csl_secrets {
	struct csl_secrets *next;
	char *key;
	char digest[DIGEST_HEX + 1];
};

int
csl_secret_require(struct csl_secrets **secrets, const char *text, struct err *e)
{
	const char *digest = strrchr(text, '=');
	struct csl_secrets *s;

	if (!digest || digest == text || strlen(digest + 1) != DIGEST_HEX ||
	    strspn(digest + 1, "0123456789abcdef") != DIGEST_HEX)
		return err_say(e, -EINVAL,
		    "-require-secret %s: it must be a name, '=', and the SHA-1 of the value as %d "
		    "lower-case hex digits",
		    text, DIGEST_HEX);
	s = mem_new(struct csl_secrets);
	s->key = mem_strndup(text, (size_t)(digest - text));
	(void)strcpy(s->digest, digest + 1);
	s->next = *secrets;
	*secrets = s;
	return 0;
}

static bool
digest_matches(const char *value, const char *wanted)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[SHA1_SIZE];
	char hex[DIGEST_HEX];
	struct sha1 sha;

	sha1_init(&sha);
	sha1_add(&sha, value, strlen(value));
	sha1_end(&sha, digest);
	for (size_t i = 0; i < SHA1_SIZE; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	return memcmp(hex, wanted, DIGEST_HEX) == 0;
}

int
csl_secret_check(struct csl_op *op, const ProtobufCMessage *req)
{
	const ProtobufCFieldDescriptor *field =
	    protobuf_c_message_descriptor_get_field_by_name(req->descriptor, "secrets");
	const char *at = (const char *)req, *value;
	size_t n;

	if (!field)
		return GRPC_STATUS_OK;
	n = *(const size_t *)(at + field->quantifier_offset);
	/* Most callers have no secrets for this call. */
	if (n == 0 && req->descriptor == &csi__v1__node_expand_volume_request__descriptor)
		return GRPC_STATUS_OK;
	for (const struct csl_secrets *s = op->csl->secrets; s; s = s->next) {
		value = csl_pairs_get(
		    *(Csi__V1__StringEntry *const *const *)(at + field->offset), n, s->key);
		if (!value)
			return csl_fail(op, GRPC_STATUS_UNAUTHENTICATED,
			    "the secret '%.64s' is missing", s->key);
		if (!digest_matches(value, s->digest))
			return csl_fail(op, GRPC_STATUS_UNAUTHENTICATED,
			    "the secret '%.64s' has a wrong value", s->key);
	}
	return GRPC_STATUS_OK;
}
