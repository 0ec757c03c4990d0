/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup_queue.h: requests to helpers that take long. Only some of a kind are sent at a time, so that
 * other requests to these helpers always find a worker; further ones wait. job-parser, the fetcher,
 * template-renderer, image-fetcher, image-unpacker and network-helper are started by the first
 * request, and ended after 30 s without one. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CORE_SUP_QUEUE_H
#define DROVER_SUPERVISOR_CORE_SUP_QUEUE_H

#include <stdint.h>

#include "supervisor/core/sup_child.h"

/* Each has its request in proto/ipc_records.def. */
enum queue {
	QUEUE_JOB,          /* par_job_parse_req */
	QUEUE_CONFIG,       /* par_config_evaluate_req */
	QUEUE_FETCH,        /* fet_artifact_get_req */
	QUEUE_PLACE,        /* file_artifact_place_req, without a descriptor */
	QUEUE_RENDER,       /* ren_render_req */
	QUEUE_IMAGE,        /* img_image_pull_req */
	QUEUE_BLOBS_DROP,   /* img_blobs_drop_req */
	QUEUE_DIGEST,       /* img_archive_digest_req */
	QUEUE_LOAD,         /* img_archive_load_req */
	QUEUE_UNPACK,       /* unp_layer_unpack_req */
	QUEUE_LAYER_REMOVE, /* unp_layer_remove_req */
	QUEUE_LAYERS,       /* unp_layer_list_req */
	QUEUE_NETWORK,      /* net_network_make_req */
	QUEUE_NETWORK_DROP, /* net_network_drop_req */
	QUEUE_NET_CHECK,    /* net_network_check_req */
	QUEUE_PLUGIN_LIST,  /* net_plugin_list_req */
	QUEUES
};

struct queued;

void queues_new(struct sup *sup);
/* After all owners of requests have ended. */
void queues_free(struct sup *sup);

/* Copies the request and takes over fd (-1: none). The callback is as that of child_call(), and not
 * called after queue_forget(). The returned handle is invalid when the callback runs. */
struct queued *queue_ask(
    struct sup *sup, enum queue queue, const void *req, int fd, call_cb *cb, void *arg);
/* The same for one of many owners, such as a hash of a job (not 0): one may have, rounded up, half
 * of the places that the others leave, so that the slow requests of one do not delay all others. */
struct queued *queue_ask_for(struct sup *sup, enum queue queue, uint64_t owner, const void *req,
    int fd, call_cb *cb, void *arg);
/* A request that still waits is not sent. Ignores NULL. */
void queue_forget(struct queued *q);
/* Another owner gets the answer of a request that was sent. */
void queue_hand_over(struct queued *q, call_cb *cb, void *arg);
/* True: the request was sent. */
bool queue_has_begun(const struct queued *q);

/* Makes a memfd with two texts, one after the other. Returns it, or -errno. */
int queue_texts(const char *first, size_t first_len, const char *second, size_t second_len);
/* For a callback with r < 0: a sentence about `what`, such as "this job file". */
void queue_explain(
    enum queue queue, int r, const char *what, const struct err *why, struct err *ret);

#endif
