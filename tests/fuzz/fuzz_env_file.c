// SPDX-License-Identifier: Apache-2.0
/* fuzz_env_file.c: any text as lines KEY=VALUE. Each variable can be put into an environment, and
 * has no more bytes than the text. */
#include <string.h>

#include "model/env_file.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct string_map map = { 0 };
	struct err e = { 0 };
	int r = env_file_parse((const char *)data, size, &map, &e);

	HOLDS(r == 0 || (r < 0 && strncmp(e.msg, "line ", 5) == 0));
	HOLDS(map.n <= ENV_FILE_MAX);
	for (size_t i = 0; i < map.n; i++) {
		const char *key = map.v[i].key, *value = map.v[i].value ? map.v[i].value : "";

		HOLDS(*key && !strchr(key, '=') && strlen(key) + strlen(value) < size);
		free(map.v[i].key);
		free(map.v[i].value);
	}
	free(map.v);
	return 0;
}
