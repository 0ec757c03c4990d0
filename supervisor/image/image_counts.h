/* SPDX-License-Identifier: Apache-2.0 */
/* image_counts.h: what is counted of images, for metrics. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_IMAGE_IMAGE_COUNTS_H
#define DROVER_SUPERVISOR_IMAGE_IMAGE_COUNTS_H

#include <stdint.h>

struct sup;

/* Since the start of the supervisor. Images from archives are not pulled. */
struct image_counts {
	uint64_t pulls, failed_pulls;
	uint64_t pulled_bytes; /* of layers, as registries sent them */
	uint64_t collected;    /* images that image_gc.c removed */
};
/* Returns the counts, for those who count to change them. */
struct image_counts *image_counts(void);

/* The number and the size of all images of this node. */
struct image_sizes {
	uint64_t images, layers; /* a layer of several images counts once */
	uint64_t bytes;          /* of the layers' blobs, which may be compressed */
};
struct image_sizes images_measure(const struct sup *sup);

#endif
