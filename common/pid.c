// SPDX-License-Identifier: Apache-2.0
/* pid.c: identifies the process behind a pid. Runs in: exec-helper, executor. */
#include "common/pid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

uint64_t
pid_start_ticks(int proc_fd, uint32_t pid)
{
	char text[1024], *at;
	cleanup_close int fd = -1;
	ssize_t n;

	(void)snprintf(text, sizeof text, "%u/stat", pid);
	fd = openat(proc_fd, text, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The second field is the name, which may contain any character. */
	at = strrchr(text, ')');
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}
