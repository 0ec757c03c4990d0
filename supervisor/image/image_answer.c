// SPDX-License-Identifier: Apache-2.0
/* image_answer.c: descriptions of images, from the image-fetcher and from rows. Runs in:
 * supervisor. */
#include <errno.h>
#include <string.h>

#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/image/images.h"

#define PREFIX     "sha256:"
#define PREFIX_LEN (sizeof PREFIX - 1)

/* Copies the digits of a digest. */
static bool
read_digest(const json_t *json, char ret[IMAGE_HEX_SIZE])
{
	const char *text = json_string_value(json);

	if (!text || strncmp(text, PREFIX, PREFIX_LEN) != 0 || strlen(text + PREFIX_LEN) != 64 ||
	    strspn(text + PREFIX_LEN, "0123456789abcdef") != 64)
		return false;
	(void)strcpy(ret, text + PREFIX_LEN);
	return true;
}

int
image_layers_read(const json_t *json, struct image_layer **ret_layers, size_t *ret_n, struct err *e)
{
	size_t n = json_array_size(json);
	cleanup_free struct image_layer *layers = NULL;

	if (!json_is_array(json) || n > IMAGE_LAYERS_MAX)
		return err_say(e, -EBADMSG, "the description of an image has no valid layers");
	layers = mem_zeroed(n + 1, sizeof *layers);
	for (size_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(json, i);

		if (!read_digest(json_object_get(one, "diff_id"), layers[i].id) ||
		    !read_digest(json_object_get(one, "digest"), layers[i].blob))
			return err_say(
			    e, -EBADMSG, "the description of an image has a layer without digest");
		layers[i].bytes = (uint64_t)json_integer_value(json_object_get(one, "size"));
	}
	*ret_layers = steal_ptr(&layers);
	*ret_n = n;
	return 0;
}

json_t *
image_layers_json(const struct image *image)
{
	json_t *list = json_array();

	for (size_t i = 0; i < image->n_layers; i++) {
		char id[IMAGE_HEX_SIZE + PREFIX_LEN], blob[IMAGE_HEX_SIZE + PREFIX_LEN];

		(void)strcat(strcpy(id, PREFIX), image->layers[i].id);
		(void)strcat(strcpy(blob, PREFIX), image->layers[i].blob);
		(void)json_array_append_new(
		    list, json_pack("{s:s, s:s, s:I}", "diff_id", id, "digest", blob, "size",
			      (json_int_t)image->layers[i].bytes));
	}
	return list;
}

int
image_answer_read(const void *text, size_t len, char ret_digest[80], json_t **ret_config,
    struct image_layer **ret_layers, size_t *ret_n, struct err *e)
{
	cleanup_json json_t *json =
	    len > 0 ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_t *config = json_object_get(json, "config");
	char hex[IMAGE_HEX_SIZE];
	int r;

	if (!json_is_object(config) || !read_digest(json_object_get(json, "digest"), hex))
		return err_say(e, -EBADMSG, "the image-fetcher's answer is not valid");
	r = image_layers_read(json_object_get(json, "layers"), ret_layers, ret_n, e);
	if (r < 0)
		return r;
	(void)strcat(strcpy(ret_digest, PREFIX), hex);
	(void)json_object_del(config, "history"); /* nobody needs it, and it may be long */
	*ret_config = json_incref(config);
	return 0;
}
