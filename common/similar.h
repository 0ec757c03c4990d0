/* SPDX-License-Identifier: Apache-2.0 */
/* similar.h: finds the name that somebody probably meant. Runs in: supervisor, cli, the launcher's
 * configuration child. */
#ifndef DROVER_COMMON_SIMILAR_H
#define DROVER_COMMON_SIMILAR_H

#include <stddef.h>

/* Returns the one of n names that resembles `name` most, or NULL if none does: for "did you mean".
 * The first 40 bytes of each are compared. */
const char *similar_name(const char *name, const char *const *names, size_t n);

#endif
