/* SPDX-License-Identifier: Apache-2.0 */
/* fet_git.h: repositories. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_GIT_H
#define DROVER_FETCHER_FET_GIT_H

#include "fetcher/fet_source.h"

/* Clones the repository of the source to `to`, which does not exist, with the branch, tag or commit
 * that the parameter ref names, depth commits deep. Takes the parameters ref, depth and sshkey.
 * Returns 0, or -errno with *e, which has no secret. */
int fet_git_clone(struct fet *f, struct fet_source *s, const char *to, struct err *e);

#endif
