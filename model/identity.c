// SPDX-License-Identifier: Apache-2.0
/* identity.c: identity blocks: the tokens that a job requests for a task. Runs in: supervisor,
 * cli. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/id.h"
#include "model/engine/table.h"
#include "model/task.h"

#define SECRETS "secrets/"

_Static_assert(IDENTITY_FILE_SIZE > NAME_BYTES_MAX + sizeof SECRETS, "a file's name does not fit");

const char *const identity_change_names[] = { "", "noop", "signal", "restart" };

/* The name becomes part of the names of a variable and a file, so it has only letters, digits, '-'
 * and '_'. */
static bool
is_identity_name(const char *name)
{
	size_t len =
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return len > 0 && len <= NAME_BYTES_MAX && name[len] == '\0';
}

bool
is_signal_name(const char *name)
{
	const char *short_name = strncmp(name, "SIG", 3) ? name : name + 3;

	for (int i = 1; i < NSIG; i++)
		if (sigabbrev_np(i) && !strcmp(sigabbrev_np(i), short_name))
			return true;
	return false;
}

const struct workload_identity *
identity_of(const struct task *task, const char *name)
{
	for (size_t i = 0; i < task->identities.n; i++)
		if (str_eq(task->identities.v[i].name, name))
			return &task->identities.v[i];
	return NULL;
}

/* --- the token's file --- */

/* Moves *at to the next part of the path, skipping "" and "."; returns its length, or 0 at the
 * end. */
static size_t
next_part(const char **at)
{
	size_t len;

	while (**at) {
		len = strcspn(*at, "/");
		if (len > 0 && !(len == 1 && **at == '.'))
			return len;
		*at += len + (len == 0);
	}
	return 0;
}

static bool
part_is(const char *part, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(part, name, len) == 0;
}

static int
split(const char *path, const char **ret_dir, size_t *ret_dir_len, char name[NAME_BYTES_MAX + 1])
{
	const char *parts[2] = { NULL, NULL };
	size_t lens[2] = { 0, 0 }, n = 0, len;

	while ((len = next_part(&path)) > 0) {
		if (part_is(path, len, ".."))
			return -EXDEV;
		if (n < 2) {
			parts[n] = path;
			lens[n] = len;
		}
		n++;
		path += len;
	}
	if (n != 2 || lens[1] > NAME_BYTES_MAX)
		return -EINVAL;
	*ret_dir = parts[0];
	*ret_dir_len = lens[0];
	memcpy(name, parts[1], lens[1]);
	name[lens[1]] = '\0';
	return name_is_component(name) ? 0 : -EINVAL;
}

int
identity_file(const struct workload_identity *identity, char ret[IDENTITY_FILE_SIZE], struct err *e)
{
	char name[NAME_BYTES_MAX + 1];
	const char *dir;
	size_t len;
	int r;

	if (!*str(identity->filepath)) {
		if (str_eq(identity->name, IDENTITY_DEFAULT) || !*str(identity->name))
			(void)snprintf(ret, IDENTITY_FILE_SIZE, SECRETS "nomad_token");
		else if (snprintf(name, sizeof name, "nomad_%s.jwt", identity->name) <
			 (int)sizeof name)
			(void)snprintf(ret, IDENTITY_FILE_SIZE, SECRETS "%s", name);
		else
			return err_say(
			    e, -EINVAL, "its name is too long for a file name: set filepath");
		return 0;
	}
	r = split(identity->filepath, &dir, &len, name);
	if (r == -EXDEV)
		return err_say(e, -EINVAL,
		    "filepath \"%.200s\" must not contain \"..\": the file is in the task's "
		    "directory",
		    identity->filepath);
	if (r < 0 || !(part_is(dir, len, "local") || part_is(dir, len, "secrets")))
		return err_say(e, -EINVAL,
		    "filepath \"%.200s\" must be local/NAME or secrets/NAME, where NAME has 1 to "
		    "%d letters, digits, '.', '_' and '-' and no leading dot",
		    identity->filepath, NAME_BYTES_MAX);
	(void)snprintf(
	    ret, IDENTITY_FILE_SIZE, "%s%s", part_is(dir, len, "local") ? "local/" : SECRETS, name);
	return 0;
}

/* --- field table --- */

#define S workload_identity
static const struct field workload_identity_fields[] = {
	F_STRING(name, "Name"),
	F_STRINGS(audience, "Audience"),
	F_ENUM(change_mode, "ChangeMode", identity_change_names),
	F_STRING(change_signal, "ChangeSignal"),
	F_BOOL(env, "Env"),
	F_BOOL(file, "File"),
	F_STRING(filepath, "Filepath"),
	F_STRING(service_name, "ServiceName"),
	F_DURATION(ttl, "TTL"),
	F_STRINGS(extra_claims, "ExtraClaims"),
};

static void
validate_identity(const void *obj, struct problems *p)
{
	const struct workload_identity *w = obj;
	const char *name = *str(w->name) ? w->name : IDENTITY_DEFAULT;
	char file[IDENTITY_FILE_SIZE];
	struct err e = { 0 };

	if (!is_identity_name(name))
		model_problem(
		    p, "its name must have 1 to %d letters, digits, '-' and '_'", NAME_BYTES_MAX);
	for (size_t i = 0; i < w->audience.n; i++)
		if (!*str(w->audience.v[i]))
			model_problem(p, "an audience is empty");
	if (w->change_mode == IDENTITY_SIGNAL && !is_signal_name(str(w->change_signal)))
		model_problem(p,
		    "change_mode \"signal\" needs a change_signal, and \"%.40s\" is not one",
		    str(w->change_signal));
	if (w->change_mode != IDENTITY_SIGNAL && *str(w->change_signal))
		model_problem(p, "change_signal needs change_mode = \"signal\"");
	if (w->ttl < 0)
		model_problem(p, "ttl must not be negative");
	if (w->ttl > 0 && strcmp(name, IDENTITY_DEFAULT) == 0)
		model_problem(p, "the default identity cannot have a ttl");
	if (*str(w->filepath) && !w->file)
		model_problem(p, "filepath needs file = true");
	if (w->file && identity_file(w, file, &e) < 0)
		model_problem(p, "%s", e.msg);
}
MODEL_TYPE(workload_identity, workload_identity_fields, .name = "identity",
    .validate = validate_identity, .title = 1 + offsetof(struct workload_identity, name));
#undef S
