// SPDX-License-Identifier: Apache-2.0
/* fet_aws_keys.c: credentials of s3 that the machine has, because the configuration hands variables
 * to the fetcher: keys, or the name of a file with keys, which its user must be able to read. Runs
 * in: a worker of the fetcher. */
#include "fetcher/fet_aws_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"

#define FILE_VARIABLE "AWS_SHARED_CREDENTIALS_FILE"
#define FILE_MAX      65536

/* --- the file --- */

/* Cuts blanks off both ends of the line's part. */
static char *
copy_trimmed(const char *at, size_t len)
{
	while (len > 0 && strchr(" \t\r", *at))
		at++, len--;
	while (len > 0 && strchr(" \t\r", at[len - 1]))
		len--;
	return mem_strndup(at, len);
}

static void
take_line(const char *line, size_t len, struct aws_keys *ret)
{
	static const char *const names[] = { "aws_access_key_id", "aws_secret_access_key",
		"aws_session_token" };
	char **values[] = { &ret->id, &ret->secret, &ret->token };
	const char *equals = memchr(line, '=', len);
	cleanup_free char *name =
	    equals ? copy_trimmed(line, (size_t)(equals - line)) : mem_strdup("");

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (strcmp(name, names[i]) == 0) {
			free(*values[i]);
			*values[i] = copy_trimmed(equals + 1, (size_t)(line + len - equals - 1));
		}
}

/* Whether the line begins a section, and, in *ret, whether it is that of the profile. */
static bool
is_section(const char *line, size_t len, const char *profile, bool *ret)
{
	const char *end = memchr(line, ']', len);
	cleanup_free char *name = NULL;

	if (len == 0 || *line != '[' || !end)
		return false;
	name = copy_trimmed(line + 1, (size_t)(end - line - 1));
	*ret = strcmp(name, profile) == 0;
	return true;
}

bool
aws_keys_parse(const char *text, size_t len, const char *profile, struct aws_keys *ret)
{
	const char *end = text + len;
	bool inside = false, found = false;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);

		if (!is_section(text, n, profile, &inside) && inside && *text != '#' &&
		    *text != ';')
			take_line(text, n, ret);
		found |= inside;
		text += n + 1;
	}
	return found;
}

/* --- the machine --- */

static int
read_profile(
    const char *path, const char *profile, bool optional, struct aws_keys *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	ssize_t n = fd_read_file(AT_FDCWD, path, FILE_MAX, &text);

	if (n < 0)
		return err_set(
		    e, (int)n, "read the file that the agent's variable " FILE_VARIABLE " names");
	if (!aws_keys_parse(text, (size_t)n, profile, ret) && !optional)
		return err_say(e, -ENOENT,
		    "aws_profile: the agent's credentials have no profile \"%.100s\"", profile);
	return 0;
}

static char *
copy_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? mem_strdup(value) : NULL;
}

int
aws_keys_of_machine(const char *profile, struct aws_keys *ret, struct err *e)
{
	const char *path = getenv(FILE_VARIABLE);

	if (profile && !(path && *path))
		return err_say(e, -EINVAL,
		    "aws_profile: the agent's configuration names no file with credentials "
		    "(" FILE_VARIABLE
		    " in set_environment_variables of client { artifact { ... } })");
	if (profile)
		return read_profile(path, profile, false, ret, e);
	ret->id = copy_variable("AWS_ACCESS_KEY_ID");
	ret->secret = copy_variable("AWS_SECRET_ACCESS_KEY");
	ret->token = copy_variable("AWS_SESSION_TOKEN");
	return ret->id || !(path && *path) ? 0 : read_profile(path, "default", true, ret, e);
}
