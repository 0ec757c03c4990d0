// SPDX-License-Identifier: Apache-2.0
/* mountinfo.c: parses /proc/self/mountinfo (proc(5)). Runs in: launcher, mount-helper, exec-
 * helper. */
#include "common/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/fd.h"

#define MOUNTINFO_BYTES_MAX (64u * 1024 * 1024)

static bool
is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes space, tab, newline, backslash and '#' as \ooo. */
static char *
undo_escapes(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && is_octal(from[2]) &&
		    is_octal(from[3])) {
			*to++ =
			    (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return text;
}

/* id parent major:minor root target options [optional fields] - type source super-options */
static int
parse_line(char *line, struct mountinfo *m)
{
	char *target = NULL, *word;

	for (int i = 0; i < 5; i++)
		target = strsep(&line, " ");
	while ((word = strsep(&line, " ")) && strcmp(word, "-") != 0)
		;
	m->type = strsep(&line, " ");
	if (!strsep(&line, " ") || !target || target[0] != '/')
		return -EBADMSG;
	m->options = line ?: "";
	m->target = undo_escapes(target);
	return 1;
}

int
mountinfo_next(char **text, struct mountinfo *ret)
{
	char *line = strsep(text, "\n");

	return line && (*line || *text) ? parse_line(line, ret) : 0;
}

int
mountinfo_read(char **ret)
{
	ssize_t n = fd_read_file(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_BYTES_MAX, ret);

	return n < 0 ? (int)n : 0;
}

const char *
mountinfo_below(const char *target, const char *dir)
{
	size_t len = strlen(dir);

	if (strncmp(target, dir, len) != 0 || (target[len] != '/' && target[len] != '\0'))
		return NULL;
	return target + len + strspn(target + len, "/");
}
