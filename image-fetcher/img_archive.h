/* SPDX-License-Identifier: Apache-2.0 */
/* img_archive.h: files with images. A task's processes may change each byte of such a file at any
 * time. Runs in: a worker of the image-fetcher. */
#ifndef DROVER_IMAGE_FETCHER_IMG_ARCHIVE_H
#define DROVER_IMAGE_FETCHER_IMG_ARCHIVE_H

#include <stdint.h>

#include "common/worker.h"

struct img_archive_load_req;
struct img_progress;

/* The worker of IMG_ARCHIVE_DIGEST_REQ; arg is a uint64_t, the most bytes. */
worker_fn img_archive_digest;
/*
 * Copies the archive into the directory, uncompressed, if its SHA-256 is `digest`, and finds out
 * what it is. An OCI layout is unpacked there. Returns how names of skopeo for images in it begin,
 * with the directory as IMG_DIR; NULL with *e: -ESTALE if it has another digest, -EBADMSG if it is
 * none, -EFBIG.
 */
const char *img_archive_copy(
    int archive_fd, int dir_fd, const char *digest, uint64_t max_bytes, struct err *e);
/* The path by which skopeo finds the directory. */
#define IMG_DIR "/proc/self/fd/4"

/* img_pull.c: loads an image from an archive. arg is a struct img_load_job. Runs in a worker. */
struct img_load_job {
	struct img_progress *told;
	const struct img_archive_load_req *req;
};
worker_fn img_load;

#endif
