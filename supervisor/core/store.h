/* SPDX-License-Identifier: Apache-2.0 */
/* store.h: state.db, an SQLite database in WAL mode. All statements are in one table,
 * store_stmts.def. Only sup_turn.c begins and commits transactions. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_STORE_H
#define DROVER_SUPERVISOR_CORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/id.h"

struct store;

enum store_stmt {
#define STORE_STMT(name, sql) STMT_##name,
#include "supervisor/core/store_stmts.def"
#undef STORE_STMT
	STMTS
};

/* One value to bind. */
struct store_val {
	enum { STORE_NULL, STORE_INT, STORE_TEXT, STORE_BLOB } kind;
	int64_t i;
	const void *p;
	size_t len;
};

#define SV_INT(x)     ((struct store_val){ .kind = STORE_INT, .i = (int64_t)(x) })
#define SV_TEXT(x)    ((struct store_val){ .kind = STORE_TEXT, .p = (x) }) /* NULL binds NULL */
#define SV_BLOB(x, n) ((struct store_val){ .kind = STORE_BLOB, .p = (x), .len = (n) })
#define SV_ID(x)      SV_BLOB((x)->b, ID_BYTES)

/* Opens or makes <dir>/state.db. Refuses a newer schema version and a damaged file with -EBADMSG
 * and a sentence; deletes nothing. The caller frees *ret with store_close(). */
int store_open(const char *dir, struct store **ret, struct err *e);
void store_close(struct store *s);
/* Returns true if the process that had the file open before ended without store_close(). Sets
 * *ret_opened_ns to the time (CLOCK_REALTIME) when this process opened it. */
bool store_was_left(const struct store *s, int64_t *ret_opened_ns);

/* Runs one statement with its values. Begins a transaction if none is open. Returns 0 or -errno
 * (-ENOSPC, -EROFS, -EIO). */
int store_exec(
    struct store *s, enum store_stmt stmt, const struct store_val *vals, unsigned n, struct err *e);
#define STORE_EXEC(s, stmt, e, ...)                                                                \
	store_exec(s, stmt, (const struct store_val[]){ __VA_ARGS__ },                             \
	    sizeof((const struct store_val[]){ __VA_ARGS__ }) / sizeof(struct store_val), e)

/* The row that is being read. */
struct store_row;
int64_t store_col_int(const struct store_row *row, unsigned col);
const char *store_col_text(
    const struct store_row *row, unsigned col); /* "" for NULL; valid in this callback */
const void *store_col_blob(const struct store_row *row, unsigned col, size_t *ret_len);
bool store_col_id(const struct store_row *row, unsigned col, struct id *ret);

/* Calls fn for each row; a negative result ends the loop and is returned. fn must not write. */
int store_each(struct store *s, enum store_stmt stmt, const struct store_val *vals, unsigned n,
    int (*fn)(void *arg, const struct store_row *row, struct err *e), void *arg, struct err *e);

/* For sup_turn.c. A commit without an open transaction returns 0. full: the data is synced to disk
 * when it returns. */
int store_commit(struct store *s, bool full, struct err *e);
void store_rollback(struct store *s);

/* Frees prepared statements and cached pages, which are made again when they are needed. Not to be
 * called in a callback of store_each(). */
void store_let_go(struct store *s);

/* Removes some of the free pages from the file, and then its log and SQLite's cache, between two
 * transactions. Returns 1 if there are more free pages, 0 at the end, -errno with *e. */
int store_shrink(struct store *s, struct err *e);

/* Small values by name (node id, index counters). The caller frees *ret; -ENOENT if there is no
 * such value. */
int store_meta_get(struct store *s, const char *key, char **ret, struct err *e);
int store_meta_put(struct store *s, const char *key, const char *value, struct err *e);

#endif
