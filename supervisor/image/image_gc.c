// SPDX-License-Identifier: Apache-2.0
/* image_gc.c: which images tasks use, and the removal of those that none uses. Runs in:
 * supervisor. */
#include "supervisor/image/image_gc.h"

#include <stdint.h>
#include <string.h>
#include <sys/param.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/driver/run.h"
#include "supervisor/image/image_counts.h"
#include "supervisor/image/images.h"

/* One examination for all that tasks do within this time: it compares all images with all runs. A
 * crash before it loses nothing: it is repeated after the start. */
#define CHECK_AFTER_USEC 1000000

/* --- uses --- */

void
image_use_begin(struct sup *sup, struct image_use *use, const char *name)
{
	use->name = name;
	TAILQ_INSERT_TAIL(&sup->images->uses, use, link);
	images_check_soon(sup);
}

void
image_use_end(struct sup *sup, struct image_use *use)
{
	struct image *image;

	if (!use->name)
		return;
	TAILQ_REMOVE(&sup->images->uses, use, link);
	image = image_get(sup, use->name);
	if (image && !image->in_use) { /* it began after the last examination */
		image->in_use = true;
		turn_write(sup, &image->row);
	}
	use->name = NULL;
	images_check_soon(sup);
}

char *
image_list_layers(const struct image *image)
{
	char *text = mem_alloc(image->n_layers * 64 + 1), *to = text;

	for (size_t i = image->n_layers; i > 0; i--)
		to = mempcpy(to, image->layers[i - 1].id, 64);
	*to = '\0';
	return text;
}

bool
image_has_user(struct sup *sup, const struct image *image)
{
	cleanup_free char *layers = NULL;
	const struct image_use *use;

	TAILQ_FOREACH (use, &sup->images->uses, link)
		if (strcmp(use->name, image->name) == 0)
			return true;
	layers = image_list_layers(image);
	return runs_have_layers(sup, layers);
}

static void
note_use(struct sup *sup, struct image *image)
{
	bool in_use = image_has_user(sup, image);

	if (in_use == image->in_use)
		return;
	image->in_use = in_use;
	if (!in_use)
		image->used_ns = clock_real_ns();
	turn_write(sup, &image->row);
}

/* --- removal --- */

static bool
may_be_removed(struct sup *sup, const struct image *image)
{
	return sup->config->images.gc && !image->removed && !image->kept && !image->in_use;
}

static int64_t
last_use(const struct image *image)
{
	return MAX(image->used_ns, image->pulled_ns);
}

static void
remove_unused(struct sup *sup, const struct image *image)
{
	char delay[DURATION_SIZE];

	duration_format((int64_t)sup->config->images.gc_delay_ms * NS_PER_MS, delay);
	journal_info(JOURNAL_IMAGE, NULL, "image %s is removed: no task has used it for %s",
	    image->name, delay);
	(void)image_remove(sup, image->name);
	image_counts()->collected++;
}

/* Removes what is due, and comes again when the next image is. */
static void
check_images(void *arg)
{
	struct sup *sup = arg;
	int64_t now = clock_real_ns(), next = INT64_MAX;
	int64_t delay = (int64_t)sup->config->images.gc_delay_ms * NS_PER_MS;
	struct image *image;

	TAILQ_FOREACH (image, &sup->images->list, link) {
		int64_t left;

		if (!image->removed)
			note_use(sup, image);
		if (!may_be_removed(sup, image))
			continue;
		left = delay - (now - MIN(now, last_use(image)));
		if (left <= 0)
			remove_unused(sup, image);
		else
			next = MIN(next, left);
	}
	sup->images->check_is_soon = false;
	if (next < INT64_MAX)
		sup_timer_set(sup, &sup->images->gc, CLOCK_MONOTONIC, (uint64_t)next / 1000 + 1,
		    check_images, sup);
}

void
images_check_soon(struct sup *sup)
{
	if (sup->images->check_is_soon || TAILQ_EMPTY(&sup->images->list))
		return;
	sup->images->check_is_soon = true;
	sup_timer_set(sup, &sup->images->gc, CLOCK_MONOTONIC, CHECK_AFTER_USEC, check_images, sup);
}

bool
images_remove_oldest(struct sup *sup, const char *disk)
{
	struct image *image, *oldest = NULL;

	if (layers_are_removed(sup))
		return true;
	TAILQ_FOREACH (image, &sup->images->list, link) {
		if (!image->removed)
			note_use(sup, image);
		if (may_be_removed(sup, image) && (!oldest || last_use(image) < last_use(oldest)))
			oldest = image;
	}
	if (!oldest)
		return false;
	journal_info(JOURNAL_IMAGE, NULL, "image %s is removed: no task uses it, and %s",
	    oldest->name, disk);
	(void)image_remove(sup, oldest->name);
	image_counts()->collected++;
	return true;
}
