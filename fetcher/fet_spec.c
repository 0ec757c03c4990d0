// SPDX-License-Identifier: Apache-2.0
/* fet_spec.c: the description of an artifact, made by supervisor/alloc/artifact_spec.c. Runs in: a
 * worker of the fetcher. */
#include <errno.h>
#include <string.h>

#include "fetcher/fet.h"

/* Each value must be a text without control characters: it becomes a header or a part of a url. */
static bool
has_plain_texts(const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
		const char *text = json_string_value(value);

		if (!text)
			return false;
		for (const char *at = key; *at; at++)
			if ((unsigned char)*at < ' ' || *at == 0x7f)
				return false;
		for (const char *at = text; *at; at++)
			if ((unsigned char)*at < ' ' || *at == 0x7f)
				return false;
	}
	return true;
}

int
fet_spec_read(const json_t *json, struct fet_spec *ret, struct err *e)
{
	json_int_t max_bytes, max_unpacked, max_files, http_ms, git_ms, s3_ms;
	json_t *options, *headers;
	const char *source, *mode;
	int insecure;

	if (json_unpack((json_t *)(uintptr_t)json,
		"{s:s, s:s, s:o, s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "source", &source,
		"mode", &mode, "options", &options, "headers", &headers, "insecure", &insecure,
		"max_bytes", &max_bytes, "max_unpacked", &max_unpacked, "max_files", &max_files,
		"http_ms", &http_ms, "git_ms", &git_ms, "s3_ms", &s3_ms) < 0)
		return err_say(e, -EINVAL, "the description of the artifact is incomplete");
	for (const char *at = source; *at; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return err_say(e, -EINVAL, "the source has a space or control character");
	if (!has_plain_texts(options) || !has_plain_texts(headers))
		return err_say(e, -EINVAL, "an option or header has a control character");
	if (strcmp(mode, "any") != 0 && strcmp(mode, "file") != 0 && strcmp(mode, "dir") != 0)
		return err_say(e, -EINVAL, "there is no mode \"%.40s\"", mode);
	*ret = (struct fet_spec){
		.source = source,
		.mode = mode,
		.options = options,
		.headers = headers,
		.insecure = insecure,
		.max_bytes = (uint64_t)max_bytes,
		.max_unpacked = (uint64_t)max_unpacked,
		.max_files = (uint64_t)max_files,
		.http_ms = (uint64_t)http_ms,
		.git_ms = (uint64_t)git_ms,
		.s3_ms = (uint64_t)s3_ms,
	};
	return 0;
}
