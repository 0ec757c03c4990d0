/* SPDX-License-Identifier: Apache-2.0 */
/* audit_filter.h: which entries the filters of the configuration exclude from the audit log. Pure.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_AUDIT_AUDIT_FILTER_H
#define DROVER_SUPERVISOR_AUDIT_AUDIT_FILTER_H

#include <stdbool.h>

#include "proto/audit_config.h"

/* Returns whether a filter matches in all three: with one of its endpoints, of its stages and of
 * its operations. One without any endpoint, stage or operation matches nothing. */
bool audit_filter_excludes(
    const struct config_audit *c, const char *endpoint, const char *stage, const char *operation);

#endif
