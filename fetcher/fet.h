/* SPDX-License-Identifier: Apache-2.0 */
/* fet.h: what the fetcher's files share. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_H
#define DROVER_FETCHER_FET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/worker.h"

struct agent_config;
struct config_artifact;

/* The description of an artifact, as the supervisor sent it. */
struct fet_spec {
	const char *source, *mode; /* mode: "any", "file" or "dir" */
	const json_t *options, *headers;
	bool insecure;
	/* Limits: bytes of a download, bytes of the unpacked files, number of files and
	 * directories.
	 */
	uint64_t max_bytes, max_unpacked, max_files;
	uint64_t http_ms, git_ms, s3_ms; /* the longest time of a transfer */
};

/* A request, in its worker. The working directory is the staging directory, where `out` becomes the
 * artifact: a file or a directory. */
struct fet {
	struct fet_spec spec;
	const struct config_artifact *config;
	int dir_fd;                /* the staging directory */
	struct fet_progress *told; /* shared with the process that answers */
	uint64_t files, bytes;     /* of what was made so far */
};

/* Shared by the worker and the process that answers. */
struct fet_progress {
	uint64_t bytes, total;
	bool transfers; /* a server is sending; false while it is unpacked */
	bool give_up;   /* to the worker: it is too slow */
};

/* fet_slow.c: for a transfer that is given up. Returns -EBUSY. */
int fet_say_slow(struct err *e);

/* fet_landlock.c: leaves this process, and what it starts, only what a transfer needs of the
 * machine's files, and write access to the directory dir_fd. Returns 0, 1 if the kernel has no
 * Landlock, or -errno with *e. */
int fet_landlock(const struct config_artifact *config, int dir_fd, struct err *e);

/* fet_spec.c: reads the JSON, which must outlive *ret. Returns 0, or -EINVAL with *e. */
int fet_spec_read(const json_t *json, struct fet_spec *ret, struct err *e);

/* fet_get.c: fetches the artifact. arg is a struct fet_job. Runs in a worker. */
struct fet_job {
	const struct config_artifact *config;
	struct fet_progress *told;
};
worker_fn fet_get;

/* fet_http.c: writes what the url answers to file_fd. limit: of its bytes. Returns 0, or -errno
 * with *e, which never contains the url. */
struct fet_http {
	const char *url;
	const char *sign;            /* of curl's AWS_SIGV4; NULL: the request is not signed */
	const char *user, *password; /* for that */
	const char *token;           /* its session token, or NULL */
	uint64_t timeout_ms;
	bool is_elsewhere; /* the headers of the artifact are for another server */
};
int fet_http_get(
    struct fet *f, const struct fet_http *http, int file_fd, uint64_t limit, struct err *e);

/* Variables of the agent, if the configuration hands them to the fetcher: a file and a directory
 * with authorities. Nomad's fetcher, which is Go's, reads them too; libcurl and git do not by
 * themselves. */
#define FET_CA_VARIABLE     "SSL_CERT_FILE"
#define FET_CA_DIR_VARIABLE "SSL_CERT_DIR"

/* fet_file.c: copies a file of this machine to file_fd, if it is below a directory of
 * file_directories. limit: of its bytes. Returns 0, or -errno with *e. */
int fet_file_get(struct fet *f, const char *path, int file_fd, uint64_t limit, struct err *e);

#endif
