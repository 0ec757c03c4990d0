// SPDX-License-Identifier: Apache-2.0
/* task_image.c: the image of a container, before its start. Runs in: supervisor. */
#include "supervisor/alloc/task_image.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/duration.h"
#include "common/image_ref.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_config.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_file_read.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/driver/container.h"
#include "supervisor/driver/env_expand.h"
#include "supervisor/driver/signal_name.h"
#include "supervisor/driver/run.h"
#include "supervisor/image/image_gc.h"
#include "supervisor/image/image_load.h"
#include "supervisor/image/images.h"

struct task_image {
	struct task_runner *tr;
	void (*done)(struct task_runner *tr, int r, const struct err *e);
	struct image_want *want;     /* NULL: it is not waited for */
	struct task_file_read *file; /* its archive, which is being opened */
	struct image_load *load;     /* its archive, which is being read */
	struct image_use use;
	char name[IMAGE_REF_SIZE];
	char *text, *archive; /* as the job has them; archive NULL: it comes from a registry */
	unsigned timeout_ms;
	json_t *config;  /* "config" of the image; NULL: there is none, or it is not known */
	bool may_be_old; /* the image that is here serves, if the registry does not */
	struct sup_timer progress;
	uint64_t wait_usec; /* until the next event about progress */
};

static bool
has_image(const struct task_runner *tr)
{
	const struct driver_ops *driver = driver_find(str(tr->task->driver));

	return driver && driver->containers;
}

void
task_image_free(struct task_runner *tr)
{
	struct task_image *i = steal_ptr(&tr->image);

	if (!i)
		return;
	image_forget(i->want);
	sup_timer_cancel(&i->progress);
	task_file_read_forget(i->file);
	image_load_forget(i->load);
	free(i->text);
	free(i->archive);
	image_use_end(tr->ar->sup, &i->use);
	json_decref(i->config);
	free(i);
}

/* The credentials of the job, as the file that skopeo reads; NULL: none. As with Docker, the
 * image's registry gets them, whatever server_address says. */
static json_t *
read_auth(const struct task *task, const struct image_ref *ref)
{
	json_t *block = driver_config_get(task, "auth"), *auths;
	const char *user, *password;
	cleanup_free char *plain = NULL, *coded = NULL;

	block = json_is_array(block) ? json_array_get(block, 0) : block;
	user = json_string_value(json_object_get(block, "username"));
	password = json_string_value(json_object_get(block, "password"));
	if (!user && !password)
		return NULL;
	plain = mem_printf("%s:%s", str(user), str(password));
	coded = mem_alloc(BASE64_SIZE(strlen(plain)));
	(void)base64_encode(plain, strlen(plain), coded);
	auths = json_pack("{s:{s:s}}", ref->registry, "auth", coded);
	explicit_bzero(plain, strlen(plain));
	explicit_bzero(coded, strlen(coded));
	return json_pack("{s:o}", "auths", auths);
}

static void
take_image(struct task_image *i, const struct image *image)
{
	json_decref(i->config);
	i->config = json_incref(json_object_get(image->config, "config"));
}

static void
on_image(struct sup *sup, void *arg, const struct image *image, const struct err *why)
{
	struct task_image *i = arg;
	struct err e = { 0 };

	i->want = NULL;
	sup_timer_cancel(&i->progress);
	if (!image && i->may_be_old && (image = image_find(sup, i->name))) {
		cleanup_free char *text =
		    mem_printf("The image that is here is used, because it could not be fetched "
			       "again: %s",
			why->msg);

		task_runner_tell(i->tr, EVENT_DRIVER_MESSAGE, text, false);
	}
	if (image) {
		take_image(i, image);
	} else {
		(void)driver_lacks_need(sup, str(i->tr->task->driver));
		(void)err_say(&e, why->code == -EINVAL ? -EINVAL : -EAGAIN,
		    "Failed to pull `%.150s`: %.330s", i->name, why->msg);
	}
	i->done(i->tr, e.code, &e);
}

static void
tell_progress(void *arg)
{
	struct task_image *i = arg;
	uint64_t bytes, total;

	if (i->load ? image_load_progress(i->load, &bytes, &total)
		    : image_progress(i->want, &bytes, &total))
		task_runner_tell_progress(
		    i->tr, EVENT_DRIVER_MESSAGE, i->archive ?: i->name, bytes, total);
	i->wait_usec *= 2;
	sup_timer_set(
	    i->tr->ar->sup, &i->progress, CLOCK_MONOTONIC, i->wait_usec, tell_progress, i);
}

static void
follow_progress(struct task_image *i)
{
	i->wait_usec = EVENT_PROGRESS_USEC;
	sup_timer_set(
	    i->tr->ar->sup, &i->progress, CLOCK_MONOTONIC, i->wait_usec, tell_progress, i);
}

/* --- from an archive --- */

