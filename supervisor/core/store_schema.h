/* SPDX-License-Identifier: Apache-2.0 */
/* store_schema.h: the tables of state.db, by version. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_STORE_SCHEMA_H
#define DROVER_SUPERVISOR_CORE_STORE_SCHEMA_H

#define STORE_SCHEMA_VERSION 11
/* "drvr": a file with another id was made by another program and is refused. */
#define STORE_APPLICATION_ID 0x64727672

static const char store_schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE job(namespace TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, current "
    "INTEGER NOT NULL,"
    " json TEXT NOT NULL, PRIMARY KEY(namespace, id, version));"
    "CREATE TABLE eval(id BLOB PRIMARY KEY, json TEXT NOT NULL);"
    "CREATE TABLE alloc(id BLOB PRIMARY KEY, namespace TEXT NOT NULL, job TEXT NOT NULL, version "
    "INTEGER NOT NULL,"
    " json TEXT NOT NULL, client TEXT);"
    "CREATE TABLE run(id BLOB PRIMARY KEY, alloc BLOB NOT NULL, task TEXT NOT NULL, state INTEGER "
    "NOT NULL,"
    " boot_id TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE volume(namespace TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, PRIMARY "
    "KEY(namespace, id));"
    "CREATE TABLE mount(key TEXT PRIMARY KEY, json TEXT NOT NULL);";

/* Tables that earlier versions do not have; also made in a new file. */
static const char store_schema_2[] =
    "CREATE TABLE event(id INTEGER PRIMARY KEY, alloc BLOB NOT NULL, task TEXT NOT NULL, json TEXT "
    "NOT NULL);"
    "CREATE INDEX event_of_task ON event(alloc, task);"
    "CREATE TABLE service(id TEXT PRIMARY KEY, workload TEXT NOT NULL, json TEXT NOT NULL) WITHOUT "
    "ROWID;";

static const char store_schema_3[] =
    "CREATE TABLE deployment(id TEXT PRIMARY KEY, json TEXT NOT NULL);";

static const char store_schema_4[] =
    "CREATE TABLE acked(alloc BLOB PRIMARY KEY, hash INTEGER NOT NULL) WITHOUT ROWID;";

/* Sealed columns: before, they were members of json. */
static const char store_schema_5[] =
    "ALTER TABLE volume ADD COLUMN secrets BLOB; ALTER TABLE volume ADD COLUMN contexts BLOB;";

/* items is sealed; it is the last column, so that the others are read without it. */
static const char store_schema_6[] =
    "CREATE TABLE signing_key(id TEXT PRIMARY KEY, json TEXT NOT NULL, secret BLOB NOT NULL) "
    "WITHOUT ROWID;"
    "CREATE TABLE variable(namespace TEXT NOT NULL, path TEXT NOT NULL, json TEXT NOT NULL, items "
    "BLOB, PRIMARY KEY(namespace, path));";

static const char store_schema_7[] =
    "CREATE TABLE acl_policy(name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE acl_role(id TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE acl_token(accessor TEXT PRIMARY KEY, json TEXT NOT NULL, secret BLOB NOT NULL) "
    "WITHOUT ROWID;";

static const char store_schema_8[] =
    "CREATE TABLE image(name TEXT PRIMARY KEY, digest TEXT NOT NULL, config TEXT NOT NULL, layers "
    "TEXT NOT NULL, pulled INTEGER NOT NULL);";

/* A run of a container has the number of its range of ids, and the digests of its layers. */
static const char store_schema_9[] =
    "ALTER TABLE run ADD COLUMN id_range INTEGER NOT NULL DEFAULT 0; ALTER TABLE run ADD COLUMN "
    "layers TEXT;";

/* Images of before are as used until the start that adds these. */
static const char store_schema_10[] =
    "ALTER TABLE image ADD COLUMN used INTEGER NOT NULL DEFAULT 0; ALTER TABLE image ADD COLUMN "
    "in_use INTEGER NOT NULL DEFAULT 1; ALTER TABLE image ADD COLUMN kept INTEGER NOT NULL DEFAULT "
    "0;";

/* The default tokens of an alloc, sealed: before, they were a member of json. */
static const char store_schema_11[] = "ALTER TABLE alloc ADD COLUMN tokens BLOB;";

#endif
