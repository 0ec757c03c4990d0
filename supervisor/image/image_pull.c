// SPDX-License-Identifier: Apache-2.0
/* image_pull.c: pulls images: one pull for all that want the same. Runs in: supervisor. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/image_ref.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/field.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/image/image_counts.h"
#include "supervisor/image/image_load.h"
#include "supervisor/image/images.h"

#define PROGRESS_USEC   500000
#define ANSWER_MAX      ((size_t)2 << 20)
#define TRIES           3
#define TRY_AGAIN_USEC  1000000 /* after the first try; doubles */
#define FAILED_KEPT_MAX 32      /* failed pulls that the API shows */

/* PULL_WAITING: for the list of the store's layers. */
enum pull_state { PULL_WAITING, PULL_FETCHING, PULL_UNPACKING, PULL_FAILED };

struct image_want {
	TAILQ_ENTRY(image_want) link;
	struct pull *pull;
	int archive_fd; /* -1: a registry has the image */
	bool changed;   /* the archive was, while it was read */
	image_cb *cb;
	void *arg;
};

struct pull {
	TAILQ_ENTRY(pull) link;
	struct sup *sup;
	char name[IMAGE_REF_SIZE];
	char reference[IMAGE_REF_SIZE]; /* in the archive */
	enum pull_state state;
	struct id id;
	json_t *auth;
	bool insecure, force, keep;
	bool ended;   /* it is decided; its callbacks follow, or have run */
	bool calling; /* they run now */
	unsigned timeout_ms, idle_ms, tries;
	uint64_t owner; /* of the first want: a slow registry takes its share of the places */
	bool loads;     /* from an archive, each want has one */
	struct image_want *source; /* whose archive is being read; NULL: it is forgotten */
	struct queued *fetch;
	struct sup_timer progress, again;
	uint64_t bytes, total, ask; /* ask: the call for its progress */
	uint64_t began_ms;          /* the last try */
	char digest[80];
	json_t *config;
	struct image_layer *layers;
	size_t n_layers;
	struct err why;
	TAILQ_HEAD(, image_want) wants;
	struct deferred end; /* calls back */
};

static const char *const state_names[] = {
	[PULL_WAITING] = "pulling",
	[PULL_FETCHING] = "pulling",
	[PULL_UNPACKING] = "unpacking",
	[PULL_FAILED] = "failed",
};

static void
free_want(struct image_want *w)
{
	if (w->pull->source == w)
		w->pull->source = NULL;
	TAILQ_REMOVE(&w->pull->wants, w, link);
	close_p(&w->archive_fd);
	free(w);
}

static void
free_pull(struct pull *p)
{
	struct sup *sup = p->sup;
	struct image_want *w;

	queue_forget(p->fetch);
	child_call_cancel(sup, p->ask);
	sup_timer_cancel(&p->progress);
	sup_timer_cancel(&p->again);
	turn_forget_deferred(sup, &p->end);
	while ((w = TAILQ_FIRST(&p->wants)))
		free_want(w);
	TAILQ_REMOVE(&sup->images->pulls, p, link);
	json_decref(p->auth);
	json_decref(p->config);
	free(p->layers);
	free(p);
}

void
pulls_free(struct sup *sup)
{
	struct pull *p;

	while ((p = TAILQ_FIRST(&sup->images->pulls)))
		free_pull(p);
}

/* --- the end --- */

/* The oldest failures are forgotten. */
static void
keep_few_failures(struct sup *sup)
{
	struct pull *p, *next;
	size_t n = 0;

	TAILQ_FOREACH (p, &sup->images->pulls, link)
		n += p->state == PULL_FAILED;
	TAILQ_FOREACH_SAFE (p, &sup->images->pulls, link, next)
		if (p->state == PULL_FAILED && !p->end.queue && !p->calling &&
		    n > FAILED_KEPT_MAX) {
			n--;
			free_pull(p);
		}
}

static void
call_back(struct image_want *w, const struct image *image, const struct err *why)
{
	struct sup *sup = w->pull->sup;
	image_cb *cb = w->cb;
	void *arg = w->arg;

	free_want(w);
	if (cb)
		cb(sup, arg, image, why);
}

