// SPDX-License-Identifier: Apache-2.0
/* img_pull.c: fetches the parts of one image, of a registry or of an archive: manifest,
 * configuration, and the layers that are missing, three at a time. Runs in: a worker of the
 * image-fetcher. Asked by: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/mem.h"
#include "common/path.h"
#include "common/utf8.h"
#include "image-fetcher/img.h"
#include "image-fetcher/img_archive.h"
#include "proto/ipc_records.h"

#define AT_ONCE      3
#define STALLED_MS   2000
#define MEMORY_BYTES ((rlim_t)1 << 30) /* of the worker, and of skopeo */

/* A request, in its worker. */
struct pull {
	struct img_spec spec;
	const char *archive; /* how skopeo calls images of this archive; NULL: of a registry */
	struct img_progress *told;
	int blobs_fd;
	struct img_proxy proxy;
	json_int_t image; /* the proxy's number for it */
	struct img_layers layers;
	size_t next; /* the first layer that was not looked at */
	struct img_blob at_once[AT_ONCE];
	struct img_blob *finishing; /* skopeo was asked to finish its pipe */
	uint64_t bytes;
	uint64_t last_ms; /* time of the last data */
	struct err *e;
};

/* No core dump either: it would have the registry's password. */
static int
set_limits(struct err *e)
{
	const struct rlimit memory = { MEMORY_BYTES, MEMORY_BYTES }, none = { 0, 0 };
	int r = setrlimit(RLIMIT_CORE, &none);

#ifndef __SANITIZE_ADDRESS__
	if (r == 0)
		r = setrlimit(RLIMIT_DATA, &memory);
#endif
	(void)memory;
	return r < 0 ? err_set(e, -errno, "limit a worker of the image-fetcher") : 0;
}

static int
silent(const struct pull *p)
{
	return err_say(
	    p->e, -ETIMEDOUT, "the registry has sent nothing for %u s", p->spec.idle_ms / 1000);
}

/* --- manifest and configuration --- */

/* Reads a pipe to its end, for which skopeo was asked. */
static int
read_all(struct pull *p, int fd, size_t max, char **ret, size_t *ret_len)
{
	cleanup_free char *text = NULL;
	size_t len = 0, size = 0;
	ssize_t n = 1;

	while (n > 0) {
		struct pollfd at = { .fd = fd, .events = POLLIN };

		if (size - len < 4096)
			text = mem_resize(text, 1, size += 65536);
		if (poll(&at, 1, (int)p->spec.idle_ms) == 0)
			return silent(p);
		n = read(fd, text + len, size - len);
		if (n < 0)
			return err_set(p->e, -errno, "read from skopeo");
		len += (size_t)n;
		if (len > max)
			return err_say(p->e, -EFBIG,
			    "its manifest or configuration has more than %zu bytes", max);
	}
	*ret = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

/* Calls a method that answers with a JSON document in a pipe. ret_value may be NULL. */
static int
get_document(struct pull *p, const char *method, size_t max, json_t **ret_value, json_t **ret)
{
	cleanup_with(json_decref) json_t *value = NULL;
	cleanup_free char *text = NULL;
	cleanup_close int fd = -1;
	json_int_t pipe = 0;
	size_t len = 0;
	int r = img_proxy_call(
	    &p->proxy, method, mem_need(json_pack("[I]", p->image)), &value, &pipe, &fd, p->e);

	if (r < 0)
		return r;
	if (fd < 0)
		return err_say(p->e, -EBADMSG, "skopeo does not answer %s as expected", method);
	r = img_proxy_finish(&p->proxy, pipe, p->e);
	if (r == 0)
		r = read_all(p, fd, max, &text, &len);
	if (r == 0)
		r = img_proxy_finished(&p->proxy, p->e);
	if (r < 0)
		return r;
	*ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(*ret))
		return err_say(
		    p->e, -EBADMSG, "its manifest or configuration is not a JSON object");
	if (ret_value)
		*ret_value = steal_ptr(&value);
	return 0;
}

static int
open_image(struct pull *p, const char *name)
{
	cleanup_with(json_decref) json_t *value = NULL;
	int r = img_proxy_call(
	    &p->proxy, "OpenImage", mem_need(json_pack("[s]", name)), &value, NULL, NULL, p->e);

	p->image = json_integer_value(value);
	return r;
}

/* Opens an image and gets its manifest. */
static int
get_manifest(struct pull *p, const char *name, json_t **ret_digest, json_t **ret)
{
	int r = open_image(p, name);

	return r < 0 ? r : get_document(p, "GetManifest", IMG_MANIFEST_MAX, ret_digest, ret);
}

