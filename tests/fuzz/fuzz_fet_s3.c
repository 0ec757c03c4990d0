// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_fet_s3.c: lists of a bucket's objects, and files with credentials, whose profile is up to
 * the first newline. Runs in: a fuzzer.
 */
#include <string.h>

#include "fetcher/fet_aws_keys.h"
#include "fetcher/fet_s3_list.h"
#include "tests/fuzz/fuzz.h"

static void
read_keys(const char *text, size_t len)
{
	const char *newline = memchr(text, '\n', len);
	char *profile = strndup(text, newline ? (size_t)(newline - text) : len);
	struct aws_keys keys = { 0 };

	HOLDS(profile != NULL);
	if (!aws_keys_parse(text, len, profile, &keys))
		HOLDS(!keys.id && !keys.secret && !keys.token);
	free(keys.id);
	free(keys.secret);
	free(keys.token);
	free(profile);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1); /* what is behind it is not read */
	struct s3_page page;
	struct err e = { 0 };

	HOLDS(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	if (s3_page_read(copy, size, &page, &e) == 0)
		HOLDS(!page.more || page.token);
	else
		HOLDS(e.msg[0]);
	for (size_t i = 0; i < page.keys.n; i++)
		HOLDS(page.keys.v[i] && strlen(page.keys.v[i]) <= size);
	s3_page_done(&page);
	read_keys(copy, size);
	free(copy);
	return 0;
}
