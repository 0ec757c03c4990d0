/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_load.h: images from archives, which are files of tasks. Such an image is known on this node
 * by its name in the archive and the digest of the archive, "docker.io/library/app:1#sha256:…". No
 * reference to an image has a "#", so a task without this archive never gets it, and a task with it
 * never gets another. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_IMAGE_IMAGE_LOAD_H
#define DROVER_SUPERVISOR_IMAGE_IMAGE_LOAD_H

#include "supervisor/image/images.h"

struct image_load;

/* As image_want(), for an image in the archive fd, a regular file, which it takes over.
 * request->text is the image's name in it; "": the archive has only one. Each call reads the whole
 * file, but only the first for the same archive loads the image. */
struct image_load *image_load(struct sup *sup, const struct image_request *request, int fd,
    image_cb *cb, void *arg, struct err *e);
/* The callback does not come any more. Ignores NULL. */
void image_load_forget(struct image_load *load);

/* As image_progress(); false while the archive is digested. */
bool image_load_progress(const struct image_load *load, uint64_t *ret_bytes, uint64_t *ret_total);

/* Returns an image that was loaded with this request->text and has these layers, as run_layers();
 * NULL: there is none. */
const struct image *image_find_loaded(struct sup *sup, const char *text, const char *layers);

/* --- image_pull.c: for image_load.c --- */

/* As image_want(), for an image of this name. It takes over archive_fd: requests for the same name
 * have archives of the same digest. */
struct image_want *image_want_loaded(struct sup *sup, const char *name,
    const struct image_request *request, int archive_fd, image_cb *cb, void *arg);

#define IMAGE_BYTES_MAX ((uint64_t)64 << 30) /* of an archive; of the layers of a pull */
#define IMAGE_PULL_MS   (5 * 60 * 1000)      /* as image_pull_timeout of Nomad's docker driver */

#endif
