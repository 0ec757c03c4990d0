// SPDX-License-Identifier: Apache-2.0
/* exe_setup.c: what exec-helper handed over, and the strings that the supervisor wrote. Runs in:
 * executor, as root; exe_spec_read() and exe_spec_words() in the task's child, as the task's user.
 */
#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "executor/exe.h"
#include "proto/task_spec.h"

#define BASE_ENV      5
#define BASE_ENV_SIZE (BASE_ENV * (CONFIG_PATH_SIZE + 16))

static int
take_entry(struct exe_spec *s, const struct spec_entry *entry, enum spec_tag before)
{
	switch ((enum spec_tag)entry->tag) {
	case SPEC_COMMAND:
		if (s->command || entry->len == 0)
			return -EBADMSG;
		s->command = entry->text;
		return 0;
	case SPEC_ARG:
		s->n_args++;
		return 0;
	case SPEC_ENV:
		s->n_env++;
		return entry->text[0] == '=' || !strchr(entry->text, '=') ? -EBADMSG : 0;
	case SPEC_MOUNT_DEST:
		if (s->n_dests == EXE_MOUNTS_MAX || entry->text[0] != '/')
			return -EBADMSG;
		s->dests[s->n_dests++] = entry->text;
		return 0;
	case SPEC_CWD:
		if (s->cwd || entry->text[0] != '/')
			return -EBADMSG;
		s->cwd = entry->text;
		return 0;
	case SPEC_SECRET_NAME:
		if (spec_local_name(entry->text))
			return name_is_path(spec_local_name(entry->text)) ? 0 : -EBADMSG;
		return name_is_component(entry->text) ? 0 : -EBADMSG;
	case SPEC_SECRET_DATA:
		return before == SPEC_SECRET_NAME ? 0 : -EBADMSG;
	}
	return -EBADMSG;
}

/* Where mounts go is all of the spec that root needs. */
static int
read_dests(struct exe_spec *s)
{
	struct spec_entry entry;
	size_t at = 0;
	int r;

	while ((r = spec_next(s->map, s->size, &at, &entry)) == 1) {
		if (entry.tag != SPEC_MOUNT_DEST)
			continue;
		if (s->n_dests == EXE_MOUNTS_MAX || entry.text[0] != '/')
			return -EBADMSG;
		s->dests[s->n_dests++] = entry.text;
	}
	return r;
}

int
exe_spec_read(const void *map, size_t size, struct exe_spec *s)
{
	enum spec_tag before = 0;
	struct spec_entry entry;
	size_t at = 0, n = 0;
	int r;

	s->n_dests = 0;
	while ((r = spec_next(map, size, &at, &entry)) == 1) {
		if (++n > SPEC_ENTRIES_MAX ||
		    (before == SPEC_SECRET_NAME && entry.tag != SPEC_SECRET_DATA))
			return -EBADMSG;
		r = take_entry(s, &entry, before);
		if (r < 0)
			return r;
		before = (enum spec_tag)entry.tag;
	}
	return r < 0 || before == SPEC_SECRET_NAME ? -EBADMSG : 0;
}

static int
map_setup(struct exe *x)
{
	const void *map;
	size_t len;
	int r = fd_memfd_map(EXE_FD_SETUP, sizeof *x->setup, &map, &len);
	const struct exe_setup *s = r < 0 ? NULL : map;

	if (r < 0)
		return r;
	if (len < EXE_SETUP_SIZE(0) || s->magic != EXE_SETUP_MAGIC || s->size != len ||
	    len != EXE_SETUP_SIZE(s->n_mounts))
		return -EBADMSG;
	x->setup = s;
	x->keep = s->keep;
	return 0;
}

