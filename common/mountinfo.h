/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mountinfo.h: which mounts there are, out of /proc/self/mountinfo. Reading it costs time for every
 * mount of the machine: for the start, `leaks` and removals, never for the start of a task. Runs
 * in: launcher, supervisor, exec-helper.
 */
#ifndef DROVER_COMMON_MOUNTINFO_H
#define DROVER_COMMON_MOUNTINFO_H

#include <stdbool.h>
#include <stddef.h>

/* What is asked of one line. The strings lie in the text that was parsed. */
struct mountinfo {
	const char *target; /* where it is mounted; \ooo undone */
	const char *type;
	const char *options; /* the file system's own, as a word,word list */
};

/*
 * Takes the next line off *text, which is overwritten. 1 gave a mount, 0 the end, -EBADMSG for a
 * line that is none (the rest can still be read).
 */
int mountinfo_next(char **text, struct mountinfo *ret);

/* The whole file, for mountinfo_next(). *ret is the caller's to free. 0 or -errno. */
int mountinfo_read(char **ret);

/*
 * Is target below dir (an absolute path without a slash at its end), or dir itself? Returns the
 * rest without slashes in front, or NULL.
 */
const char *mountinfo_below(const char *target, const char *dir);

#endif