/* skopeo completes the names in an archive of Docker; those in an OCI layout may be short. */
static int
find_in_archive(struct pull *p, json_t **ret_digest, json_t **ret)
{
	static const char *const parts[] = { "", "docker.io/", "docker.io/library/" };
	const char *reference = p->spec.reference;
	int r = -ENOENT;

	if (!*reference)
		return get_manifest(p, p->archive, ret_digest, ret);
	for (size_t i = 0; r < 0 && i < ELEMENTSOF(parts); i++) {
		size_t n = strlen(parts[i]);
		cleanup_free char *name = NULL;

		if (strncmp(reference, parts[i], n) != 0)
			continue;
		name = mem_printf("%s:%s", p->archive, reference + n);
		r = get_manifest(p, name, ret_digest, ret);
		if (r < 0 && !strstr(p->e->msg, "no descriptor found") &&
		    !(strstr(p->e->msg, "Tag ") && strstr(p->e->msg, "not found")))
			return r;
	}
	return r < 0 ? err_say(p->e, -ENOENT, "the archive has no image %s", reference) : 0;
}

static int
find_in_registry(struct pull *p, json_t **ret_digest, json_t **ret)
{
	cleanup_free char *name = mem_printf("docker://%s", p->spec.reference);

	return get_manifest(p, name, ret_digest, ret);
}

/* --- layers --- */

static bool
is_had(const struct pull *p, const struct img_layer *l)
{
	for (size_t i = 0; i < json_array_size(p->spec.have); i++) {
		const char *id = json_string_value(json_array_get(p->spec.have, i));

		if (id && strcmp(id, l->diff_id) == 0)
			return true;
	}
	for (const struct img_layer *at = p->layers.v; at < l; at++)
		if (strcmp(at->digest, l->digest) == 0)
			return true;
	return false;
}

static int
request_blob(struct pull *p, struct img_blob *b)
{
	json_t *args = mem_need(
	    json_pack("[I, s, I]", p->image, b->layer->digest, (json_int_t)b->layer->size));
	int r = img_proxy_call(&p->proxy, "GetBlob", args, NULL, &b->pipe, &b->pipe_fd, p->e);

	if (r == 0 && b->pipe_fd < 0)
		r = err_say(p->e, -EBADMSG, "skopeo does not answer GetBlob as expected");
	return r;
}

/* Begins with a layer. Returns 0 also if it is there, or if another worker fetches it and `wait`
 * is false: then *ret_busy is true. */
static int
begin_layer(
    struct pull *p, struct img_blob *b, const struct img_layer *l, bool wait, bool *ret_busy)
{
	int r = is_had(p, l) ? 0 : img_blob_begin(b, p->blobs_fd, l, wait, p->e);

	if (r == 1)
		return request_blob(p, b);
	if (r == -EAGAIN) {
		*ret_busy = true;
		return 0;
	}
	if (r == 0)
		p->told->bytes += l->size;
	return r;
}

/* Fills the free places. A layer that another worker fetches is passed over; marked in `busy`. */
static int
begin_layers(struct pull *p, bool *busy)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < AT_ONCE; i++)
		while (r == 0 && !p->at_once[i].layer && p->next < p->layers.n) {
			r = begin_layer(
			    p, &p->at_once[i], &p->layers.v[p->next], false, &busy[p->next]);
			p->next++;
		}
	return r;
}

static int
read_blob(struct pull *p, struct img_blob *b)
{
	ssize_t n = img_blob_read(b, p->e);

	if (n > 0) {
		p->last_ms = clock_ms();
		p->bytes += (uint64_t)n;
		p->told->bytes += (uint64_t)n;
	} else
		close_p(&b->pipe_fd);
	return (int)n;
}

static int
begin_finish(struct pull *p, struct img_blob *b)
{
	p->finishing = b;
	return img_proxy_finish(&p->proxy, b->pipe, p->e);
}

/* skopeo has answered: the rest of the data is in the pipe. */
static int
end_finish(struct pull *p)
{
	struct img_blob *b = p->finishing;
	int r = img_proxy_finished(&p->proxy, p->e);

	p->finishing = NULL;
	p->last_ms = clock_ms();
	while (r == 0 && b->pipe_fd >= 0)
		r = read_blob(p, b) < 0 ? p->e->code : 0;
	if (r == 0)
		r = img_blob_commit(b, p->blobs_fd, p->e);
	img_blob_done(b, p->blobs_fd);
	return r;
}

