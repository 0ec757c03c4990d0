/* SPDX-License-Identifier: Apache-2.0 */
/* version_match.h: the operands `version` and `semver` of constraints: whether a version is in a
 * range. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_VERSION_MATCH_H
#define DROVER_SUPERVISOR_SERVER_PLACE_VERSION_MATCH_H

#include <stdbool.h>

#include "common/err.h"

/* The rules of a range, as in Nomad. VERSION_PLAIN: a range without a prerelease contains no
 * prerelease, and "~> 1.2" permits changes of the last number. VERSION_SEMVER: the order of
 * Semantic Versioning 2.0, in which 1.0.0-rc1 is less than 1.0.0; there is no "~>". */
enum version_rules { VERSION_PLAIN, VERSION_SEMVER };

/* Checks a range, such as ">= 1.2, < 2.0": comma-separated comparisons that must all hold. Returns
 * 0, or -EINVAL with *e. */
int version_range_check(const char *range, enum version_rules rules, struct err *e);
/* Returns true if the version is in the range; false also if either cannot be read. */
bool version_matches(const char *version, const char *range, enum version_rules rules);

#endif
