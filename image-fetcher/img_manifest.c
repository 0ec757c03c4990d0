// SPDX-License-Identifier: Apache-2.0
/* img_manifest.c: manifests and configurations of images (OCI image specification 1.0). skopeo has
 * turned those of Docker into these. Runs in: a worker of the image-fetcher. */
#include <errno.h>
#include <string.h>

#include "image-fetcher/img.h"

bool
img_is_digest(const char *text)
{
	return strncmp(text, "sha256:", 7) == 0 && strlen(text + 7) == 64 &&
	       strspn(text + 7, "0123456789abcdef") == 64;
}

static int
read_layer(const json_t *json, const json_t *diff_id, struct img_layer *ret, struct err *e)
{
	const char *digest = json_string_value(json_object_get(json, "digest"));
	const char *media = json_string_value(json_object_get(json, "mediaType"));
	const json_t *size = json_object_get(json, "size");
	const char *id = json_string_value(diff_id);

	if (!digest || !img_is_digest(digest) || !json_is_integer(size) ||
	    json_integer_value(size) < 0)
		return err_say(
		    e, -EBADMSG, "a layer of its manifest has no SHA-256 digest or no size");
	if (!id || !img_is_digest(id))
		return err_say(
		    e, -EBADMSG, "its configuration names a layer without a SHA-256 digest");
	if (media && strstr(media, "encrypted"))
		return err_say(e, -EBADMSG, "its layers are encrypted");
	(void)strcpy(ret->digest, digest);
	(void)strcpy(ret->diff_id, id);
	ret->size = (uint64_t)json_integer_value(size);
	return 0;
}

int
img_manifest_check_config(const json_t *manifest, struct err *e)
{
	const json_t *config = json_object_get(manifest, "config");
	const char *digest = json_string_value(json_object_get(config, "digest"));

	if (config && (!digest || !img_is_digest(digest)))
		return err_say(
		    e, -EBADMSG, "its manifest names a configuration without a SHA-256 digest");
	return 0;
}

int
img_manifest_read(
    const json_t *manifest, const json_t *config, struct img_layers *ret, struct err *e)
{
	const json_t *layers = json_object_get(manifest, "layers");
	const json_t *ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
	size_t n = json_array_size(layers);
	int r = 0;

	*ret = (struct img_layers){ 0 };
	if (!json_is_array(layers) || !json_is_object(config))
		return err_say(
		    e, -EBADMSG, "it is no container image: its manifest has no list of layers");
	if (n > IMG_LAYERS_MAX)
		return err_say(e, -EBADMSG, "it has %zu layers, more than the %d that are allowed",
		    n, IMG_LAYERS_MAX);
	if (json_array_size(ids) != n)
		return err_say(e, -EBADMSG,
		    "its manifest has %zu layers, its configuration names %zu", n,
		    json_array_size(ids));
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = read_layer(json_array_get(layers, i), json_array_get(ids, i), &ret->v[i], e);
		if (r == 0 && __builtin_add_overflow(ret->bytes, ret->v[i].size, &ret->bytes))
			r = err_say(e, -EBADMSG, "the sizes of its layers are not valid");
	}
	ret->n = n;
	return r;
}
