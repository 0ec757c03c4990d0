/* SPDX-License-Identifier: Apache-2.0 */
/* glob.h: patterns with stars. Runs in: supervisor, template-renderer, the launcher's
 * configuration child, cli. */
#ifndef DROVER_COMMON_GLOB_H
#define DROVER_COMMON_GLOB_H

#include <stdbool.h>

/* Returns whether the text fits the pattern, in which '*' stands for any number of characters. */
bool glob_fits(const char *pattern, const char *text);

/* Returns whether the text fits one of the patterns, which have spaces between them. */
bool glob_list_fits(const char *list, const char *text);

#endif