/* Returns a layer of which all has arrived; if none has and `stalled`, one that has not. */
static struct img_blob *
choose_to_finish(struct pull *p, bool stalled)
{
	struct img_blob *found = NULL;

	for (struct img_blob *b = p->at_once + AT_ONCE; b-- > p->at_once;) {
		if (!b->layer)
			continue;
		if (b->bytes == b->layer->size)
			return b;
		if (stalled)
			found = b;
	}
	return found;
}

/* Waits for data, or for skopeo's answer. Returns 1 after some time without any. */
static int
wait_data(struct pull *p, struct pollfd fds[AT_ONCE + 1])
{
	for (size_t i = 0; i < AT_ONCE; i++)
		fds[i] = (struct pollfd){ .fd = p->at_once[i].layer ? p->at_once[i].pipe_fd : -1,
			.events = POLLIN };
	fds[AT_ONCE] = (struct pollfd){ .fd = p->finishing ? p->proxy.sock : -1, .events = POLLIN };
	if (poll(fds, AT_ONCE + 1, STALLED_MS) != 0)
		return 0;
	return clock_ms() - p->last_ms >= p->spec.idle_ms ? silent(p) : 1;
}

/* Moves data of the layers that are being fetched, and ends those that are complete. A layer of
 * which nothing arrives any more may be shorter than its manifest says, which skopeo tells only
 * when it is asked. */
static int
move_data(struct pull *p)
{
	struct pollfd fds[AT_ONCE + 1];
	struct img_blob *b = p->finishing ? NULL : choose_to_finish(p, false);
	int r = b ? begin_finish(p, b) : 0;

	if (r == 0)
		r = wait_data(p, fds);
	if (r == 1) {
		b = p->finishing ? NULL : choose_to_finish(p, true);
		return b ? begin_finish(p, b) : 0;
	}
	for (size_t i = 0; r == 0 && i < AT_ONCE; i++)
		if (fds[i].fd >= 0 && fds[i].revents && read_blob(p, &p->at_once[i]) < 0)
			r = p->e->code;
	if (r == 0 && p->finishing && fds[AT_ONCE].revents)
		r = end_finish(p);
	return r;
}

static bool
is_fetching(const struct pull *p)
{
	for (size_t i = 0; i < AT_ONCE; i++)
		if (p->at_once[i].layer)
			return true;
	return false;
}

static int
get_layers(struct pull *p)
{
	bool busy[IMG_LAYERS_MAX] = { false }, unused;
	int r = 0;

	p->told->total = p->layers.bytes;
	p->last_ms = clock_ms();
	while (r == 0) {
		if (!p->finishing)
			r = begin_layers(p, busy);
		if (!is_fetching(p))
			break;
		if (r == 0)
			r = move_data(p);
	}
	/* Another worker fetches these, or has given up. One at a time, so that no two workers wait
	 * for each other. */
	for (size_t i = 0; r == 0 && i < p->layers.n; i++) {
		if (busy[i])
			r = begin_layer(p, &p->at_once[0], &p->layers.v[i], true, &unused);
		while (r == 0 && is_fetching(p))
			r = move_data(p);
	}
	return r;
}

/* --- the whole --- */

/* The answer is a memfd with JSON. Returns it, or -errno. */
static int
make_answer(struct pull *p, const json_t *digest, json_t *config)
{
	cleanup_with(json_decref) json_t *answer = NULL;
	cleanup_free char *text = NULL;
	json_t *layers = mem_need(json_array());
	int fd;

	for (const struct img_layer *l = p->layers.v; l < p->layers.v + p->layers.n; l++)
		(void)json_array_append_new(
		    layers, mem_need(json_pack("{s:s, s:s, s:I}", "digest", l->digest, "diff_id",
				l->diff_id, "size", (json_int_t)l->size)));
	answer = mem_need(
	    json_pack("{s:O, s:O, s:o}", "digest", digest, "config", config, "layers", layers));
	text = mem_need(json_dumps(answer, JSON_COMPACT));
	fd = fd_memfd_sealed("image", text, strlen(text));
	return fd < 0 ? err_set(p->e, fd, "answer about an image") : fd;
}

static int
pull(struct pull *p)
{
	cleanup_with(json_decref) json_t *digest = NULL, *manifest = NULL, *config = NULL;
	const char *name;
	int r = p->archive ? find_in_archive(p, &digest, &manifest)
			   : find_in_registry(p, &digest, &manifest);

	name = json_string_value(digest);
	if (r == 0 && (!name || !img_is_digest(name)))
		r = err_say(p->e, -EBADMSG, "its manifest has no SHA-256 digest");
	if (r == 0)
		r = img_manifest_check_config(manifest, p->e);
	if (r == 0)
		r = get_document(p, "GetFullConfig", IMG_CONFIG_MAX, NULL, &config);
	if (r == 0)
		r = img_manifest_read(manifest, config, &p->layers, p->e);
	if (r == 0 && p->layers.bytes > p->spec.max_bytes)
		r = err_say(p->e, -EFBIG,
		    "its layers have %llu bytes, more than the %llu that are "
		    "allowed",
		    (unsigned long long)p->layers.bytes, (unsigned long long)p->spec.max_bytes);
	if (r == 0)
		r = get_layers(p);
	return r < 0 ? r : make_answer(p, digest, config);
}

