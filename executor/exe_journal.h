/* SPDX-License-Identifier: Apache-2.0 */
/* exe_journal.h: the task's output in the journal, and what happens while the journal accepts
 * nothing: the pipes are not read, so the task waits, for at most ten seconds; after that its lines
 * go into files until the journal accepts entries again. Runs in: executor. */
#ifndef DROVER_EXECUTOR_EXE_JOURNAL_H
#define DROVER_EXECUTOR_EXE_JOURNAL_H

#include "executor/exe.h"

static inline bool
exe_journal_wanted(const struct exe *x)
{
	return x->keep.log_store != LOG_STORE_FILES;
}

/* True while the pipes must not be read. */
static inline bool
exe_journal_waits(const struct exe *x)
{
	return x->journal.wait_until_ms != 0;
}

/* Reads the fields of the task's entries from x->setup, which stays mapped for that. */
void exe_journal_begin(const struct exe *x);
/* Sends the complete lines and keeps the rest. len is at most EXE_LOG_BUF_SIZE; not while
 * exe_journal_waits(). */
void exe_journal_write(struct exe *x, size_t stream, const char *text, size_t len);
/* The socket is writable, or wait_until_ms has passed: tries again what is held. Returns whether
 * there was something to try. */
bool exe_journal_retry(struct exe *x);
/* Reads the rest of a stream after the task's end, and sends it with its incomplete last line.
 * Waits at most ten seconds for the journal. */
void exe_journal_finish(struct exe *x, size_t stream);

#endif
