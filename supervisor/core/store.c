// SPDX-License-Identifier: Apache-2.0
/* store.c: state.db over SQLite. Runs in: supervisor. */
#include "supervisor/core/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/store_schema.h"

#define SHRINK_PAGES "1000" /* free pages that one step removes: 4 MB, some milliseconds */
#define INCREMENTAL  2      /* SQLite's number of this auto_vacuum mode */

struct store {
	sqlite3 *db;
	sqlite3_stmt *stmts[STMTS]; /* NULL: not used yet */
	bool open;                  /* a transaction is open */
	bool left; /* the log was there when the file was opened: SQLite deletes it at the close */
	int64_t opened_ns;
};

struct store_row {
	sqlite3_stmt *st;
};

static const char *const sql[STMTS] = {
#define STORE_STMT(name, text) [STMT_##name] = text,
#include "supervisor/core/store_stmts.def"
#undef STORE_STMT
};

/* Maps SQLite's result to an errno with the same meaning. */
static int
to_errno(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CANTOPEN:
		return -EACCES;
	default:
		return -EIO;
	}
}

/* SQLite's message is only "disk I/O error"; the errno is known to its error log, which this
 * callback receives. */
static int
last_errno(struct store *s)
{
	sqlite3_file *log = NULL;
	int found = 0;

	if (s->db &&
	    sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
	    log && log->pMethods)
		(void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &found);
	return found;
}

/* Sets *e to SQLite's result and message, and returns the errno for it. */
static int
fail_sql(struct store *s, int code, const char *doing, struct err *e)
{
	int r = to_errno(code);
	const char *what = s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code);

	if (r == -EIO && last_errno(s) > 0)
		return err_set(e, -last_errno(s), "%s state.db: %s", doing, what);
	return err_say(e, r, "%s state.db: %s%s", doing, what,
	    r == -EBADMSG ? ": move it away or bring back a copy" : "");
}