int
exe_setup_read(struct exe *x)
{
	int r;

	x->pidfd = x->task_dir = x->signals = x->kill_fd = x->events_fd = x->oom_fd = -1;
	x->lease_fd = x->lease_timer = -1;
	for (size_t i = 0; i < ELEMENTSOF(x->ends); i++)
		x->ends[i] = x->above[i] = -1;
	for (size_t i = 0; i < ELEMENTSOF(x->logs); i++)
		x->logs[i].pipe = x->logs[i].file = -1;
	for (size_t i = 0; i < EXE_PEERS_MAX; i++)
		x->peers[i] = -1;
	x->listen = EXE_FD_LISTEN;
	r = map_setup(x);
	if (r < 0)
		return exe_failed(x, EXE_STEP_SPEC, -r, 1);
	x->session = x->setup->session != 0;
	/* The record that exec-helper wrote is the one that goes on. */
	if (!x->session &&
	    pread(EXE_FD_RECORD, &x->record, sizeof x->record, 0) != (ssize_t)sizeof x->record)
		return exe_failed(x, EXE_STEP_SPEC, EIO, 0);
	if (x->session) {
		x->peers[0] = x->listen;
		x->listen = -1;
	}
	r = fd_memfd_map(EXE_FD_SPEC, SPEC_BYTES_MAX, &x->spec.map, &x->spec.size);
	if (r == 0)
		r = read_dests(&x->spec);
	if (r == 0 && x->setup->driver == DRIVER_EXEC && x->spec.n_dests != x->setup->n_mounts)
		r = -EBADMSG;
	return r < 0 ? exe_failed(x, EXE_STEP_SPEC, -r, 0) : 0;
}

/* Sets one variable: the last of one name wins. */
static void
set_env(char **envp, size_t *n, const char *text)
{
	size_t name = strcspn(text, "=") + 1;

	for (size_t i = 0; i < *n; i++)
		if (strncmp(envp[i], text, name) == 0) {
			envp[i] = (char *)(uintptr_t)text;
			return;
		}
	envp[(*n)++] = (char *)(uintptr_t)text;
}

/* What a service of that user would get, and nothing of the agent's. */
static size_t
base_env(struct exe *x, char **envp, char *text)
{
	const struct exe_user *u = &x->setup->user;
	const char *const names[BASE_ENV] = { "PATH", "HOME", "USER", "LOGNAME", "SHELL" };
	const char *const values[BASE_ENV] = { EXE_BASE_PATH, u->home, u->name, u->name, u->shell };
	size_t at = 0, n = 0;

	for (size_t i = 0; i < BASE_ENV; i++) {
		set_env(envp, &n, text + at);
		at +=
		    (size_t)snprintf(text + at, BASE_ENV_SIZE - at, "%s=%s", names[i], values[i]) +
		    1;
	}
	return n;
}

int
exe_spec_words(struct exe *x)
{
	struct exe_spec *s = &x->spec;
	struct spec_entry entry;
	size_t at = 0, n_argv = 0, n_env;
	void *map;

	s->words_size = (s->n_args + s->n_env + BASE_ENV + 3) * sizeof(char *) + BASE_ENV_SIZE;
	map = mmap(NULL, s->words_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	s->argv = map;
	s->envp = s->argv + s->n_args + 2;
	s->argv[n_argv++] = (char *)(uintptr_t)s->command;
	n_env = base_env(x, s->envp, (char *)(s->envp + s->n_env + BASE_ENV + 1));
	while (spec_next(s->map, s->size, &at, &entry) == 1) {
		if (entry.tag == SPEC_ARG)
			s->argv[n_argv++] = (char *)(uintptr_t)entry.text;
		else if (entry.tag == SPEC_ENV)
			set_env(s->envp, &n_env, entry.text);
	}
	return 0;
}

void
exe_setup_done(struct exe *x)
{
	struct exe_spec *s = &x->spec;

	(void)munmap(s->argv, s->words_size);
	(void)munmap((void *)(uintptr_t)s->map, s->size);
	(void)munmap((void *)(uintptr_t)x->setup, x->setup->size);
	memset(s, 0, sizeof *s);
	x->setup = NULL;
	(void)close(EXE_FD_SPEC);
	(void)close(EXE_FD_SETUP);
}
