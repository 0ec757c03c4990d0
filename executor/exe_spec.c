// SPDX-License-Identifier: Apache-2.0
/* exe_spec.c: checks the strings of the supervisor and builds argv and environment. Runs in: the
 * task's child, as the task's user. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "common/spec.h"

#define BASE_ENV      5
#define CONTAINER_ENV 3

static int
take_entry(struct exe_spec *s, const struct spec_entry *entry, enum spec_tag before)
{
	struct spec_file file;

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
	case SPEC_CWD:
		if (s->cwd || entry->text[0] != '/')
			return -EBADMSG;
		s->cwd = entry->text;
		return 0;
	case SPEC_USER:
		if (s->user)
			return -EBADMSG;
		s->user = entry->text;
		return 0;
	case SPEC_OPTION:
		return entry->text[0] == '=' || !strchr(entry->text, '=') ? -EBADMSG : 0;
	case SPEC_FILE:
		return spec_file_parse(entry->text, &file);
	case SPEC_FILE_DATA:
		return before == SPEC_FILE ? 0 : -EBADMSG;
	}
	return -EBADMSG;
}

int
exe_spec_read(const void *map, size_t size, struct exe_spec *s)
{
	enum spec_tag before = 0;
	struct spec_entry entry;
	size_t at = 0, n = 0;
	int r;

	while ((r = spec_next(map, size, &at, &entry)) == 1) {
		if (++n > SPEC_ENTRIES_MAX || (before == SPEC_FILE && entry.tag != SPEC_FILE_DATA))
			return -EBADMSG;
		r = take_entry(s, &entry, before);
		if (r < 0)
			return r;
		before = (enum spec_tag)entry.tag;
	}
	return r < 0 || before == SPEC_FILE ? -EBADMSG : 0;
}

/* Sets a variable; the last value of a name wins. */
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

/* What Docker adds to the environment of an image. */
static size_t
container_env(char **envp, char *text, size_t size)
{
	const char *const names[CONTAINER_ENV] = { "PATH", "HOME", "HOSTNAME" };
	const char *const values[CONTAINER_ENV] = { EXE_BASE_PATH, exe_inside.home,
		exe_inside.hostname };
	size_t at = 0, n = 0;

	for (size_t i = 0; i < CONTAINER_ENV; i++) {
		int len = snprintf(text + at, size - at, "%s=%s", names[i], values[i]);

		if (len < 0 || (size_t)len >= size - at)
			break;
		set_env(envp, &n, text + at);
		at += (size_t)len + 1;
	}
	return n;
}

/* The environment that a service of this user would get, without the agent's variables. */
static size_t
base_env(struct exe *x, char **envp)
{
	static char text[BASE_ENV * (CONFIG_PATH_SIZE + 16)];
	const struct exe_user *u = &x->setup->user;
	const char *const names[BASE_ENV] = { "PATH", "HOME", "USER", "LOGNAME", "SHELL" };
	const char *const values[BASE_ENV] = { EXE_BASE_PATH, u->home, u->name, u->name, u->shell };
	size_t at = 0, n = 0;

	if (x->container)
		return container_env(envp, text, sizeof text);
	for (size_t i = 0; i < BASE_ENV; i++) {
		set_env(envp, &n, text + at);
		at +=
		    (size_t)snprintf(text + at, sizeof text - at, "%s=%s", names[i], values[i]) + 1;
	}
	return n;
}

/* Only the task's child writes it. A common symbol, as exe_journal_memory is. */
extern char *exe_words[SPEC_ENTRIES_MAX + BASE_ENV + 3];
char *exe_words[SPEC_ENTRIES_MAX + BASE_ENV + 3] __attribute__((common));

void
exe_spec_words(struct exe *x)
{
	struct exe_spec *s = &x->spec;
	struct spec_entry entry;
	size_t at = 0, n_argv = 0, n_env;

	s->argv = exe_words;
	s->envp = exe_words + s->n_args + 2;
	s->argv[n_argv++] = (char *)(uintptr_t)s->command;
	n_env = base_env(x, s->envp);
	while (spec_next(s->map, s->size, &at, &entry) == 1) {
		if (entry.tag == SPEC_ARG)
			s->argv[n_argv++] = (char *)(uintptr_t)entry.text;
		else if (entry.tag == SPEC_ENV)
			set_env(s->envp, &n_env, entry.text);
	}
}
