// SPDX-License-Identifier: Apache-2.0
/* images.c: the images of this node and their rows. Runs in: supervisor. */
#include "supervisor/image/images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/image/image_counts.h"
#include "supervisor/image/image_gc.h"

#define USED             "image_store" /* key of a small value */
#define CHECK_AFTER_USEC 2000000       /* after the start, which has other work */

static void
free_image(struct image *image)
{
	json_decref(image->config);
	free(image->layers);
	free(image->name);
	free(image);
}

struct image *
image_get(struct sup *sup, const char *name)
{
	struct image *image;

	TAILQ_FOREACH (image, &sup->images->list, link)
		if (!image->removed && strcmp(image->name, name) == 0)
			return image;
	return NULL;
}

const struct image *
image_find(struct sup *sup, const char *name)
{
	return image_get(sup, name);
}

/* --- rows --- */

static int
write_image(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct image *image = container_of(d, struct image, row);
	cleanup_free char *config = NULL, *text = NULL;
	cleanup_json json_t *layers = NULL;

	if (image->removed)
		return STORE_EXEC(sup->store, STMT_IMAGE_DELETE, e, SV_TEXT(image->name));
	layers = image_layers_json(image);
	config = mem_need(json_dumps(image->config, JSON_COMPACT));
	text = mem_need(json_dumps(layers, JSON_COMPACT));
	return STORE_EXEC(sup->store, STMT_IMAGE_PUT, e, SV_TEXT(image->name),
	    SV_TEXT(image->digest), SV_TEXT(config), SV_TEXT(text), SV_INT(image->pulled_ns),
	    SV_INT(image->used_ns), SV_INT(image->in_use), SV_INT(image->kept));
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct image *image = container_of(d, struct image, row);

	if (!image->removed)
		return;
	TAILQ_REMOVE(&sup->images->list, image, link);
	free_image(image);
}

static struct image *
make_image(struct sup *sup, const char *name)
{
	struct image *image = mem_new(struct image);

	*image = (struct image){ .name = mem_strdup(name),
		.row = { .point = CRASH_ROW_IMAGE, .write = write_image, .written = on_written } };
	TAILQ_INSERT_TAIL(&sup->images->list, image, link);
	return image;
}

struct image *
image_put(struct sup *sup, const char *name, const char *digest, json_t *config,
    struct image_layer *layers, size_t n)
{
	struct image *image = image_get(sup, name) ?: make_image(sup, name);

	json_decref(image->config);
	free(image->layers);
	(void)strcpy(image->digest, digest);
	image->config = config;
	image->layers = layers;
	image->n_layers = n;
	image->pulled_ns = clock_real_ns();
	turn_write(sup, &image->row);
	images_check_soon(sup);
	return image;
}

void
image_keep(struct sup *sup, const char *name)
{
	struct image *image = image_get(sup, name);

	image->kept = true;
	turn_write(sup, &image->row);
	turn_durable(sup);
}

int
image_remove(struct sup *sup, const char *name)
{
	struct image *image = image_get(sup, name);

	if (!image)
		return -ENOENT;
	image->removed = true;
	turn_write(sup, &image->row);
	layers_list(sup);
	layers_collect(sup);
	return 0;
}

static int
load_image(void *arg, const struct store_row *row, struct err *e)
{
	struct sup *sup = arg;
	cleanup_json json_t *config = json_loads(store_col_text(row, 2), 0, NULL);
	cleanup_json json_t *list = json_loads(store_col_text(row, 3), 0, NULL);
	const char *name = store_col_text(row, 0), *digest = store_col_text(row, 1);
	struct image_layer *layers;
	struct err why = { 0 };
	struct image *image;
	size_t n;

	if (!config || strlen(digest) >= sizeof image->digest ||
	    image_layers_read(list, &layers, &n, &why) < 0) {
		journal_error(JOURNAL_STATE, NULL,
		    "the row of image %s cannot be read; it will be pulled again", name);
		return 0;
	}
	image = make_image(sup, name);
	(void)strcpy(image->digest, digest);
	image->config = steal_ptr(&config);
	image->layers = layers;
	image->n_layers = n;
	image->pulled_ns = store_col_int(row, 4);
	image->used_ns = store_col_int(row, 5);
	image->in_use = store_col_int(row, 6) != 0;
	image->kept = store_col_int(row, 7) != 0;
	return 0;
}

