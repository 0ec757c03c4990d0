/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_spec.h: what the fetcher and file-helper are told about an artifact. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_ARTIFACT_SPEC_H
#define DROVER_SUPERVISOR_ALLOC_ARTIFACT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "supervisor/alloc/task_path.h"

struct task_artifact;
struct task_runner;

#define ARTIFACT_HASH_SIZE 65
/* The entries of one artifact that are copied into an alloc. The configuration limits those of an
 * archive further. */
#define ARTIFACT_FILES_MAX 1000000

/* Makes the description for the fetcher, a sealed memfd, with all references replaced. Returns it,
 * or -EINVAL with *e. */
int artifact_spec_make(const struct task_runner *tr, const struct task_artifact *a, struct err *e);
/* Writes the destination as a path below the alloc's directory: <task>/… or alloc/…. Returns 0, or
 * -EINVAL with *e. */
int artifact_dest_make(const struct task_runner *tr, const struct task_artifact *a,
    char ret[TASK_PATH_SIZE], struct err *e);
/* Returns whether it becomes the user's of the task before that starts: with `chown`, or, if it is
 * in the own directory of a container, to whose root users of the machine are nobody. */
bool artifact_becomes_own(
    const struct task_runner *tr, const struct task_artifact *a, const char *dest);
/* Returns the number of bytes that an artifact may have: max, or the disk of the group. */
uint64_t artifact_bytes_max(const struct task_runner *tr, uint64_t max);
/* Returns how long it may take, in all. */
uint32_t artifact_timeout_ms(const struct task_runner *tr);

/* Returns the source without what may be secret, user, password and query, for people. The caller
 * frees it. */
char *artifact_shown(const struct task_artifact *a);
/* Identifies the artifact among those of its task, also in state.db. */
void artifact_hash(const struct task_artifact *a, char ret[ARTIFACT_HASH_SIZE]);

#endif