static int
read_spec(int fd, struct pull *p, json_t **ret)
{
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, IMG_SPEC_MAX, &map, &len);

	if (r < 0)
		return err_set(p->e, r, "read the description of the image");
	*ret = len > 0 ? json_loadb(map, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	return img_spec_read(*ret, &p->spec, p->e);
}

/* Fetches from the proxy, which has been started (r = 0) or not. */
static int
end(struct pull *p, int r, struct worker_result *ret)
{
	char text[ERR_MSG_SIZE];

	if (r == 0)
		r = pull(p);
	for (size_t i = 0; i < AT_ONCE; i++)
		img_blob_done(&p->at_once[i], p->blobs_fd);
	img_proxy_done(&p->proxy);
	if (r < 0) { /* the registry or the archive chose a part of it */
		(void)utf8_sanitize(text, sizeof text, p->e->msg, strlen(p->e->msg));
		(void)strcpy(p->e->msg, text);
		return r;
	}
	ret->fd = r;
	ret->bytes = p->bytes;
	return 0;
}

/* worker_table_cancel() kills the worker's group. */
static int
begin(struct err *e)
{
	(void)setsid();
	json_set_alloc_funcs(mem_alloc, free);
	return set_limits(e);
}

int
img_pull(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct img_job *job = arg;
	struct pull p = { .told = job->told, .blobs_fd = fd, .proxy = { .sock = -1 }, .e = e };
	cleanup_with(json_decref) json_t *json = NULL;
	cleanup_close int auth = -1;
	int r = begin(e);

	if (r == 0)
		r = read_spec(fd + 1, &p, &json);
	p.spec.idle_ms = job->idle_ms;
	if (r == 0)
		auth = img_auth_make(&p.spec, job->has_auth_file ? fd + 2 : -1, e);
	if (r == 0 && auth < 0 && auth != -ENOENT)
		r = auth;
	if (r == 0)
		r = img_proxy_start(&p.proxy, &p.spec, auth, e);
	return end(&p, r, ret);
}

/* An earlier worker of this request may have died. */
static int
make_dir(int blobs_fd, const char *name, struct err *e)
{
	int r = tree_remove_at(blobs_fd, name), fd;

	if (r < 0 || mkdirat(blobs_fd, name, 0700) < 0)
		return err_set(e, r < 0 ? r : -errno, "make a directory for the archive");
	fd = fd_open_beneath(blobs_fd, name, O_RDONLY | O_DIRECTORY, 0);
	return fd < 0 ? err_set(e, fd, "open the directory of the archive") : fd;
}

int
img_load(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct img_load_job *job = arg;
	const struct img_archive_load_req *req = job->req;
	struct pull p = { .told = job->told,
		.blobs_fd = fd,
		.spec = { .reference = req->reference,
		    .os = "linux",
		    .architecture = req->architecture,
		    .variant = req->variant,
		    .max_bytes = req->max_bytes,
		    .idle_ms = req->timeout_ms,
		    .dir_fd = -1 },
		.proxy = { .sock = -1 },
		.e = e };
	char dir[ID_HEX_SIZE + sizeof ".load-"] = ".load-";
	cleanup_close int dir_fd = -1;
	int r = begin(e);

	id_to_hex(&req->pull, dir + strlen(dir));
	if (r == 0)
		r = dir_fd = p.spec.dir_fd = make_dir(fd, dir, e);
	if (r >= 0) {
		p.archive = img_archive_copy(fd + 1, dir_fd, req->digest, req->max_bytes, e);
		CRASH_POINT(IMG_AFTER_COPY);
		r = p.archive ? img_proxy_start(&p.proxy, &p.spec, -1, e) : e->code;
	}
	r = end(&p, r, ret);
	(void)tree_remove_at(fd, dir);
	if (r == -EREMOTEIO || r == -EAGAIN) { /* another try would find the same copy */
		struct err why = *e;

		return err_say(e, -EREMOTEIO, "skopeo cannot read the archive: %.400s", why.msg);
	}
	return r;
}
