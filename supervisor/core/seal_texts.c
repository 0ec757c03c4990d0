// SPDX-License-Identifier: Apache-2.0
/* seal_texts.c: seals lists of texts. Runs in: supervisor. */
#include "supervisor/core/seal_texts.h"

#include <string.h>

#include "common/mem.h"
#include "model/engine/containers.h"

void
seal_put_text(struct seal_texts *texts, const char *text)
{
	size_t size = strlen(str(text)) + 1;

	if (texts->at)
		memcpy(texts->at + texts->len, str(text), size);
	texts->len += size;
}

void
seal_put_map(struct seal_texts *texts, const struct string_map *map)
{
	for (size_t i = 0; i < map->n; i++) {
		seal_put_text(texts, map->v[i].key);
		seal_put_text(texts, map->v[i].value);
	}
}

int
seal_close_texts(struct seal *seal, const char *about, seal_put_fn *put, const void *obj,
    struct sealed *ret, struct err *e)
{
	struct seal_texts texts = { 0 };
	size_t size;
	int r;

	put(&texts, obj); /* counts */
	size = texts.len;
	if (size == 0)
		return 0;
	texts = (struct seal_texts){ .at = mem_alloc(size) };
	put(&texts, obj);
	r = seal_close(seal, about, texts.at, size, ret, e);
	seal_wipe(texts.at, size);
	return r;
}

const char *
seal_take_text(const char **at, size_t *left)
{
	const char *text = *at;
	size_t size = strnlen(text, *left) + 1;

	if (size > *left)
		return NULL;
	*at += size;
	*left -= size;
	return text;
}

void
seal_take_map(const char **at, size_t *left, struct string_map *map)
{
	const char *key, *value;

	while ((key = seal_take_text(at, left)) && (value = seal_take_text(at, left)))
		string_map_append(map, key, value);
}

bool
seal_open_texts(const struct seal *seal, const char *about, const void *bytes, size_t len,
    seal_take_fn *take, void *obj)
{
	uint8_t *plain = NULL;
	size_t plain_len = 0;

	if (seal_open(seal, about, bytes, len, &plain, &plain_len) < 0)
		return false;
	take(obj, (const char *)plain, plain_len);
	seal_wipe(plain, plain_len);
	return true;
}
