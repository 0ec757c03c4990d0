// SPDX-License-Identifier: Apache-2.0
/* artifact_spec.c: what the fetcher and file-helper are told about an artifact. Runs in:
 * supervisor. */
#include "supervisor/alloc/artifact_spec.h"

#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_path.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/driver/driver.h"
#include "supervisor/service/task_env.h"

#define MIN_MS   1800000 /* as Nomad's: the whole fetch takes at least so long, … */
#define GRACE_MS 60000   /* … and this longer than the longest limit of a transfer */

/* --- the description --- */

static int
expand(struct task_env *env, const char *text, char **ret, struct err *e)
{
	return task_env_expand(env, str(text), false, ret, e);
}

static json_t *
expand_map(struct task_env *env, const struct string_map *map, struct err *e)
{
	cleanup_json json_t *object = json_object();

	for (size_t i = 0; i < map->n; i++) {
		cleanup_free char *value = NULL;

		if (expand(env, map->v[i].value, &value, e) < 0)
			return NULL;
		if (json_object_set_new(object, map->v[i].key, json_string(value)) < 0) {
			(void)err_say(
			    e, -EINVAL, "an option or header of the artifact is not UTF-8");
			return NULL;
		}
	}
	return json_incref(object);
}

static uint64_t
at_most(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : n;
}

static json_t *
describe(const struct task_runner *tr, struct task_env *env, const struct task_artifact *a,
    struct err *e)
{
	const struct config_artifact *config = &tr->ar->sup->config->artifact;
	cleanup_json json_t *options = expand_map(env, &a->options, e);
	cleanup_json json_t *headers = options ? expand_map(env, &a->headers, e) : NULL;
	cleanup_free char *source = NULL;
	json_t *spec;

	if (!headers || expand(env, a->source, &source, e) < 0)
		return NULL;
	spec = json_pack("{s:s, s:s, s:O, s:O, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "source",
	    source, "mode", *str(a->mode) ? a->mode : "any", "options", options, "headers", headers,
	    "insecure", a->insecure, "max_bytes",
	    (json_int_t)artifact_bytes_max(tr, config->http_bytes), "max_unpacked",
	    (json_int_t)artifact_bytes_max(tr, config->unpack_bytes), "max_files",
	    (json_int_t)at_most(config->unpack_files ? config->unpack_files : ARTIFACT_FILES_MAX),
	    "http_ms", (json_int_t)config->http_ms, "git_ms", (json_int_t)config->git_ms, "s3_ms",
	    (json_int_t)config->s3_ms);
	if (!spec)
		(void)err_say(e, -EINVAL, "the source of the artifact is not UTF-8");
	return spec;
}

static int
make_env(const struct task_runner *tr, struct task_env *ret, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(tr->task->driver));

	return driver
		   ? task_start_env(tr, driver, ret, e)
		   : err_say(e, -EINVAL, "this node has no driver \"%s\"", str(tr->task->driver));
}

int
artifact_spec_make(const struct task_runner *tr, const struct task_artifact *a, struct err *e)
{
	cleanup_json json_t *spec = NULL;
	cleanup_free char *text = NULL;
	struct task_env env = { 0 };
	int r = make_env(tr, &env, e);

	if (r < 0)
		return r;
	spec = describe(tr, &env, a, e);
	task_env_done(&env);
	if (!spec)
		return -EINVAL;
	text = mem_need(json_dumps(spec, JSON_COMPACT));
	if (strlen(text) > FET_SPEC_MAX)
		return err_say(e, -EINVAL,
		    "its source, options and headers have more than %d bytes", FET_SPEC_MAX);
	r = fd_memfd_sealed("artifact", text, strlen(text));
	return r < 0 ? err_set(e, r, "pass an artifact to the fetcher") : r;
}

uint64_t
artifact_bytes_max(const struct task_runner *tr, uint64_t max)
{
	uint64_t disk = (uint64_t)group_disk_mb(tr->ar->sa->group) << 20;

	return at_most(disk > 0 && disk < max ? disk : max);
}

uint32_t
artifact_timeout_ms(const struct task_runner *tr)
{
	const struct config_artifact *config = &tr->ar->sup->config->artifact;
	const uint64_t limits[] = { config->http_ms, config->git_ms, config->s3_ms };
	uint64_t ms = MIN_MS;

	for (size_t i = 0; i < ELEMENTSOF(limits); i++)
		ms = limits[i] > ms ? limits[i] : ms;
	return (uint32_t)(ms + GRACE_MS);
}

/* --- the destination --- */

/* Without a destination, an artifact is in local/, and with mode "file" has its own name there,
 * without the query, which may have a token. */
static char *
default_dest(const struct task_artifact *a)
{
	const char *source = str(a->source);
	size_t len = strcspn(source, "?");
	const char *slash = memrchr(source, '/', len), *name = slash ? slash + 1 : source;

	if (!str_eq(a->mode, "file"))
		return mem_strdup("local/");
	return mem_printf("local/%.*s", (int)(source + len - name), name);
}