static int
run_sql(struct store *s, const char *text, const char *doing, struct err *e)
{
	int code = sqlite3_exec(s->db, text, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : fail_sql(s, code, doing, e);
}

static int
pragma_int(struct store *s, const char *text, int64_t *ret, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(s->db, text, -1, &st, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(st);
	if (code == SQLITE_ROW)
		*ret = sqlite3_column_int64(st, 0);
	(void)sqlite3_finalize(st);
	return code == SQLITE_ROW ? 0 : fail_sql(s, code, "read", e);
}

/* Makes the tables of a new file (version 0), or upgrades an earlier version. */
static int
make_schema(struct store *s, int64_t from, struct err *e)
{
	static const char *const changes[STORE_SCHEMA_VERSION] = { store_schema, store_schema_2,
		store_schema_3, store_schema_4, store_schema_5, store_schema_6, store_schema_7,
		store_schema_8, store_schema_9, store_schema_10, store_schema_11 };
	char stamp[128];
	int r;

	(void)snprintf(stamp, sizeof stamp, "PRAGMA application_id = %d; PRAGMA user_version = %d;",
	    STORE_APPLICATION_ID, STORE_SCHEMA_VERSION);
	r = run_sql(s, "BEGIN IMMEDIATE", "make", e);
	for (; r == 0 && from < STORE_SCHEMA_VERSION; from++)
		r = run_sql(s, changes[from], "make", e);
	if (r == 0)
		r = run_sql(s, stamp, "make", e);
	return r < 0 ? r : run_sql(s, "COMMIT", "make", e);
}

/* Checks that the file is drover's and that this build can read it. Version 0 is a new, empty file.
 */
static int
check_schema(struct store *s, int64_t *ret_version, struct err *e)
{
	int64_t app = 0, version = 0, tables = 0;
	int r;

	if ((r = pragma_int(s, "PRAGMA application_id", &app, e)) < 0 ||
	    (r = pragma_int(s, "PRAGMA user_version", &version, e)) < 0 ||
	    (r = pragma_int(s, "SELECT count(*) FROM sqlite_master", &tables, e)) < 0)
		return r;
	if (app == 0 && version == 0 && tables == 0)
		return 0;
	if (app != STORE_APPLICATION_ID)
		return err_say(e, -EBADMSG,
		    "state.db is not a database of drover; move it away to start without it");
	if (version > STORE_SCHEMA_VERSION)
		return err_say(e, -EBADMSG,
		    "state.db has schema version %lld, this drover knows up to %d: start the newer "
		    "drover that wrote it",
		    (long long)version, STORE_SCHEMA_VERSION);
	*ret_version = version;
	return 0;
}

static int
check_damage(struct store *s, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int code = sqlite3_prepare_v2(s->db, "PRAGMA quick_check(1)", -1, &st, NULL), r = 0;
	const char *found, *last;

	if (code == SQLITE_OK)
		code = sqlite3_step(st);
	found = code == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
	if (!found) {
		r = fail_sql(s, code, "check", e);
	} else if (strcmp(found, "ok") != 0) {
		last = strrchr(found, '\n'); /* before it stands only where */
		r = err_say(e, -EBADMSG,
		    "state.db is damaged (%s); it has not been touched: move it away or bring back "
		    "a copy",
		    last ? last + 1 : found);
	}
	(void)sqlite3_finalize(st);
	return r;
}

/* Returns the statement; NULL with *e if it does not fit the tables. One takes 2 to 4 KB, and most
 * nodes use few of them. */
static sqlite3_stmt *
prepare(struct store *s, enum store_stmt stmt, struct err *e)
{
	int code = SQLITE_OK;

	if (!s->stmts[stmt])
		code = sqlite3_prepare_v3(
		    s->db, sql[stmt], -1, SQLITE_PREPARE_PERSISTENT, &s->stmts[stmt], NULL);
	if (code != SQLITE_OK)
		(void)fail_sql(s, code, "prepare statements for", e);
	return s->stmts[stmt];
}

static void
forget_statement(struct store *s, enum store_stmt stmt)
{
	(void)sqlite3_finalize(s->stmts[stmt]);
	s->stmts[stmt] = NULL;
}

static int
check_statements(struct store *s, struct err *e)
{
	for (unsigned i = 0; i < STMTS; i++) {
		if (!prepare(s, i, e))
			return e->code;
		forget_statement(s, i);
	}
	return 0;
}

/* A file that was made before store_shrink() is rewritten once, so that it can be truncated.
 * Without space for that it stays as it is. */
#define REWRITE_PAGES 8192 /* 32 MiB, which VACUUM holds in memory */

static void
prepare_shrinking(struct store *s)
{
	struct err ignored = { 0 };
	int64_t mode = INCREMENTAL, pages = 0;

	if (pragma_int(s, "PRAGMA auto_vacuum", &mode, &ignored) == 0 && mode != INCREMENTAL &&
	    pragma_int(s, "PRAGMA page_count", &pages, &ignored) == 0 && pages < REWRITE_PAGES)
		(void)run_sql(s, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", "rewrite", &ignored);
}

/* Nothing is written before the file is known to be ours and intact. synchronous=NORMAL survives
 * the death of the process; store_commit() syncs a turn that must survive a power cut. Only one
 * process opens the file, so it keeps the lock and needs no -shm file. The page cache is 1 MiB.
 * Deleted values are overwritten, as Debian's SQLite does by default. */
static int
prepare_database(struct store *s, struct err *e)
{
	int64_t version = 0;
	int r;

	if ((r = run_sql(s,
		 "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -1024; PRAGMA temp_store = "
		 "MEMORY; PRAGMA secure_delete = ON;",
		 "open", e)) < 0 ||
	    (r = check_damage(s, e)) < 0 || (r = check_schema(s, &version, e)) < 0)
		return r;
	if (version == 0 && (r = run_sql(s, "PRAGMA auto_vacuum = INCREMENTAL", "make", e)) < 0)
		return r;
	if ((r = run_sql(s,
		 "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA "
		 "wal_autocheckpoint = 2000;",
		 "open", e)) < 0 ||
	    (version < STORE_SCHEMA_VERSION && (r = make_schema(s, version, e)) < 0))
		return r;
	prepare_shrinking(s);
	return check_statements(s, e);
}

static bool
has_log(const char *path)
{
	cleanup_free char *log = mem_printf("%s-wal", path);

	return access(log, F_OK) == 0;
}

int
store_open(const char *dir, struct store **ret, struct err *e)
{
	struct store *s = mem_new(struct store);
	char path[4096];
	int code, r;

	if ((size_t)snprintf(path, sizeof path, "%s/state.db", dir) >= sizeof path) {
		r = err_set(e, -ENAMETOOLONG, "open state.db in %s", dir);
		goto fail;
	}
	s->left = has_log(path);
	s->opened_ns = clock_real_ns();
	code = sqlite3_open_v2(
	    path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	if (code != SQLITE_OK) {
		r = err_say(e, to_errno(code), "open %s: %s", path, sqlite3_errmsg(s->db));
		goto fail;
	}
	(void)sqlite3_extended_result_codes(s->db, 1);
	r = prepare_database(s, e);
	if (r < 0)
		goto fail;
	*ret = s;
	return 0;

fail:
	/* A file that this build cannot read stays unchanged: its log is not moved into the file.
	 */
	if (s->db)
		(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	store_close(s);
	return r;
}

void
store_close(struct store *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < STMTS; i++)
		forget_statement(s, i);
	(void)sqlite3_close(s->db);
	free(s);
}

bool
store_was_left(const struct store *s, int64_t *ret_opened_ns)
{
	*ret_opened_ns = s->opened_ns;
	return s->left;
}

static void
bind_values(sqlite3_stmt *st, const struct store_val *vals, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct store_val *v = &vals[i];
		int at = (int)i + 1;

		switch (v->kind) {
		case STORE_NULL:
			(void)sqlite3_bind_null(st, at);
			break;
		case STORE_INT:
			(void)sqlite3_bind_int64(st, at, v->i);
			break;
		case STORE_TEXT: /* a NULL pointer binds NULL */
			(void)sqlite3_bind_text(st, at, v->p, -1, SQLITE_STATIC);
			break;
		case STORE_BLOB:
			(void)sqlite3_bind_blob64(st, at, v->p, v->len, SQLITE_STATIC);
			break;
		}
	}
}

static void
reset_statement(sqlite3_stmt *st)
{
	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
}

int
store_exec(
    struct store *s, enum store_stmt stmt, const struct store_val *vals, unsigned n, struct err *e)
{
	sqlite3_stmt *st = prepare(s, stmt, e);
	int code, r;

	if (!st)
		return e->code;
	if (!s->open) {
		r = run_sql(s, "BEGIN", "write", e);
		if (r < 0)
			return r;
		s->open = true;
	}
	bind_values(st, vals, n);
	code = sqlite3_step(st);
	r = code == SQLITE_DONE || code == SQLITE_ROW ? 0 : fail_sql(s, code, "write", e);
	reset_statement(st);
	return r;
}

int64_t
store_col_int(const struct store_row *row, unsigned col)
{
	return sqlite3_column_int64(row->st, (int)col);
}

const char *
store_col_text(const struct store_row *row, unsigned col)
{
	const char *text = (const char *)sqlite3_column_text(row->st, (int)col);

	return text ? text : "";
}

const void *
store_col_blob(const struct store_row *row, unsigned col, size_t *ret_len)
{
	const void *data = sqlite3_column_blob(row->st, (int)col);

	*ret_len = (size_t)sqlite3_column_bytes(row->st, (int)col);
	return data;
}

bool
store_col_id(const struct store_row *row, unsigned col, struct id *ret)
{
	size_t len;
	const void *data = store_col_blob(row, col, &len);

	return data && id_from_bytes(data, len, ret);
}

int
store_each(struct store *s, enum store_stmt stmt, const struct store_val *vals, unsigned n,
    int (*fn)(void *arg, const struct store_row *row, struct err *e), void *arg, struct err *e)
{
	struct store_row row = { .st = prepare(s, stmt, e) };
	int code, r = 0;

	if (!row.st)
		return e->code;
	bind_values(row.st, vals, n);
	while (r >= 0 && (code = sqlite3_step(row.st)) == SQLITE_ROW)
		r = fn(arg, &row, e);
	if (r >= 0 && code != SQLITE_DONE)
		r = fail_sql(s, code, "read", e);
	reset_statement(row.st);
	return r < 0 ? r : 0;
}

/* synchronous=NORMAL leaves the log unsynced at commit (sqlite.org/wal.html, 2.2): this is what
 * FULL adds. */
static int
sync_log(struct store *s, struct err *e)
{
	sqlite3_file *log = NULL;
	int code = sqlite3_file_control(s->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);

	if (code == SQLITE_OK && log && log->pMethods)
		code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
	return code == SQLITE_OK ? 0 : fail_sql(s, code, "sync", e);
}

int
store_commit(struct store *s, bool full, struct err *e)
{
	int r;

	if (!s->open)
		return 0;
	r = run_sql(s, "COMMIT", "commit", e);
	if (r < 0)
		return r;
	s->open = false;
	return full ? sync_log(s, e) : 0;
}

void
store_rollback(struct store *s)
{
	/* SQLite rolls back by itself after some errors, so a failure of this rollback is ignored.
	 */
	if (s->open && sqlite3_get_autocommit(s->db) == 0)
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	s->open = false;
}

void
store_let_go(struct store *s)
{
	for (unsigned i = 0; i < STMTS; i++)
		forget_statement(s, i);
	(void)sqlite3_db_release_memory(s->db);
}

int
store_shrink(struct store *s, struct err *e)
{
	int64_t before = 0, left = 0;
	int r;

	if (s->open)
		return 1;
	if ((r = pragma_int(s, "PRAGMA freelist_count", &before, e)) < 0 ||
	    (r = run_sql(s, "PRAGMA incremental_vacuum(" SHRINK_PAGES ")", "shrink", e)) < 0 ||
	    (r = pragma_int(s, "PRAGMA freelist_count", &left, e)) < 0)
		return r;
	if (left > 0 && left < before) /* the same: the file could not be rewritten at its start */
		return 1;
	store_let_go(s);
	return run_sql(s, "PRAGMA wal_checkpoint(TRUNCATE)", "truncate the log of", e);
}

static int
keep_text(void *arg, const struct store_row *row, struct err *e)
{
	char **ret = arg;

	*ret = mem_strdup(store_col_text(row, 0));
	return 0;
}

int
store_meta_get(struct store *s, const char *key, char **ret, struct err *e)
{
	char *text = NULL;
	int r = store_each(s, STMT_META_GET, &SV_TEXT(key), 1, keep_text, &text, e);

	if (r < 0)
		return r;
	if (!text)
		return -ENOENT;
	*ret = text;
	return 0;
}

int
store_meta_put(struct store *s, const char *key, const char *value, struct err *e)
{
	return STORE_EXEC(s, STMT_META_PUT, e, SV_TEXT(key), SV_TEXT(value));
}