static void
run_callbacks(struct sup *sup, struct deferred *d)
{
	static const struct err changed = { -ESTALE, "its archive was changed while it was read" };
	struct pull *p = container_of(d, struct pull, end);
	const struct image *image = p->state == PULL_FAILED ? NULL : image_find(sup, p->name);
	struct image_want *w;

	if (!image && p->state != PULL_FAILED)
		(void)err_say(&p->why, -EAGAIN, "image %s was removed", p->name);
	p->calling = true;
	while ((w = TAILQ_FIRST(&p->wants)))
		if (w->changed && image)
			call_back(w, NULL, &changed);
		else
			call_back(w, image, &p->why);
	p->calling = false;
	if (p->state == PULL_FAILED)
		keep_few_failures(sup);
	else
		free_pull(p);
	layers_collect(sup);
}

static void
stop_progress(struct pull *p)
{
	child_call_cancel(p->sup, p->ask);
	p->ask = 0;
	sup_timer_cancel(&p->progress);
}

static void
end_pull(struct pull *p)
{
	queue_forget(steal_ptr(&p->fetch));
	stop_progress(p);
	p->ended = true;
	p->sup->images->n_active--;
	turn_defer(p->sup, &p->end);
	changed_mark(p->sup, CHANGED_WORK);
}

static void
fail_pull(struct pull *p, const struct err *why)
{
	bool full = why->code == -ENOSPC || why->code == -EDQUOT;
	char text[ERR_MSG_SIZE];

	p->state = PULL_FAILED;
	image_counts()->failed_pulls += !p->loads;
	/* The caller adds the name of a loaded image's archive; p->name has a digest instead, which
	 * says nothing to users. */
	(void)err_say(&p->why, why->code, "%s%s%s%s%s%s", p->loads ? "" : "pull image ",
	    p->loads ? "" : p->name, p->loads ? "" : ": ", why->msg,
	    full ? ": free space or inodes on the disk of " : "",
	    full ? p->sup->args.data_dir : "");
	/* It may have been cut within a character. */
	(void)utf8_sanitize(text, sizeof text, p->why.msg, strlen(p->why.msg));
	(void)strcpy(p->why.msg, text);
	if (p->loads)
		journal_warn(JOURNAL_IMAGE, NULL, "load image %s: %s", p->name, p->why.msg);
	else
		journal_warn(JOURNAL_IMAGE, NULL, "%s", p->why.msg);
	end_pull(p);
}

static void
complete_pull(struct pull *p)
{
	journal_info(JOURNAL_IMAGE, NULL, "image %s is here: %zu layers, %s", p->name, p->n_layers,
	    p->digest);
	(void)image_put(
	    p->sup, p->name, p->digest, steal_ptr(&p->config), steal_ptr(&p->layers), p->n_layers);
	if (p->keep)
		image_keep(p->sup, p->name);
	turn_durable(p->sup);
	end_pull(p);
}

/* --- unpacking --- */

/* Unpacks the layers that are missing, one after another, as far as possible: they are all in the
 * queue at once, and a layer that another pull unpacks is waited for. */
static void
unpack_layers(struct pull *p)
{
	bool waits = false;

	for (size_t i = 0; i < p->n_layers; i++) {
		struct layer *l = layer_find(p->sup, p->layers[i].id);

		if (l && l->why.code < 0 && strcmp(l->blob, p->layers[i].blob) == 0) {
			fail_pull(p, &l->why);
			return;
		}
		if (!l)
			layer_unpack(p->sup, &p->layers[i]);
		waits = waits || !l || l->state != LAYER_PRESENT || l->why.code < 0;
	}
	if (!waits)
		complete_pull(p);
}

/* --- fetching --- */

static int
take_answer(struct pull *p, int fd, struct err *e)
{
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, ANSWER_MAX, &map, &len);

	if (r < 0)
		return err_set(e, r, "read the image-fetcher's answer");
	r = image_answer_read(map, len, p->digest, &p->config, &p->layers, &p->n_layers, e);
	(void)munmap((void *)(uintptr_t)map, len);
	return r;
}

static void fetch(void *arg);

/* Whether the reason may be gone at the next try: the registry cannot be reached, a process of the
 * image-fetcher has ended. The layers that have arrived are not fetched again. */
static bool
try_again(struct pull *p, int r)
{
	if ((r != -EAGAIN && r != -ETIMEDOUT && r != -ECONNRESET && r != -EIO) ||
	    ++p->tries == TRIES)
		return false;
	sup_timer_set(
	    p->sup, &p->again, CLOCK_MONOTONIC, TRY_AGAIN_USEC << (p->tries - 1), fetch, p);
	return true;
}

