/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_gc.h: which images tasks use, and the removal of those that none uses: image_delay after
 * the last use, and at once while the disk is too full. Images that an operator pulled are kept.
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_IMAGE_IMAGE_GC_H
#define DROVER_SUPERVISOR_IMAGE_IMAGE_GC_H

#include <stdbool.h>
#include <sys/queue.h>

#include "supervisor/core/sup.h"

struct image;

/* The use of the image of this name by a task, also before the task's start and between its runs.
 * Zeroed: none. */
struct image_use {
	TAILQ_ENTRY(image_use) link;
	const char *name; /* of image_ref_format(); must stay valid */
};

/* Returns the layers of an image as run_layers() does; the caller frees them. */
struct image;
char *image_list_layers(const struct image *image);

void image_use_begin(struct sup *sup, struct image_use *use, const char *name);
/* Does nothing if there is none. */
void image_use_end(struct sup *sup, struct image_use *use);
/* Returns whether a task uses the image. */
bool image_has_user(struct sup *sup, const struct image *image);
/* Has the uses of images examined soon: an image was pulled, or a run has ended, whose layers are a
 * use too. */
void images_check_soon(struct sup *sup);

/* Removes one image: of those that no task uses, the one whose last use is the oldest. disk says in
 * the log how full it is. Returns false if there is none, and the layers of none are being removed.
 */
bool images_remove_oldest(struct sup *sup, const char *disk);

#endif