/* Podman's driver takes "docker-archive:PATH" and "oci-archive:PATH", both also with ":NAME". */
static const char *
strip_transport(const char *image)
{
	static const char *const transports[] = { "docker-archive:", "oci-archive:" };

	for (size_t i = 0; i < ELEMENTSOF(transports); i++)
		if (strncmp(image, transports[i], strlen(transports[i])) == 0)
			return image + strlen(transports[i]);
	return NULL;
}

/* Finds the name of the image and its archive, a path below the task's local/, as with Docker. */
static void
find_source(struct task_image *i, const struct task *task)
{
	const char *image = str(container_text(task, "image"));
	const char *load = container_text(task, "load"), *path = strip_transport(image);
	const char *name;

	if (driver_find(str(task->driver))->id != DRIVER_PODMAN)
		path = NULL;
	if (path) {
		name = path + strcspn(path, ":");
		i->text = mem_strdup(*name ? name + 1 : "");
		i->archive = *path == '/' ? mem_strndup(path, (size_t)(name - path))
					  : mem_printf("local/%.*s", (int)(name - path), path);
		return;
	}
	i->text = mem_strdup(image);
	if (load && *load)
		i->archive = mem_printf("local/%s", load);
}

/* Whether another try with the same job may succeed. */
static bool
may_pass(int code)
{
	static const int codes[] = { EINVAL, ENOENT, ENOTDIR, EXDEV, EACCES, EISDIR, ELOOP,
		ENAMETOOLONG, EOPNOTSUPP, EBADMSG, EREMOTEIO, EFBIG };

	for (size_t i = 0; i < ELEMENTSOF(codes); i++)
		if (code == -codes[i])
			return false;
	return true;
}

static void
fail_load(struct task_image *i, const struct err *why)
{
	struct err e = { 0 };

	(void)err_say(&e, may_pass(why->code) ? -EAGAIN : -EINVAL,
	    "Failed to load image%s%.150s from %.100s: %.250s", *i->text ? " " : "", i->text,
	    i->archive, why->msg);
	i->done(i->tr, e.code, &e);
}

static void
on_loaded(struct sup *sup, void *arg, const struct image *image, const struct err *why)
{
	struct task_image *i = arg;
	struct err none = { 0 };

	i->load = NULL;
	sup_timer_cancel(&i->progress);
	if (!image) {
		fail_load(i, why);
		return;
	}
	(void)strcpy(i->name, image->name);
	image_use_begin(sup, &i->use, i->name);
	take_image(i, image);
	i->done(i->tr, 0, &none);
}

static void
on_opened(
    struct sup *sup, void *arg, int r, const char *text, size_t len, int *fd, const struct err *e)
{
	struct task_image *i = arg;
	const struct image_request request = {
		.text = i->text, .timeout_ms = i->timeout_ms, .owner = alloc_job_hash(i->tr->ar)
	};
	struct err why = { 0 };

	i->file = NULL;
	if (r == -ENOENT)
		(void)err_say(&why, r,
		    "there is no such file; an artifact is unpacked unless it has options { "
		    "archive = false }");
	else if (r < 0)
		why = *e;
	else
		i->load = image_load(sup, &request, steal_fd(fd), on_loaded, i, &why);
	if (i->load)
		follow_progress(i);
	else
		fail_load(i, &why);
}

static void
load_image(struct task_image *i)
{
	task_runner_tell(i->tr, EVENT_DRIVER_MESSAGE, "Loading image", false);
	i->file = task_file_open(i->tr, i->archive, on_opened, i);
}

/* --- the whole --- */

/* Finds the configuration of the driver. The caller frees task->config. */
static int
evaluate(const struct task_runner *tr, struct task *ret, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(tr->task->driver));
	struct task_env env = { 0 };
	int r = task_start_env(tr, driver, &env, e);

	if (r < 0)
		return r;
	*ret = *tr->task;
	r = task_config_get(tr, &env, &ret->config, e);
	task_env_done(&env);
	return r;
}

static int
read_timeout(struct task_image *i, const struct task *task, struct err *e)
{
	const char *timeout = container_text(task, "image_pull_timeout");
	const struct config_container *config =
	    container_config(i->tr->ar->sup->config, driver_find(str(task->driver)));
	int64_t ns = 0;

	if (timeout &&
	    (duration_parse(timeout, &ns, e) < 0 || ns < NS_PER_MS || ns / NS_PER_MS > INT32_MAX))
		return err_say(e, -EINVAL,
		    "task %s: config.image_pull_timeout: \"%.40s\" is not a duration such as "
		    "\"5m\", of at most 24 days",
		    task->name, timeout);
	i->timeout_ms = timeout ? (unsigned)(ns / NS_PER_MS) : (unsigned)config->pull_ms;
	return 0;
}

