/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h: state.db, by prepared statements out of one table, store_stmts.def. SQLite in WAL mode.
 * Only sup_turn.c begins and commits. Runs in: supervisor.
 */
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

/*
 * Opens or makes <dir>/state.db. A newer schema version and a damaged file are refused with a
 * sentence, nothing is deleted: -EBADMSG. The caller frees *ret with store_close().
 */
int store_open(const char *dir, struct store **ret, struct err *e);
void store_close(struct store *s);

/* Runs one statement with its values. Begins the transaction if none is open. 0 or -errno (-ENOSPC,
 * -EROFS, -EIO). */
int store_exec(
    struct store *s, enum store_stmt stmt, const struct store_val *vals, unsigned n, struct err *e);
#define STORE_EXEC(s, stmt, e, ...)                                                                \
	store_exec(s, stmt, (const struct store_val[]){ __VA_ARGS__ },                             \
	    sizeof((const struct store_val[]){ __VA_ARGS__ }) / sizeof(struct store_val), e)

/* A row while it is being read. */
struct store_row;
int64_t store_col_int(const struct store_row *row, unsigned col);
const char *store_col_text(
    const struct store_row *row, unsigned col); /* "" for NULL; valid in this callback */
const void *store_col_blob(const struct store_row *row, unsigned col, size_t *ret_len);
bool store_col_id(const struct store_row *row, unsigned col, struct id *ret);

/* Calls fn for each row; a negative return ends it and is returned. No writing from within fn. */
int store_each(struct store *s, enum store_stmt stmt, const struct store_val *vals, unsigned n,
    int (*fn)(void *arg, const struct store_row *row, struct err *e), void *arg, struct err *e);

/* For sup_turn.c. Commit without an open transaction is 0. full: synced to the disk when it
 * returns. */
int store_commit(struct store *s, bool full, struct err *e);
void store_rollback(struct store *s);

/* Small values by name (node id, index counters). Text of *ret is the caller's to free; -ENOENT. */
int store_meta_get(struct store *s, const char *key, char **ret, struct err *e);
int store_meta_put(struct store *s, const char *key, const char *value, struct err *e);

#endif
