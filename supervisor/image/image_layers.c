// SPDX-License-Identifier: Apache-2.0
/* image_layers.c: the layers in the store: which there are, unpacking and removal. Runs in:
 * supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/driver/run.h"
#include "supervisor/image/images.h"

#define LAYER_BYTES_MAX   ((uint64_t)64 << 30)
#define LAYER_FILES_MAX   4000000
#define UNPACK_TIMEOUT_MS (30 * 60 * 1000)
#define LIST_BYTES_MAX    ((size_t)UNP_LAYERS_MAX * 65)

struct layer *
layer_find(struct sup *sup, const char *id)
{
	struct layer *l;

	TAILQ_FOREACH (l, &sup->images->layers, link)
		if (strcmp(l->id, id) == 0)
			return l;
	return NULL;
}

static struct layer *
add_layer(struct sup *sup, const char *id, enum layer_state state)
{
	struct layer *l = mem_new(struct layer);

	*l = (struct layer){ .sup = sup, .state = state };
	(void)strcpy(l->id, id);
	TAILQ_INSERT_TAIL(&sup->images->layers, l, link);
	return l;
}

static void
drop_layer(struct layer *l)
{
	TAILQ_REMOVE(&l->sup->images->layers, l, link);
	free(l);
}

/* --- unpacking --- */

static void
on_unpacked(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct layer *l = arg;

	l->state = LAYER_PRESENT;
	if (r < 0)
		l->why = *e;
	pulls_advance(sup);
	if (r < 0) { /* others may have a good blob of it */
		drop_layer(l);
		pulls_advance(sup);
	}
	layers_collect(sup);
}

void
layer_unpack(struct sup *sup, const struct image_layer *layer)
{
	struct unp_layer_unpack_req req = { .max_bytes = LAYER_BYTES_MAX,
		.max_files = LAYER_FILES_MAX,
		.timeout_ms = UNPACK_TIMEOUT_MS };
	struct layer *l = add_layer(sup, layer->id, LAYER_UNPACKING);

	(void)strcpy(l->blob, layer->blob);
	(void)IPC_TEXT_SET(req.blob, layer->blob);
	(void)IPC_TEXT_SET(req.layer, layer->id);
	(void)queue_ask(sup, QUEUE_UNPACK, &req, -1, on_unpacked, l);
}

/* --- what the store has --- */

/* An image without all of its layers is forgotten, and pulled again when it is wanted. */
static void
forget_broken(struct sup *sup)
{
	struct image *image;

	TAILQ_FOREACH (image, &sup->images->list, link)
		for (size_t i = 0; i < image->n_layers && !image->removed; i++) {
			if (layer_find(sup, image->layers[i].id))
				continue;
			journal_warn(JOURNAL_IMAGE, NULL,
			    "image %s is forgotten: the store does not have its layer sha256:%s",
			    image->name, image->layers[i].id);
			image->removed = true;
			turn_write(sup, &image->row);
		}
}

static int
each_listed(int fd, void (*fn)(void *arg, const char *digits), void *arg, struct err *e)
{
	cleanup_free char *text = NULL;
	char *rest, *line;
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, LIST_BYTES_MAX, &map, &len);

	if (r < 0)
		return err_set(e, r, "read the list of the layers of images");
	text = mem_strndup(map ? map : "", len);
	(void)munmap((void *)(uintptr_t)map, len);
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (strlen(line) == 64 && strspn(line, "0123456789abcdef") == 64)
			fn(arg, line);
	return 0;
}

static void
note_layer(void *arg, const char *digits)
{
	if (!layer_find(arg, digits))
		(void)add_layer(arg, digits, LAYER_PRESENT);
}

static void
on_listed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_close int list = fd;
	struct err why = { 0 };

	sup->images->listing = false;
	if (r < 0)
		(void)err_say(&why, r, "list the layers of images: %s", e->msg);
	else
		r = each_listed(list, note_layer, sup, &why);
	if (r < 0) { /* the next pull tries again */
		journal_error(JOURNAL_IMAGE, NULL, "%s", why.msg);
		pulls_not_listed(sup, &why);
		return;
	}
	sup->images->listed = true;
	forget_broken(sup);
	pulls_advance(sup);
	layers_collect(sup);
}

void
layers_list(struct sup *sup)
{
	if (sup->images->listed || sup->images->listing)
		return;
	sup->images->listing = true;
	(void)queue_ask(sup, QUEUE_LAYERS, &(struct unp_layer_list_req){}, -1, on_listed, NULL);
}

/* --- removal --- */

static bool
is_used(struct sup *sup, const char *digits)
{
	const struct image *image;

	TAILQ_FOREACH (image, &sup->images->list, link)
		for (size_t i = 0; i < image->n_layers; i++)
			if (!image->removed && strcmp(image->layers[i].id, digits) == 0)
				return true;
	return runs_have_layer(sup, digits);
}

struct unknown {
	struct sup *sup;
	void (*fn)(void *arg, const char *digits);
	void *arg;
};

static void
check_layer(void *arg, const char *digits)
{
	const struct unknown *u = arg;
	const struct layer *l = layer_find(u->sup, digits);

	if (u->sup->images->n_active == 0 && (!l || l->state == LAYER_PRESENT) &&
	    !is_used(u->sup, digits))
		u->fn(u->arg, digits);
}

int
layers_each_unknown(struct sup *sup, int list_fd, void (*fn)(void *arg, const char *digits),
    void *arg, struct err *e)
{
	struct unknown u = { .sup = sup, .fn = fn, .arg = arg };

	return each_listed(list_fd, check_layer, &u, e);
}

bool
layers_are_removed(const struct sup *sup)
{
	const struct layer *l;

	TAILQ_FOREACH (l, &sup->images->layers, link)
		if (l->state == LAYER_REMOVING)
			return true;
	return sup->images->listing;
}

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	if (r < 0)
		journal_error(JOURNAL_IMAGE, NULL, "%s", e->msg);
	drop_layer(arg);
	pulls_advance(sup);
}

static void
on_blobs_dropped(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	sup->images->drop = NULL;
	if (r < 0)
		journal_error(JOURNAL_IMAGE, NULL, "%s", e->msg);
}

void
layers_collect(struct sup *sup)
{
	struct layer *l;

	if (sup->images->n_active > 0 || !sup->images->listed)
		return;
	TAILQ_FOREACH (l, &sup->images->layers, link) {
		struct unp_layer_remove_req req = { 0 };

		if (l->state != LAYER_PRESENT || is_used(sup, l->id))
			continue;
		l->state = LAYER_REMOVING;
		(void)IPC_TEXT_SET(req.layer, l->id);
		(void)queue_ask(sup, QUEUE_LAYER_REMOVE, &req, -1, on_removed, l);
	}
	if (!sup->images->has_blobs || sup->images->drop)
		return;
	sup->images->has_blobs = false;
	sup->images->drop = queue_ask(
	    sup, QUEUE_BLOBS_DROP, &(struct img_blobs_drop_req){}, -1, on_blobs_dropped, NULL);
}