static int
ask_registry(struct task_image *i, const struct task *task, struct err *e)
{
	struct image_request request = { .text = i->text,
		.timeout_ms = i->timeout_ms,
		.owner = alloc_job_hash(i->tr->ar),
		.force = container_flag(task, "force_pull") };
	cleanup_json json_t *auth = NULL;
	struct image_ref ref;
	int r = image_ref_parse(i->text, &ref, e);

	if (r < 0)
		return r;
	image_ref_format(&ref, i->name);
	/* As Nomad's clients: what "latest" names changes. */
	if (!request.force && strcmp(ref.tag, "latest") == 0 && !ref.digest[0])
		request.force = i->may_be_old = true;
	request.auth = auth = read_auth(task, &ref);
	if (!image_find(i->tr->ar->sup, i->name) || container_flag(task, "force_pull"))
		task_runner_tell(i->tr, EVENT_DRIVER_MESSAGE, "Downloading image", false);
	image_use_begin(i->tr->ar->sup, &i->use, i->name);
	i->want = image_want(i->tr->ar->sup, &request, on_image, i, e);
	if (!i->want)
		return e->code;
	follow_progress(i);
	return 0;
}

static int
ask_image(struct task_image *i, const struct task *task, struct err *e)
{
	int r = read_timeout(i, task, e);

	if (r < 0)
		return r;
	find_source(i, task);
	if (!i->archive)
		return ask_registry(i, task, e);
	load_image(i);
	return 0;
}

void
task_image_prepare(
    struct task_runner *tr, void (*done)(struct task_runner *tr, int r, const struct err *e))
{
	struct err e = { 0 };
	struct task task;
	int r;

	task_image_free(tr);
	if (!has_image(tr)) {
		done(tr, 0, &e);
		return;
	}
	tr->image = mem_new(struct task_image);
	*tr->image = (struct task_image){ .tr = tr, .done = done };
	r = evaluate(tr, &task, &e);
	if (r == 0) {
		r = ask_image(tr->image, &task, &e);
		json_decref(task.config);
	}
	if (r < 0)
		done(tr, r, &e);
}

/* After a restart of the agent, the image of a running container is the one of its name, if it is
 * still here; of those from archives, one with its layers. */
static const struct image *
find_by_name(struct task_image *i)
{
	struct sup *sup = i->tr->ar->sup;
	const struct image *image;
	struct image_ref ref;
	struct err e = { 0 };

	if (i->archive) {
		image = i->tr->run ? image_find_loaded(sup, i->text, run_layers(i->tr->run)) : NULL;
		if (image)
			(void)strcpy(i->name, image->name);
		return image;
	}
	if (image_ref_parse(i->text, &ref, &e) < 0)
		return NULL;
	image_ref_format(&ref, i->name);
	return image_find(sup, i->name);
}

static void
find_again(struct task_runner *tr)
{
	struct err e = { 0 };
	struct task task;
	const struct image *image;

	tr->image = mem_new(struct task_image);
	*tr->image = (struct task_image){ .tr = tr };
	if (evaluate(tr, &task, &e) < 0)
		return;
	find_source(tr->image, &task);
	image = find_by_name(tr->image);
	if (*tr->image->name)
		image_use_begin(tr->ar->sup, &tr->image->use, tr->image->name);
	if (image)
		take_image(tr->image, image);
	json_decref(task.config);
}

const json_t *
task_image_config(struct task_runner *tr)
{
	if (!tr->image && has_image(tr))
		find_again(tr);
	return tr->image ? tr->image->config : NULL;
}

int
task_image_stop_signal(struct task_runner *tr)
{
	const char *text;
	int signo;

	if (!has_image(tr))
		return SIGINT;
	text = str(json_string_value(json_object_get(task_image_config(tr), "StopSignal")));
	signo = *text ? signal_from_name(text) : SIGTERM;
	if (signo < 0)
		signo = (int)strtol(text, NULL, 10); /* images may have the number */
	return signo > 0 && signo <= SIGRTMAX ? signo : SIGTERM;
}

/* overlayfs wants the highest layer first. */
int
task_image_fill(struct task_runner *tr, struct exec_task_start_req *req, struct err *e)
{
	const struct image *image = tr->image ? image_find(tr->ar->sup, tr->image->name) : NULL;
	uint8_t *to = (uint8_t *)req->layers;

	if (!has_image(tr))
		return 0;
	if (!image)
		return err_say(e, -EAGAIN, "image %s was removed before the task's start",
		    tr->image ? tr->image->name : "");
	if (image->n_layers > EXEC_LAYERS_MAX)
		return err_say(e, -EINVAL, "image %s has %zu layers, %d are allowed", image->name,
		    image->n_layers, EXEC_LAYERS_MAX);
	for (size_t i = 0; i < image->n_layers; i++) {
		const char *digits = image->layers[image->n_layers - 1 - i].id;

		for (size_t k = 0; k < 32; k++) {
			const char two[3] = { digits[2 * k], digits[2 * k + 1], '\0' };

			to[32 * i + k] = (uint8_t)strtoul(two, NULL, 16);
		}
	}
	req->n_layers = (uint32_t)image->n_layers;
	return 0;
}
