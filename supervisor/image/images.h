/* SPDX-License-Identifier: Apache-2.0 */
/*
 * images.h: the container images of this node. An image is fetched by the image-fetcher (its blobs,
 * to <data>/images/blobs), and its layers are unpacked by the image-unpacker (to
 * <data>/images/layers); then it has a row. Layers that no image has are removed. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_IMAGE_IMAGES_H
#define DROVER_SUPERVISOR_IMAGE_IMAGES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/core/sup.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"

#define IMAGE_LAYERS_MAX 128
#define IMAGE_HEX_SIZE   72 /* the 64 digits of a SHA-256, as messages to helpers have them */

/* A layer, by the digest of its contents; blob is that of what a registry has. */
struct image_layer {
	char id[IMAGE_HEX_SIZE], blob[IMAGE_HEX_SIZE];
	uint64_t bytes; /* of the blob */
};

struct image {
	TAILQ_ENTRY(image) link;
	struct dirty row;
	char *name;                 /* in the one spelling of image_ref_format() */
	char digest[80];            /* of its manifest, "sha256:…" */
	json_t *config;             /* OCI image configuration */
	struct image_layer *layers; /* from the lowest */
	size_t n_layers;
	int64_t pulled_ns;
	int64_t used_ns; /* the end of its last use; 0: none has ended */
	bool in_use;     /* as far as image_gc.c has examined it */
	bool kept;       /* an operator pulled it: it is removed by hand only */
	bool removed;    /* its row is to be deleted */
};

/* Reads the rows. Returns 0, or -errno with *e. */
int images_new(struct sup *sup, struct err *e);
void images_free(struct sup *sup);

/* Returns the image; NULL: it is not on this node. */
const struct image *image_find(struct sup *sup, const char *name);
/* Forgets the image. Returns 0, or -ENOENT. */
int image_remove(struct sup *sup, const char *name);
/* Returns a list for the API: images that are here, are being pulled, or could not be pulled. */
json_t *images_show(struct sup *sup);

struct image_request {
	const char *text;   /* as the user wrote it */
	const json_t *auth; /* contents of a file of credentials for skopeo; NULL: anonymous */
	bool force;         /* asks the registry also if the image is here */
	bool keep;          /* the image is kept without a use */
	unsigned timeout_ms, idle_ms; /* 0: the defaults */
	uint64_t owner;               /* as for queue_ask_for(); 0: an operator */
};

/* Asks for an image. Requests for the same image share a pull. The callback, which never comes from
 * within this call, has the image, valid until the next turn, or NULL and the reason. Returns NULL
 * with *e if the request is not valid; else a handle for image_forget(), invalid after the
 * callback. */
struct image_want;
typedef void image_cb(struct sup *sup, void *arg, const struct image *image, const struct err *why);
struct image_want *image_want(
    struct sup *sup, const struct image_request *request, image_cb *cb, void *arg, struct err *e);
/* Finds how many bytes of it have been fetched, and of how many (0: it is not known yet). Returns
 * false while nothing is being fetched: it waits, or its layers are being unpacked. */
bool image_progress(const struct image_want *want, uint64_t *ret_bytes, uint64_t *ret_total);
/* The callback does not come any more; the pull ends if nobody else wants it. Ignores NULL. */
void image_forget(struct image_want *want);

/* Reads an answer to unp_layer_list_req and calls back with the digits of each layer that neither
 * an image nor a container has. While a pull runs or layers are removed, theirs are left out.
 * Returns 0, or -errno with *e. */
int layers_each_unknown(struct sup *sup, int list_fd, void (*fn)(void *arg, const char *digits),
    void *arg, struct err *e);
/* Returns whether there was a pull on this node, ever. */
bool images_are_used(const struct sup *sup);

/* --- for the files of this room --- */

/* What the store has. */
enum layer_state { LAYER_UNPACKING, LAYER_PRESENT, LAYER_REMOVING };

struct layer {
	TAILQ_ENTRY(layer) link;
	struct sup *sup;
	enum layer_state state;
	char id[IMAGE_HEX_SIZE], blob[IMAGE_HEX_SIZE]; /* blob: that is unpacked */
	struct err why;                                /* why it could not be unpacked */
};

struct images {
	TAILQ_HEAD(image_list, image) list;
	TAILQ_HEAD(layer_list, layer) layers;
	TAILQ_HEAD(pull_list, pull) pulls;
	size_t n_active; /* pulls that have not ended */
	bool listed;     /* layers has what the store has */
	bool listing;
	bool has_blobs; /* the store may have some */
	bool used;      /* there was a pull on this node, ever */
	struct dirty use_row;
	struct queued *drop; /* the request to remove all blobs */
	struct sup_timer check, gc;
	TAILQ_HEAD(, image_use) uses; /* image_gc.h */
	bool check_is_soon;           /* gc is set for an examination of all uses */
};

/* image_layers.c. Pulls are told of each change by pulls_advance(). */
struct layer *layer_find(struct sup *sup, const char *id);
/* Makes `layers` hold what the store has, if it does not yet. */
void layers_list(struct sup *sup);
void layer_unpack(struct sup *sup, const struct image_layer *l);
/* Removes layers that no image has, and all blobs, unless a pull may need them. */
void layers_collect(struct sup *sup);
/* Returns whether a layer is being removed, or will be when the store's layers are listed. */
bool layers_are_removed(const struct sup *sup);

/* image_pull.c */
void pulls_advance(struct sup *sup);
/* The list of the store's layers could not be had: the pulls that wait for it fail. */
void pulls_not_listed(struct sup *sup, const struct err *why);
void pulls_show(struct sup *sup, json_t *list);
void pulls_free(struct sup *sup);

/* images.c. From now on the store is checked after each start of the supervisor. */
void images_note_use(struct sup *sup);
/* Makes the image, or replaces that of the same name. Takes over config and layers. */
struct image *image_put(struct sup *sup, const char *name, const char *digest, json_t *config,
    struct image_layer *layers, size_t n);
/* As image_find(), to change it. */
struct image *image_get(struct sup *sup, const char *name);
/* Marks the image of this name as kept. */
void image_keep(struct sup *sup, const char *name);

/* image_answer.c: reads the answer of the image-fetcher, which is not trusted. The caller frees
 * *ret_config and *ret_layers. Returns 0, or -EBADMSG with *e. */
int image_answer_read(const void *text, size_t len, char ret_digest[80], json_t **ret_config,
    struct image_layer **ret_layers, size_t *ret_n, struct err *e);
/* The same for the columns of a row. */
json_t *image_layers_json(const struct image *image);
int image_layers_read(
    const json_t *json, struct image_layer **ret_layers, size_t *ret_n, struct err *e);

#endif