/* The image-fetcher ends a try after timeout_ms, or earlier if the registry sends nothing. */
static void
explain_timeout(const struct pull *p, struct err *e)
{
	char timeout[DURATION_SIZE], part[64] = "";

	if (clock_ms() - p->began_ms < p->timeout_ms)
		return;
	duration_format((int64_t)p->timeout_ms * NS_PER_MS, timeout);
	if (p->total > 0)
		(void)snprintf(part, sizeof part, ": %.1f of %.1f MiB have arrived",
		    (double)p->bytes / (1 << 20), (double)p->total / (1 << 20));
	(void)err_say(
	    e, -ETIMEDOUT, "it was not fetched within image_pull_timeout (%s)%s", timeout, part);
}

/* The task of one want has changed its archive; another may have a file of the same digest. Returns
 * whether one is read now. */
static bool
try_other_archive(struct pull *p)
{
	struct image_want *w;

	if (p->source)
		p->source->changed = true;
	p->source = NULL;
	TAILQ_FOREACH (w, &p->wants, link)
		if (!w->changed) {
			fetch(p);
			return true;
		}
	return false;
}

/* Layers that the store has are not fetched. */
static void
count_bytes(const struct pull *p)
{
	for (size_t i = 0; i < p->n_layers && !p->loads; i++)
		if (!layer_find(p->sup, p->layers[i].id))
			image_counts()->pulled_bytes += p->layers[i].bytes;
}

static void
on_fetched(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_close int answer = fd;
	struct pull *p = arg;
	struct err why = { 0 };

	p->fetch = NULL;
	stop_progress(p);
	if (r < 0)
		why = *e;
	else
		r = take_answer(p, answer, &why);
	if (r == -ETIMEDOUT)
		explain_timeout(p, &why);
	if (r < 0) {
		if (!(r == -ESTALE && p->source && try_other_archive(p)) && !try_again(p, r))
			fail_pull(p, &why);
		return;
	}
	p->state = PULL_UNPACKING;
	count_bytes(p);
	unpack_layers(p);
}

static void ask_progress(void *arg);

static void
on_progress(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const struct img_image_progress_rep *rep = msg;
	struct pull *p = arg;

	p->ask = 0;
	if (r == 0) {
		p->bytes = rep->bytes;
		p->total = rep->total;
	}
	sup_timer_set(sup, &p->progress, CLOCK_MONOTONIC, PROGRESS_USEC, ask_progress, p);
}

static void
ask_progress(void *arg)
{
	struct pull *p = arg;

	p->ask = img_call_image_progress(
	    p->sup, &(struct img_image_progress_req){ .pull = p->id }, on_progress, p);
}

/* The architecture, and its variant, as the OCI image index names those of uname(2). */
static void
find_platform(const char **ret_architecture, const char **ret_variant)
{
	static const struct {
		const char *machine, *architecture, *variant;
	} platforms[] = {
		{ "x86_64", "amd64", "" },
		{ "aarch64", "arm64", "" },
		{ "armv7l", "arm", "v7" },
		{ "armv6l", "arm", "v6" },
		{ "i686", "386", "" },
		{ "ppc64le", "ppc64le", "" },
		{ "riscv64", "riscv64", "" },
		{ "s390x", "s390x", "" },
	};
	struct utsname un = { 0 };

	(void)uname(&un);
	*ret_architecture = "amd64";
	*ret_variant = "";
	for (size_t i = 0; i < ELEMENTSOF(platforms); i++)
		if (strcmp(un.machine, platforms[i].machine) == 0) {
			*ret_architecture = platforms[i].architecture;
			*ret_variant = platforms[i].variant;
		}
}

static json_t *
list_present(struct sup *sup)
{
	json_t *list = json_array();
	const struct layer *l;

	TAILQ_FOREACH (l, &sup->images->layers, link)
		if (l->state == LAYER_PRESENT) {
			char id[IMAGE_HEX_SIZE + 8] = "sha256:";

			(void)json_array_append_new(list, json_string(strcat(id, l->id)));
		}
	return list;
}

static int
make_spec(const struct pull *p)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *spec = NULL;
	const char *architecture, *variant;
	int fd;

	find_platform(&architecture, &variant);
	spec = mem_need(json_pack("{s:s, s:s, s:s, s:s, s:b, s:I, s:o, s:O*, s:s}", "reference",
	    p->name, "os", "linux", "architecture", architecture, "variant", variant, "insecure",
	    p->insecure, "max_bytes", (json_int_t)IMAGE_BYTES_MAX, "have", list_present(p->sup),
	    "auth", p->auth, "helper", p->sup->config->images.auth_helper));
	text = mem_need(json_dumps(spec, JSON_COMPACT));
	fd = fd_memfd_sealed("image", text, strlen(text));
	explicit_bzero(text, strlen(text)); /* it may have a password */
	return fd;
}

