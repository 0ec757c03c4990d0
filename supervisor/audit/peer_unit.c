// SPDX-License-Identifier: Apache-2.0
/* peer_unit.c: finds the systemd unit of a process. Runs in: supervisor. */
#include "supervisor/audit/peer_unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Returns the path in systemd's hierarchy: of "0::/path" (cgroup v2), or of "1:name=systemd:/path".
 * NULL: there is none. */
static const char *
find_path(const char *cgroups)
{
	static const char v1[] = "name=systemd:";

	for (const char *line = cgroups; line; line = strchr(line, '\n')) {
		const char *controllers;

		line += *line == '\n';
		if (strncmp(line, "0::", 3) == 0 && line[3] == '/' && line[4] > ' ')
			return line + 3;
		controllers = strchr(line, ':');
		if (controllers && strncmp(controllers + 1, v1, strlen(v1)) == 0)
			return controllers + 1 + strlen(v1);
	}
	return NULL;
}

static bool
ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len > n && memcmp(text + len - n, end, n) == 0;
}

/* The unit is the first part of the path that is not a slice. */
struct peer_unit
peer_unit_parse(const char *cgroups)
{
	static const char prefix[] = "session-", scope[] = ".scope";
	struct peer_unit ret = { 0 };
	const char *at = find_path(cgroups);

	while (at && *at == '/') {
		size_t len = strcspn(++at, "/\n");
		bool is_unit = ends_with(at, len, scope) || ends_with(at, len, ".service");

		if (is_unit && len < sizeof ret.unit) {
			memcpy(ret.unit, at, len);
			break;
		}
		at += len;
	}
	if (strncmp(ret.unit, prefix, strlen(prefix)) == 0 &&
	    ends_with(ret.unit, strlen(ret.unit), scope))
		memcpy(ret.session, ret.unit + strlen(prefix),
		    strlen(ret.unit) - strlen(prefix) - strlen(scope));
	return ret;
}

struct peer_unit
peer_unit_of(pid_t pid)
{
	cleanup_close int fd = -1;
	char path[64], text[4096];
	ssize_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (n <= 0)
		return (struct peer_unit){ 0 };
	text[n] = '\0';
	return peer_unit_parse(text);
}
