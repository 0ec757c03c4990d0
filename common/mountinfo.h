/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mountinfo.h: lists the mounts in /proc/self/mountinfo. Reading it takes time for every mount of
 * the machine: it is for the agent's start, `leaks` and removals, never for the start of a task.
 * Runs in: launcher, supervisor, exec-helper.
 */
#ifndef DROVER_COMMON_MOUNTINFO_H
#define DROVER_COMMON_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>

/* The fields of one line that drover uses. The strings point into the parsed text. */
struct mountinfo {
	const char *target; /* where it is mounted, with \ooo decoded */
	const char *type;
	const char *options; /* options of the file system, separated by commas */
};

/*
 * Parses the next line of *text, which is overwritten. Returns 1 for a mount, 0 at the end,
 * -EBADMSG for an invalid line (the next lines can still be read).
 */
int mountinfo_next(char **text, struct mountinfo *ret);

/* Reads the whole file for mountinfo_next(). The caller frees *ret. Returns 0 or -errno. */
int mountinfo_read(char **ret);

/*
 * If target is dir (an absolute path without a slash at its end) or below it, returns the rest of
 * target without leading slashes; else NULL.
 */
const char *mountinfo_below(const char *target, const char *dir);

#endif
