// SPDX-License-Identifier: Apache-2.0
/* fuzz_local_jwt.c: any text as the token of a task. Most texts are not base64, so one with lines
 * is the head, the body and the signature, which are encoded here. */
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "supervisor/server/sign/local_verify.h"
#include "tests/fuzz/fuzz.h"

/* Reads the head, the body and the signature, though nobody signed them. */
static void
read_token(const char *token)
{
	struct local_claims claims = { 0 };
	struct local_jwt t;
	struct err e = { 0 };

	if (local_jwt_read(token, &t, &e) < 0) {
		HOLDS(e.code < 0 && e.msg[0]);
		return;
	}
	HOLDS(t.signed_len < strlen(token) && token[t.signed_len] == '.');
	HOLDS(!t.signature || t.signature_len < strlen(token));
	if (local_jwt_claims(token, &t, &claims, &e) < 0)
		HOLDS(e.code < 0 && e.msg[0]);
	else
		HOLDS(claims.namespace && claims.job_id && claims.task && !claims.key_id);
	local_claims_done(&claims);
	local_jwt_done(&t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = strndup((const char *)data, size);
	cleanup_free char *token = malloc(BASE64_SIZE(size) + 8);
	char *rest = text, *at = token, *part;

	HOLDS(text && token);
	read_token(text);
	for (int i = 0; i < 3; i++) {
		part = i < 2 ? strsep(&rest, "\n") : rest;
		at += part ? base64url_encode(part, strlen(part), at) : 0;
		*at++ = i < 2 ? '.' : '\0';
	}
	read_token(token);
	return 0;
}