/* A removal of all blobs that has begun comes before this pull, in the order of the requests. */
static void
keep_blobs(struct sup *sup)
{
	struct images *i = sup->images;

	i->has_blobs = true;
	if (i->drop && !queue_has_begun(i->drop))
		queue_forget(steal_ptr(&i->drop));
}

/* Returns the request, or NULL with *e. */
static struct queued *
ask_registry(struct pull *p, struct err *e)
{
	struct img_image_pull_req req = {
		.pull = p->id, .timeout_ms = p->timeout_ms, .idle_ms = p->idle_ms
	};
	int fd = make_spec(p);

	if (fd >= 0)
		return queue_ask_for(p->sup, QUEUE_IMAGE, p->owner, &req, fd, on_fetched, p);
	(void)err_set(e, fd, "pass the description of an image");
	return NULL;
}

/* Layers that are here must be in the archive all the same: whoever knows the digest of a layer may
 * not have its contents. */
static struct queued *
ask_archive(struct pull *p, struct err *e)
{
	struct img_archive_load_req req = {
		.pull = p->id, .timeout_ms = p->timeout_ms, .max_bytes = IMAGE_BYTES_MAX
	};
	const char *architecture, *variant, *digits = strrchr(p->name, ':') + 1;
	int fd;

	p->source = TAILQ_FIRST(&p->wants);
	while (p->source->changed && TAILQ_NEXT(p->source, link))
		p->source = TAILQ_NEXT(p->source, link);
	fd = fcntl(p->source->archive_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		(void)err_set(e, -errno, "pass an archive of images");
		return NULL;
	}
	find_platform(&architecture, &variant);
	(void)IPC_TEXT_SET(req.digest, digits);
	(void)IPC_TEXT_SET(req.architecture, architecture);
	(void)IPC_TEXT_SET(req.variant, variant);
	(void)IPC_TEXT_SET(req.reference, p->reference);
	return queue_ask_for(p->sup, QUEUE_LOAD, p->owner, &req, fd, on_fetched, p);
}

static void
fetch(void *arg)
{
	struct pull *p = arg;
	struct err why = { 0 };

	images_note_use(p->sup);
	keep_blobs(p->sup);
	p->fetch = p->loads ? ask_archive(p, &why) : ask_registry(p, &why);
	if (!p->fetch) {
		fail_pull(p, &why);
		return;
	}
	p->state = PULL_FETCHING;
	p->began_ms = clock_ms();
	sup_timer_set(p->sup, &p->progress, CLOCK_MONOTONIC, PROGRESS_USEC, ask_progress, p);
}

/* What the store has is known. */
static void
begin(struct pull *p)
{
	if (!image_find(p->sup, p->name) || p->force) {
		fetch(p);
		return;
	}
	if (p->keep)
		image_keep(p->sup, p->name);
	end_pull(p);
}

void
pulls_advance(struct sup *sup)
{
	struct pull *p, *next;

	TAILQ_FOREACH_SAFE (p, &sup->images->pulls, link, next)
		if (p->state == PULL_WAITING && !p->ended && sup->images->listed)
			begin(p);
		else if (p->state == PULL_UNPACKING && !p->ended)
			unpack_layers(p);
}

void
pulls_not_listed(struct sup *sup, const struct err *why)
{
	struct pull *p, *next;

	TAILQ_FOREACH_SAFE (p, &sup->images->pulls, link, next)
		if (p->state == PULL_WAITING && !p->ended)
			fail_pull(p, why);
}

/* --- requests --- */

/* As Docker: the registries of this machine itself need no certificate. */
static bool
is_loopback(const char *registry)
{
	char host[IMAGE_NAME_SIZE];
	struct in_addr in;

	if (strncmp(registry, "[::1]", 5) == 0)
		return true;
	(void)snprintf(host, sizeof host, "%.*s", (int)strcspn(registry, ":"), registry);
	return strcmp(host, "localhost") == 0 ||
	       (inet_pton(AF_INET, host, &in) == 1 && ntohl(in.s_addr) >> 24 == IN_LOOPBACKNET);
}

static struct pull *
find_pull(struct sup *sup, const char *name, const struct image_request *request)
{
	struct pull *p;

	TAILQ_FOREACH (p, &sup->images->pulls, link)
		if (!p->ended && strcmp(p->name, name) == 0 &&
		    (p->auth == request->auth ||
			json_equal(p->auth, (json_t *)(uintptr_t)request->auth)))
			return p;
	return NULL;
}

