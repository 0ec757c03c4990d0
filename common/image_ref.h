/* SPDX-License-Identifier: Apache-2.0 */
/* image_ref.h: references to container images, as Docker spells them: "redis:7",
 * "ghcr.io/a/b@sha256:…". Runs in: supervisor, cli. */
#ifndef DROVER_COMMON_IMAGE_REF_H
#define DROVER_COMMON_IMAGE_REF_H

#include "common/err.h"

/* The longest values, with their NUL, that the distribution's reference grammar permits: a name
 * (registry and repository) of 255 bytes, a tag of 128, a digest of SHA-512. */
#define IMAGE_NAME_SIZE   256
#define IMAGE_TAG_SIZE    129
#define IMAGE_DIGEST_SIZE 136
#define IMAGE_REF_SIZE    (2 * IMAGE_NAME_SIZE + IMAGE_DIGEST_SIZE)

struct image_ref {
	char registry[IMAGE_NAME_SIZE];   /* "docker.io" where the text names none */
	char repository[IMAGE_NAME_SIZE]; /* "library/redis" */
	char tag[IMAGE_TAG_SIZE];         /* "latest" if the text has neither tag nor digest; "" if
					     it has a digest only */
	char digest[IMAGE_DIGEST_SIZE];   /* "sha256:…"; "" if the text has none */
};

/* Reads text. The prefixes "https://" and "docker://", which drivers of Nomad accept, are passed
 * over. Returns 0, or -EINVAL with *e: a sentence that says what is wrong with the text. */
int image_ref_parse(const char *text, struct image_ref *ret, struct err *e);

/* Writes the one spelling that all texts for the same image share: with registry, and with the
 * digest instead of the tag where there is one, because the digest alone decides. */
void image_ref_format(const struct image_ref *ref, char ret[IMAGE_REF_SIZE]);

#endif
