// SPDX-License-Identifier: Apache-2.0
/* image_load.c: loads images from archives: finds out which archive it is, and has it read unless
 * its image is here. Runs in: supervisor. */
#include "supervisor/image/image_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/image_ref.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/image/image_gc.h"

#define UNNAMED "archive" /* stands for the name of an image whose archive has only one */
#define MARK    "#sha256:"

struct image_load {
	struct sup *sup;
	struct id id;
	char reference[IMAGE_REF_SIZE], name[IMAGE_REF_SIZE];
	struct image_use use; /* until the callback has begun one */
	unsigned timeout_ms;
	uint64_t owner;
	int fd;
	struct queued *digest;   /* NULL: it is known */
	struct image_want *want; /* NULL: not yet */
	image_cb *cb;
	void *arg;
};

static void
free_load(struct image_load *l)
{
	image_use_end(l->sup, &l->use);
	close_p(&l->fd);
	free(l);
}

void
image_load_forget(struct image_load *l)
{
	if (!l)
		return;
	if (l->digest) {
		queue_forget(l->digest);
		child_tell(l->sup, IPC_IMAGE_FETCHER, IMG_IMAGE_CANCEL_EV,
		    &(struct img_image_cancel_ev){ .pull = l->id });
	}
	image_forget(l->want);
	free_load(l);
}

static void
on_loaded(struct sup *sup, void *arg, const struct image *image, const struct err *why)
{
	struct image_load *l = arg;

	l->cb(sup, l->arg, image, why);
	free_load(l);
}

static int
read_digest(int fd, char ret[IMAGE_HEX_SIZE], struct err *e)
{
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, IMAGE_HEX_SIZE - 1, &map, &len);

	if (r < 0)
		return err_set(e, r, "read the digest of an archive");
	(void)snprintf(ret, IMAGE_HEX_SIZE, "%.*s", (int)len, map ? (const char *)map : "");
	(void)munmap((void *)(uintptr_t)map, len);
	if (strlen(ret) != 64 || strspn(ret, "0123456789abcdef") != 64)
		return err_say(
		    e, -EBADMSG, "the image-fetcher's answer about an archive is not valid");
	return 0;
}

static void
on_digest(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct image_load *l = arg;
	char hex[IMAGE_HEX_SIZE];
	cleanup_close int answer = fd;
	struct err why = { 0 };

	l->digest = NULL;
	if (r < 0)
		why = *e;
	else
		(void)read_digest(answer, hex, &why);
	if (why.code < 0) {
		on_loaded(sup, l, NULL, &why);
		return;
	}
	/* IMAGE_REF_SIZE leaves more for the digest of a reference, which this one does not have.
	 */
	(void)strcpy(l->name, *l->reference ? l->reference : UNNAMED);
	(void)strcat(strcat(l->name, MARK), hex);
	image_use_begin(sup, &l->use, l->name);
	l->want = image_want_loaded(sup, l->name,
	    &(struct image_request){
		.text = l->reference, .timeout_ms = l->timeout_ms, .owner = l->owner },
	    steal_fd(&l->fd), on_loaded, l);
}

/* The name in the archive, as skopeo completes it. */
static int
read_reference(const char *text, char ret[IMAGE_REF_SIZE], struct err *e)
{
	struct image_ref ref;

	*ret = '\0';
	if (!*text)
		return 0;
	if (image_ref_parse(text, &ref, e) < 0)
		return e->code;
	if (*ref.digest)
		return err_say(e, -EINVAL,
		    "image \"%.300s\": an image in an archive is named by its tag, not by a digest",
		    text);
	image_ref_format(&ref, ret);
	return 0;
}

struct image_load *
image_load(struct sup *sup, const struct image_request *request, int fd, image_cb *cb, void *arg,
    struct err *e)
{
	struct img_archive_digest_req req = { .pull = id_random(), .max_bytes = IMAGE_BYTES_MAX };
	cleanup_close int archive = fd;
	char reference[IMAGE_REF_SIZE];
	struct image_load *l;
	int sent;

	if (read_reference(request->text, reference, e) < 0)
		return NULL;
	sent = fcntl(archive, F_DUPFD_CLOEXEC, 0);
	if (sent < 0) {
		(void)err_set(e, -errno, "pass an archive of images");
		return NULL;
	}
	l = mem_new(struct image_load);
	*l = (struct image_load){ .sup = sup,
		.id = req.pull,
		.timeout_ms = request->timeout_ms,
		.owner = request->owner,
		.fd = steal_fd(&archive),
		.cb = cb,
		.arg = arg };
	(void)strcpy(l->reference, reference);
	req.timeout_ms = request->timeout_ms ?: IMAGE_PULL_MS;
	l->digest = queue_ask_for(sup, QUEUE_DIGEST, l->owner, &req, sent, on_digest, l);
	return l;
}

bool
image_load_progress(const struct image_load *l, uint64_t *ret_bytes, uint64_t *ret_total)
{
	return l->want && image_progress(l->want, ret_bytes, ret_total);
}

const struct image *
image_find_loaded(struct sup *sup, const char *text, const char *layers)
{
	char reference[IMAGE_REF_SIZE];
	const struct image *image;
	struct err none = { 0 };
	size_t n;

	if (read_reference(text, reference, &none) < 0)
		return NULL;
	if (!*reference)
		(void)strcpy(reference, UNNAMED);
	n = strlen(reference);
	TAILQ_FOREACH (image, &sup->images->list, link) {
		cleanup_free char *own = NULL;

		if (image->removed || strncmp(image->name, reference, n) != 0 ||
		    strncmp(image->name + n, MARK, sizeof MARK - 1) != 0)
			continue;
		own = image_list_layers(image);
		if (strcmp(own, layers) == 0)
			return image;
	}
	return NULL;
}
