// SPDX-License-Identifier: Apache-2.0
/* img_spec.c: the description of an image, made by supervisor/image/image_pull.c. Runs in: a worker
 * of the image-fetcher. */
#include <errno.h>
#include <string.h>

#include "image-fetcher/img.h"

bool
img_is_word(const char *text)
{
	if (*text == '-')
		return false;
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
			return false;
	return true;
}

int
img_spec_read(const json_t *json, struct img_spec *ret, struct err *e)
{
	struct img_spec s = { 0 };
	json_t *auth = NULL, *have;
	json_int_t max_bytes;
	int insecure;

	if (json_unpack((json_t *)(uintptr_t)json, "{s:s, s:s, s:s, s:s, s:b, s:I, s:o, s?o, s:s}",
		"reference", &s.reference, "os", &s.os, "architecture", &s.architecture, "variant",
		&s.variant, "insecure", &insecure, "max_bytes", &max_bytes, "have", &have, "auth",
		&auth, "helper", &s.helper) < 0)
		return err_say(e, -EINVAL, "the description of the image is incomplete");
	if (!*s.reference || !img_is_word(s.reference) || !img_is_word(s.os) ||
	    !img_is_word(s.architecture) || !img_is_word(s.variant) || !img_is_word(s.helper) ||
	    strchr(s.helper, '/') || !json_is_array(have))
		return err_say(e, -EINVAL, "the description of the image is not valid");
	s.insecure = insecure;
	s.max_bytes = (uint64_t)max_bytes;
	s.have = have;
	s.auth = auth;
	s.dir_fd = -1;
	*ret = s;
	return 0;
}
