/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_log.h: the file of the audit log: one JSON object per line. The supervisor writes it
 * itself, with its own rights. A file that became too large or too old is renamed to
 * NAME-<nanoseconds since 1970>.EXT, and a new one is begun. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_AUDIT_AUDIT_LOG_H
#define DROVER_SUPERVISOR_AUDIT_AUDIT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "supervisor/core/sup.h"

struct audit_log;

/* Makes sup->audit if the configuration enables the log; it stays NULL otherwise. Files are opened
 * by the first entry or check, and again after a failure. */
void audit_log_new(struct sup *sup);
void audit_log_free(struct sup *sup);

/* Appends a line, without its line feed. sync: it is on the disk when this returns. Returns 0, or
 * -errno with *e; then no part of the line is in the file. */
int audit_log_append(struct audit_log *l, const char *line, size_t len, bool sync, struct err *e);

/* Finds out, without an entry, whether one can be written. Returns 0, or -errno with *e. */
int audit_log_check(struct audit_log *l, struct err *e);

/* For the metrics. Zero without a log. */
struct audit_counts {
	uint64_t entries, failures, rotations;
};
struct audit_counts audit_log_counts(const struct sup *sup);

#endif