static int
make_path(const struct task_runner *tr, const struct task_artifact *a, char ret[TASK_PATH_SIZE],
    struct err *e)
{
	cleanup_free char *dest = *str(a->dest) ? mem_strdup(a->dest) : default_dest(a);
	int r = task_path_make(tr, dest, ret, e);

	if (r == -EXDEV)
		return err_say(e, -EINVAL, "artifact destination path escapes alloc directory");
	if (r == -EPERM)
		return err_say(
		    e, -EINVAL, "the destination of an artifact must be in the task's directories");
	return r;
}

static bool
has_same_user(const struct task *a, const struct task *b)
{
	return str_eq(a->user, b->user) && (*str(a->user) || str_eq(a->driver, b->driver));
}

/* Whether the task has an artifact in the shared directory that becomes its user's. */
static bool
owns_shared(const struct task_runner *tr)
{
	char dest[TASK_PATH_SIZE];
	const char *rest;

	for (size_t i = 0; i < tr->task->artifacts.n; i++)
		if (tr->task->artifacts.v[i].chown &&
		    make_path(tr, &tr->task->artifacts.v[i], dest, NULL) == 0 &&
		    !task_path_begins(dest, tr->task->name, &rest))
			return true;
	return false;
}

/* The executor of a task gives it all that waits for an owner in the shared directory. */
static int
check_shared(const struct task_runner *tr, const struct task_artifact *a, struct err *e)
{
	const struct alloc_runner *ar = tr->ar;

	for (unsigned i = 0; a->chown && i < ar->n_tasks; i++)
		if (!has_same_user(ar->tasks[i].task, tr->task) && owns_shared(&ar->tasks[i]))
			return err_say(e, -EINVAL,
			    "chown: task \"%.100s\" has artifacts with chown in the shared "
			    "directory, "
			    "too, and another user",
			    ar->tasks[i].task->name);
	return 0;
}

int
artifact_dest_make(const struct task_runner *tr, const struct task_artifact *a,
    char ret[TASK_PATH_SIZE], struct err *e)
{
	const char *rest, *below;
	int r = make_path(tr, a, ret, e);

	if (r < 0)
		return r;
	if (!task_path_begins(ret, tr->task->name, &rest))
		return check_shared(tr, a, e);
	if (task_path_begins(rest, "secrets", &below) || task_path_begins(rest, "private", &below))
		return err_say(e, -EINVAL, "no artifact can be in %.7s/", rest);
	return 0;
}

/* --- names --- */

/* Whether the len bytes at host are not "host" or "host:port", but, as far as people can tell, the
 * beginning of a user and password that have one of / ? # in them. */
static bool
is_cut_password(const char *host, size_t len)
{
	const char *colon = memchr(host, ':', len);

	if (!colon || *host == '[')
		return false;
	len -= (size_t)(colon + 1 - host);
	return len == 0 || strspn(colon + 1, "0123456789") < len;
}

char *
artifact_shown(const struct task_artifact *a)
{
	const char *source = str(a->source), *scheme = strstr(source, "://");
	size_t len = strcspn(source, "?#");
	bool has_host = scheme && (size_t)(scheme - source) < len;
	const char *host = has_host ? scheme + 3 : source;
	const char *slash = memchr(host, '/', len - (size_t)(host - source));
	const char *end = slash ? slash : source + len;
	const char *at = memrchr(host, '@', (size_t)(end - host));

	if (!at && has_host && is_cut_password(host, (size_t)(end - host)))
		return mem_printf("%.*s…", (int)(host - source), source);
	if (!at || (host == source && !memchr(host, ':', (size_t)(at - host))))
		return mem_strndup(source, len);
	return mem_printf(
	    "%.*s%.*s", (int)(host - source), source, (int)(source + len - at - 1), at + 1);
}

void
artifact_hash(const struct task_artifact *a, char ret[ARTIFACT_HASH_SIZE])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct text text = { 0 };
	SHA2_CTX sha;

	model_to_text(&task_artifact_type, a, MODEL_COMPACT, &text);
	SHA256Init(&sha);
	SHA256Update(&sha, (const uint8_t *)text.text, text.len);
	SHA256Final(digest, &sha);
	text_done(&text);
	for (size_t i = 0; i < sizeof digest; i++)
		(void)sprintf(ret + 2 * i, "%02x", digest[i]);
}

bool
artifact_becomes_own(const struct task_runner *tr, const struct task_artifact *a, const char *dest)
{
	const struct driver_ops *driver = driver_find(str(tr->task->driver));
	const char *rest;

	return a->chown ||
	       (driver && driver->containers && task_path_begins(dest, tr->task->name, &rest));
}