/* A failure of the same image is not shown any more. */
static void
forget_failure(struct sup *sup, const char *name)
{
	struct pull *p, *next;

	TAILQ_FOREACH_SAFE (p, &sup->images->pulls, link, next)
		if (p->state == PULL_FAILED && !p->end.queue && !p->calling &&
		    strcmp(p->name, name) == 0)
			free_pull(p);
}

/* Adds the want to a pull of this name, the first of which begins it. */
static void
add_want(struct sup *sup, struct image_want *w, const char *name, bool insecure,
    const struct image_request *request)
{
	struct pull *p = find_pull(sup, name, request);

	if (p) {
		w->pull = p;
		p->keep |= request->keep;
		TAILQ_INSERT_TAIL(&p->wants, w, link);
		return;
	}
	forget_failure(sup, name);
	p = w->pull = mem_new(struct pull);
	*p = (struct pull){ .sup = sup,
		.id = id_random(),
		.auth = json_deep_copy(request->auth),
		.insecure = insecure,
		.force = request->force,
		.keep = request->keep,
		.owner = request->owner,
		.loads = w->archive_fd >= 0,
		.timeout_ms = request->timeout_ms ?: IMAGE_PULL_MS,
		.idle_ms = request->idle_ms ?: (unsigned)sup->config->images.idle_ms,
		.end = { .run = run_callbacks } };
	TAILQ_INIT(&p->wants);
	TAILQ_INSERT_TAIL(&p->wants, w, link);
	(void)strcpy(p->name, name);
	if (p->loads)
		(void)strcpy(p->reference, request->text);
	TAILQ_INSERT_TAIL(&sup->images->pulls, p, link);
	image_counts()->pulls += !p->loads;
	sup->images->n_active++;
	if (sup->images->listed)
		begin(p);
	else
		layers_list(sup);
}

static struct image_want *
make_want(int archive_fd, image_cb *cb, void *arg)
{
	struct image_want *w = mem_new(struct image_want);

	*w = (struct image_want){ .archive_fd = archive_fd, .cb = cb, .arg = arg };
	return w;
}

struct image_want *
image_want(
    struct sup *sup, const struct image_request *request, image_cb *cb, void *arg, struct err *e)
{
	char name[IMAGE_REF_SIZE];
	struct image_want *w;
	struct image_ref ref;

	if (image_ref_parse(request->text, &ref, e) < 0)
		return NULL;
	image_ref_format(&ref, name);
	w = make_want(-1, cb, arg);
	add_want(sup, w, name, is_loopback(ref.registry), request);
	return w;
}

struct image_want *
image_want_loaded(struct sup *sup, const char *name, const struct image_request *request,
    int archive_fd, image_cb *cb, void *arg)
{
	struct image_want *w = make_want(archive_fd, cb, arg);

	add_want(sup, w, name, false, request);
	return w;
}

bool
image_progress(const struct image_want *want, uint64_t *ret_bytes, uint64_t *ret_total)
{
	*ret_bytes = want->pull->bytes;
	*ret_total = want->pull->total;
	return want->pull->state == PULL_FETCHING;
}

void
image_forget(struct image_want *w)
{
	struct sup *sup;
	struct pull *p;

	if (!w)
		return;
	p = w->pull;
	sup = p->sup;
	free_want(w);
	if (!TAILQ_EMPTY(&p->wants) || p->ended)
		return;
	if (p->state == PULL_FETCHING)
		child_tell(p->sup, IPC_IMAGE_FETCHER, IMG_IMAGE_CANCEL_EV,
		    &(struct img_image_cancel_ev){ .pull = p->id });
	sup->images->n_active--;
	free_pull(p);
	layers_collect(sup);
}

/* --- for the API --- */

void
pulls_show(struct sup *sup, json_t *list)
{
	const struct pull *p;

	TAILQ_FOREACH (p, &sup->images->pulls, link)
		if (p->state == PULL_FAILED)
			(void)json_array_append_new(
			    list, json_pack("{s:s, s:s, s:s}", "Name", p->name, "Status",
				      state_names[p->state], "Error", p->why.msg));
		else
			(void)json_array_append_new(
			    list, json_pack("{s:s, s:s, s:I, s:I}", "Name", p->name, "Status",
				      state_names[p->state], "Bytes", (json_int_t)p->bytes, "Total",
				      (json_int_t)p->total));
}
