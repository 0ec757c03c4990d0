/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h: log lines with fields. Where stderr is the journal, the supervisor's lines go there
 * with fields by which operators find them (docs/journal.md); elsewhere the fields are left out.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_JOURNAL_H
#define DROVER_SUPERVISOR_CORE_JOURNAL_H

#include <stddef.h>

#include "common/log.h"

enum journal_kind {
	JOURNAL_NONE, /* a line without MESSAGE_ID */
#define JOURNAL_KIND(name, id) JOURNAL_##name,
#include "supervisor/core/journal_kinds.def"
#undef JOURNAL_KIND
};

/* The subject of a log line. Each member that is neither NULL nor empty is a field of its entry. */
struct journal_about {
	const char *alloc_id, *namespace, *job, *task, *volume;
	const char *request; /* method and path of a request, such as "POST /v1/jobs" */
};

/* From now on lines go to the journal's own socket if stderr is the journal; to stderr if that
 * socket cannot be reached. Called once. */
void journal_open(void);

/* Prints a line as log_print() does, with the id of its kind and the fields of *about (NULL: none).
 */
void journal_print(enum log_level level, enum journal_kind kind, const struct journal_about *about,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define journal_error(kind, about, ...) journal_print(LOG_LEVEL_ERROR, kind, about, __VA_ARGS__)
#define journal_warn(kind, about, ...)  journal_print(LOG_LEVEL_WARN, kind, about, __VA_ARGS__)
#define journal_info(kind, about, ...)  journal_print(LOG_LEVEL_INFO, kind, about, __VA_ARGS__)

/*
 * Writes an entry in the journal's native format to buf and returns its length. A field that does
 * not fit is left out. message is "process: text". Values may have any bytes: each is stored with
 * its length, so that none can add a field.
 */
size_t journal_encode(char *buf, size_t size, enum log_level level, enum journal_kind kind,
    const struct journal_about *about, const char *message);

#endif
