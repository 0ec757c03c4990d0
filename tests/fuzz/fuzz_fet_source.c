// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_fet_source.c: sources of artifacts, up to the first newline, and lists of checksums after
 * it. Runs in: a fuzzer.
 */
#include <string.h>

#include "fetcher/fet_checksum.h"
#include "fetcher/fet_s3.h"
#include "fetcher/fet_source.h"
#include "tests/fuzz/fuzz.h"

static void
look_into(struct fet_source *s)
{
	static const char *const getters[] = { "http", "https", "git", "s3", "file" };
	struct fet_s3 s3 = { 0 };
	struct err e = { 0 };
	bool known = false;
	char *url;

	for (size_t i = 0; i < sizeof getters / sizeof getters[0]; i++)
		known |= strcmp(s->getter, getters[i]) == 0;
	HOLDS(known && s->scheme && s->path);
	HOLDS(!strchr(fet_source_name(s), '/'));
	(void)fet_s3_read(s, &s3, &e);
	fet_s3_done(&s3);
	url = fet_source_url(s);
	HOLDS(strncmp(url, s->base, strlen(s->base)) == 0);
	free(url);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t len = newline ? (size_t)(newline - data) : size;
	char *text = strndup((const char *)data, len);
	struct fet_spec spec = { .source = text };
	struct checksum checksum;
	struct fet_source source;
	struct err e = { 0 };

	HOLDS(text != NULL);
	spec.options = json_object();
	if (fet_source_read(&spec, &source, &e) == 0)
		look_into(&source);
	else
		HOLDS(e.msg[0]);
	fet_source_done(&source);
	(void)checksum_parse(text, &checksum, &e);
	if (newline && checksum_find((const char *)newline + 1, size - len - 1, text, "/dir/a",
			   &checksum, &e) == 0)
		HOLDS(checksum.type < CHECKSUM_TYPES);
	json_decref((json_t *)(uintptr_t)spec.options);
	free(text);
	return 0;
}