struct image_counts *
image_counts(void)
{
	static struct image_counts counts;

	return &counts;
}

static int
compare_layers(const void *a, const void *b)
{
	const struct image_layer *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

struct image_sizes
images_measure(const struct sup *sup)
{
	cleanup_free const struct image_layer **all = NULL;
	struct image_sizes sizes = { 0 };
	const struct image *image;
	size_t n = 0, max = 0;

	TAILQ_FOREACH (image, &sup->images->list, link)
		max += image->n_layers;
	all = mem_zeroed(max + 1, sizeof *all);
	TAILQ_FOREACH (image, &sup->images->list, link) {
		sizes.images += !image->removed;
		for (size_t i = 0; i < image->n_layers && !image->removed; i++)
			all[n++] = &image->layers[i];
	}
	qsort(all, n, sizeof *all, compare_layers);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || compare_layers(&all[i - 1], &all[i]) != 0) {
			sizes.layers++;
			sizes.bytes += all[i]->bytes;
		}
	return sizes;
}

static int
write_use(struct sup *sup, struct dirty *d, struct err *e)
{
	return store_meta_put(sup->store, USED, "1", e);
}

void
images_note_use(struct sup *sup)
{
	if (sup->images->used)
		return;
	sup->images->used = true;
	turn_write(sup, &sup->images->use_row);
	turn_durable(sup);
}

bool
images_are_used(const struct sup *sup)
{
	return sup->images->used;
}

static void
check_store(void *sup)
{
	layers_list(sup);
}

/* A supervisor that died may have left layers that no image has. Where there was never a pull,
 * nothing is started. */
static void
plan_check(struct sup *sup)
{
	cleanup_free char *used = NULL;
	struct err none = { 0 };

	sup->images->used = store_meta_get(sup->store, USED, &used, &none) == 0;
	if (sup->images->used)
		sup_timer_set(
		    sup, &sup->images->check, CLOCK_MONOTONIC, CHECK_AFTER_USEC, check_store, sup);
}

int
images_new(struct sup *sup, struct err *e)
{
	int r;

	sup->images = mem_new(struct images);
	*sup->images = (struct images){ .has_blobs = true,
		.use_row = { .point = CRASH_ROW_IMAGE, .write = write_use } };
	TAILQ_INIT(&sup->images->list);
	TAILQ_INIT(&sup->images->layers);
	TAILQ_INIT(&sup->images->pulls);
	TAILQ_INIT(&sup->images->uses);
	plan_check(sup);
	r = store_each(sup->store, STMT_IMAGE_ALL, NULL, 0, load_image, sup, e);
	images_check_soon(sup); /* when the tasks are restored */
	return r;
}

void
images_free(struct sup *sup)
{
	struct image *image;
	struct layer *layer;

	if (!sup->images)
		return;
	sup_timer_cancel(&sup->images->check);
	sup_timer_cancel(&sup->images->gc);
	pulls_free(sup);
	while ((image = TAILQ_FIRST(&sup->images->list))) {
		TAILQ_REMOVE(&sup->images->list, image, link);
		free_image(image);
	}
	while ((layer = TAILQ_FIRST(&sup->images->layers))) {
		TAILQ_REMOVE(&sup->images->layers, layer, link);
		free(layer);
	}
	free_p(&sup->images);
}

/* --- for the API --- */

static json_t *
show(const struct image *image)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < image->n_layers; i++)
		bytes += image->layers[i].bytes;
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:I, s:b}", "Name", image->name,
	    "Status", "ready", "Digest", image->digest, "Layers", (json_int_t)image->n_layers,
	    "Size", (json_int_t)bytes, "Pulled", (json_int_t)image->pulled_ns, "InUse",
	    image->in_use, "LastUsed", (json_int_t)image->used_ns, "Kept", image->kept);
}

json_t *
images_show(struct sup *sup)
{
	const struct image *image;
	json_t *list = json_array();

	TAILQ_FOREACH (image, &sup->images->list, link)
		if (!image->removed)
			(void)json_array_append_new(list, show(image));
	pulls_show(sup, list);
	return list;
}
