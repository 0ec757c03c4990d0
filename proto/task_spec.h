/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_spec.h: the strings of one start: command, arguments, environment, working directory,
 * secrets. The supervisor writes them into a sealed memfd, exec-helper passes it on without reading
 * it, and the executor reads it. It uses strings that name things inside the task only after it has
 * changed root and user.
 *
 * Form: entries of {uint32_t tag, uint32_t len} little-endian, len bytes of text, a NUL, and zeros
 * up to a multiple of 4. Text contains no other NUL. At most 32 MiB and 4096 entries.
 *
 * Runs in: supervisor, executor.
 */
#ifndef DROVER_PROTO_TASK_SPEC_H
#define DROVER_PROTO_TASK_SPEC_H

#include <stddef.h>

#define SPEC_BYTES_MAX   (32 << 20) /* an output of a template may have 16 MiB */
#define SPEC_ENTRIES_MAX 4096

enum spec_tag {
	SPEC_COMMAND = 1, /* exactly one */
	SPEC_ARG = 2,     /* in order, without argv[0] */
	SPEC_ENV = 3,  /* NAME=value, overrides the base environment; the last of one name wins */
	SPEC_CWD = 5,  /* at most one */
	SPEC_FILE = 6, /* "MODE UID GID PATH": octal, decimal, and -1 for the task's own; the path
			  begins with secrets/, local/, alloc/ (the shared directory) or another
			  directory of the task, and has no empty part, "." or ".."; its
			  SPEC_FILE_DATA follows */
	SPEC_FILE_DATA = 7, /* may contain any byte */
	/* Only containers have the following entries, and exec tasks the option etc=resolv.conf. */
	SPEC_USER = 8,   /* as an image has it: USER[:GROUP], names or numbers; at most one */
	SPEC_OPTION = 9, /* NAME=value (exe_option.c) */
};

/* Returns the bytes that a text of len bytes takes, with its NUL and zeros. */
static inline size_t
spec_padded(size_t len)
{
	return (len + 1 + 3) & ~(size_t)3;
}

#endif
