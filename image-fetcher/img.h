/* SPDX-License-Identifier: Apache-2.0 */
/* img.h: what the image-fetcher's files share. Runs in: image-fetcher. */
#ifndef DROVER_IMAGE_FETCHER_IMG_H
#define DROVER_IMAGE_FETCHER_IMG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/cleanup.h"
#include "common/worker.h"

DEFINE_CLEANUP(json_t *, json_decref);

#define IMG_LAYERS_MAX   128               /* Docker's limit too */
#define IMG_MANIFEST_MAX ((size_t)4 << 20) /* bytes of a manifest, as registries have it */
#define IMG_CONFIG_MAX   ((size_t)1 << 20) /* of a configuration: the supervisor keeps it */

/* The description of an image, as the supervisor sent it. */
struct img_spec {
	const char *reference; /* "docker.io/library/redis:7" */
	const char *os, *architecture, *variant;
	const json_t *auth; /* credentials of the task, as a file for skopeo has them; NULL: none */
	const char *helper; /* a program docker-credential-<this> knows credentials; "": none */
	const json_t *have; /* array of texts: the layers (diff ids) that need not be fetched */
	bool insecure;      /* neither encryption nor certificates are demanded */
	uint64_t max_bytes; /* of all layers, compressed */
	unsigned idle_ms;   /* the longest time without a byte from the registry */
	int dir_fd;         /* of img_archive_copy(), to which skopeo gets access; -1: none */
};

/* How much has arrived, in memory that the workers share with the process that answers. */
struct img_progress {
	uint64_t bytes, total;
};

/* img_spec.c: reads the JSON, which must outlive *ret. Returns 0, or -EINVAL with *e. */
int img_spec_read(const json_t *json, struct img_spec *ret, struct err *e);
/* Whether a text is neither an option of skopeo nor anything but a name; it may be empty. */
bool img_is_word(const char *text);

/* img_auth.c: makes a file of credentials for skopeo. file_fd: the file that the agent's
 * configuration names, or -1. Returns a memfd; -ENOENT if there are none for this registry; another
 * -errno with *e. */
int img_auth_make(const struct img_spec *spec, int file_fd, struct err *e);

/* --- img_manifest.c: what a registry says about an image --- */

struct img_layer {
	char digest[72];  /* "sha256:" and 64 digits: of the blob */
	char diff_id[72]; /* of its contents, uncompressed */
	uint64_t size;    /* of the blob */
};

struct img_layers {
	struct img_layer v[IMG_LAYERS_MAX];
	size_t n;
	uint64_t bytes; /* the sum of their sizes */
};

/* Checks the digest by which the configuration is fetched: skopeo before 1.15.1 (CVE-2024-3727)
 * puts it into a url as it stands. Returns 0, or -EBADMSG with *e. */
int img_manifest_check_config(const json_t *manifest, struct err *e);
/* Reads an OCI manifest and the configuration that it names, and checks that they belong together.
 * Returns 0, or -EBADMSG with *e. */
int img_manifest_read(
    const json_t *manifest, const json_t *config, struct img_layers *ret, struct err *e);
bool img_is_digest(const char *text);

/* --- img_proxy.c: skopeo's image proxy, a child process that speaks with the registry --- */

struct img_proxy {
	int sock; /* -1: it does not run */
	unsigned idle_ms;
	bool has_auth; /* it has credentials for the registry */
};

/* Starts skopeo. auth_fd: a memfd with its file of credentials, or -1. Returns 0, or -errno with
 * *e. It ends with img_proxy_done(), or with this process. */
int img_proxy_start(struct img_proxy *p, const struct img_spec *spec, int auth_fd, struct err *e);
void img_proxy_done(struct img_proxy *p);
/* Calls a method; takes over args. ret_value (the caller's to release), ret_pipe and ret_fd may be
 * NULL; *ret_fd is -1 if the answer has no data. Returns 0; -EREMOTEIO with the registry's words in
 * *e, or -EAGAIN if another try may succeed; another -errno with *e. */
int img_proxy_call(struct img_proxy *p, const char *method, json_t *args, json_t **ret_value,
    json_int_t *ret_pipe, int *ret_fd, struct err *e);
/*
 * skopeo ends a pipe only when it is asked to finish it: img_proxy_finish() sends the request, and
 * img_proxy_finished() waits for the answer, which comes when all data are in the pipe. In between
 * the pipe must be read, and nothing else can be called. An error: the data are incomplete or do
 * not match their digest.
 */
int img_proxy_finish(struct img_proxy *p, json_int_t pipe, struct err *e);
int img_proxy_finished(struct img_proxy *p, struct err *e);

/* --- img_blob.c: blobs in the store, files that are named by the digits of their digest --- */

/* A blob that is being fetched. */
struct img_blob {
	const struct img_layer *layer;
	json_int_t pipe;
	int pipe_fd, file_fd;
	uint64_t bytes;
	void *sha;
};

/* Makes the blob's temporary file and locks it. wait: until another worker that fetches the same
 * blob has ended. Returns 1; 0 if the blob is in the store; -EAGAIN without *e if another worker
 * fetches it; -errno with *e. */
int img_blob_begin(
    struct img_blob *b, int blobs_fd, const struct img_layer *layer, bool wait, struct err *e);
/* Moves what the pipe has into the file. Returns the number of bytes, 0 at the end, -errno with
 * *e. */
ssize_t img_blob_read(struct img_blob *b, struct err *e);
/* Verifies size and digest, and gives the file its name; it is durable then. Returns 0, or -errno
 * with *e. */
int img_blob_commit(struct img_blob *b, int blobs_fd, struct err *e);
/* Frees it; a blob without commit is removed. */
void img_blob_done(struct img_blob *b, int blobs_fd);
/* Removes what has a name that begins with prefix: "": all blobs; ".": what workers that died have
 * left. */
void img_blobs_remove(int blobs_fd, const char *prefix);

/* --- img_pull.c: fetches an image. arg is a struct img_job. Runs in a worker. --- */

struct img_job {
	struct img_progress *told;
	unsigned idle_ms;
	bool has_auth_file; /* it is the third descriptor */
};
worker_fn img_pull;

#endif
