// SPDX-License-Identifier: Apache-2.0
/* fuzz_img_manifest.c: a manifest and, after the first newline, the configuration of its image.
 * Runs in: a fuzzer. */
#include <string.h>

#include "image-fetcher/img.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t len = newline ? (size_t)(newline - data) : size;
	json_t *manifest = json_loadb((const char *)data, len, JSON_DECODE_ANY, NULL),
	       *config = NULL;
	struct img_layers layers;
	struct err e = { 0 };

	if (newline)
		config =
		    json_loadb((const char *)newline + 1, size - len - 1, JSON_DECODE_ANY, NULL);
	if (img_manifest_read(manifest, config, &layers, &e) < 0)
		HOLDS(e.msg[0]);
	else
		for (size_t i = 0; i < layers.n; i++)
			HOLDS(layers.n <= IMG_LAYERS_MAX && img_is_digest(layers.v[i].digest) &&
			      img_is_digest(layers.v[i].diff_id) &&
			      layers.v[i].size <= layers.bytes);
	json_decref(manifest);
	json_decref(config);
	return 0;
}
