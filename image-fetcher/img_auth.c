// SPDX-License-Identifier: Apache-2.0
/* img_auth.c: the file of credentials that skopeo gets: the task's own, those of the file that the
 * agent's configuration names, or a helper that knows them, in this order. Runs in: a worker of the
 * image-fetcher. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "image-fetcher/img.h"

#define FILE_MAX ((size_t)1 << 20)

/* Docker's names for docker.io in such files. */
static const char *const hub_names[] = { "https://index.docker.io/v1/",
	"https://index.docker.io/v1", "index.docker.io", "registry-1.docker.io", "docker.io" };

/* Reads the agent's file, as Docker's config.json. Returns a new object; NULL with *e. */
static json_t *
read_file(int fd, struct err *e)
{
	json_t *file = NULL;
	const void *map;
	size_t len;
	int r;

	if (fd < 0)
		return mem_need(json_object());
	r = fd_memfd_map(fd, FILE_MAX, &map, &len);
	if (r < 0) {
		(void)err_set(e, r, "read the file of auth.config");
		return NULL;
	}
	file = len > 0 ? json_loadb(map, len, 0, NULL) : mem_need(json_object());
	if (len > 0)
		(void)munmap((void *)(uintptr_t)map, len);
	if (json_is_object(file))
		return file;
	json_decref(file);
	(void)err_say(e, -EINVAL,
	    "the file that auth.config names is not a JSON object, as `docker login` writes it");
	return NULL;
}

/* Returns the member of this name, an object; makes it if it is missing. */
static json_t *
part_of(json_t *file, const char *name)
{
	json_t *part = json_object_get(file, name);

	if (!json_is_object(part)) {
		part = mem_need(json_object());
		(void)json_object_set_new(file, name, part);
	}
	return part;
}

/* Whether a key of such a file is about this registry: "https://HOST/v1/", "HOST" or "HOST/PATH".
 */
static bool
is_about(const char *key, const char *registry)
{
	size_t n = strlen(registry);

	if (strcmp(registry, "docker.io") == 0)
		for (size_t i = 0; i < ELEMENTSOF(hub_names); i++)
			if (strcmp(key, hub_names[i]) == 0)
				return true;
	if (strncmp(key, "https://", 8) == 0)
		key += 8;
	else if (strncmp(key, "http://", 7) == 0)
		key += 7;
	return strncmp(key, registry, n) == 0 && (key[n] == '\0' || key[n] == '/');
}

/* `docker login` with a store leaves an empty object for each registry. */
static bool
is_known(const json_t *file, const char *registry)
{
	json_t *value;
	const char *key;

	json_object_foreach (json_object_get(file, "auths"), key, value)
		if (json_object_size(value) > 0 && is_about(key, registry))
			return true;
	json_object_foreach (json_object_get(file, "credHelpers"), key, value)
		if (is_about(key, registry))
			return true;
	return false;
}

/* The task's own credentials come before all others: skopeo would ask a helper first. */
static void
replace(json_t *file, const json_t *own, const char *registry)
{
	static const char *const parts[] = { "auths", "credHelpers" };
	json_t *value;
	const char *key;
	void *next;

	for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
		json_t *part = part_of(file, parts[i]);

		json_object_foreach_safe(part, next, key, value) if (is_about(key, registry))(void)
		    json_object_del(part, key);
	}
	(void)json_object_update(part_of(file, "auths"), json_object_get(own, "auths"));
}

int
img_auth_make(const struct img_spec *spec, int file_fd, struct err *e)
{
	cleanup_with(json_decref) json_t *file = read_file(file_fd, e);
	cleanup_free char *registry = mem_strndup(spec->reference, strcspn(spec->reference, "/"));
	cleanup_free char *text = NULL;
	const char *store;
	int fd;

	if (!file)
		return e->code;
	store = json_string_value(json_object_get(file, "credsStore"));
	if (spec->auth)
		replace(file, spec->auth, registry);
	else if (!is_known(file, registry) && (store || *spec->helper))
		(void)json_object_set_new(part_of(file, "credHelpers"), registry,
		    mem_need(json_string(store ? store : spec->helper)));
	if (!is_known(file, registry))
		return -ENOENT;
	text = mem_need(json_dumps(file, JSON_COMPACT));
	fd = fd_memfd_sealed("auth", text, strlen(text));
	explicit_bzero(text, strlen(text));
	return fd < 0 ? err_set(e, fd, "pass credentials to skopeo") : fd;
}
