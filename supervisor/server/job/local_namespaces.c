// SPDX-License-Identifier: Apache-2.0
/* local_namespaces.c: the namespaces of jobs and volumes. Runs in: supervisor. */
#include "supervisor/server/job/local_namespaces.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/server/feed/local_changes.h"

/* Rows are values of the table meta, so an older drover still reads the database. */
#define ROW_PREFIX "local_namespace/"

struct local_namespaces {
	struct local_map map;
};

static int
write_namespace(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_namespace *n = container_of(d, struct local_namespace, row);
	cleanup_free char *key = mem_printf(ROW_PREFIX "%s", n->ns.name);
	struct text json = { 0 };
	int r;

	if (n->gone)
		return STORE_EXEC(sup->store, STMT_META_DELETE, e, SV_TEXT(key));
	model_to_text(&namespace_type, &n->ns, MODEL_COMPACT, &json);
	r = store_meta_put(sup->store, key, json.text, e);
	text_done(&json);
	return r;
}

static void
free_namespace(struct local_namespace *n)
{
	namespace_done(&n->ns);
	free(n);
}

static void
on_namespace_written(struct sup *sup, struct dirty *d)
{
	struct local_namespace *n = container_of(d, struct local_namespace, row);

	(void)sup;
	if (n->gone)
		free_namespace(n);
}

struct local_namespace *
local_namespace_find(const struct local *l, const char *name)
{
	return local_namespace_of(local_map_find(&l->namespaces->map, name));
}

struct local_key **
local_namespaces_sorted(const struct local *l, size_t *ret_n)
{
	return local_map_sorted(&l->namespaces->map, ret_n);
}

/* Takes over *ns. */
static struct local_namespace *
insert_namespace(struct local *l, struct namespace *ns)
{
	struct local_namespace *n = mem_new(struct local_namespace);

	n->row.write = write_namespace;
	n->row.point = CRASH_ROW_NAMESPACE;
	n->row.written = on_namespace_written;
	n->ns = *ns;
	namespace_init(ns);
	local_map_add(&l->namespaces->map, &n->key, n->ns.name);
	return n;
}

static struct local_namespace *
insert_named(struct local *l, const char *name, const char *description)
{
	struct namespace ns;

	namespace_init(&ns);
	str_set(&ns.name, name);
	str_set(&ns.description, description);
	ns.create_index = ns.modify_index = 1;
	return insert_namespace(l, &ns);
}

static const struct namespace *
find_for_tokens(const struct local *l, const char *name)
{
	const struct local_namespace *n = local_namespace_find(l, name);

	return n ? &n->ns : NULL;
}

void
local_namespaces_init(struct local *l)
{
	l->namespaces = mem_new(struct local_namespaces);
	l->namespace_find = find_for_tokens;
	(void)insert_named(l, LOCAL_NAMESPACE_DEFAULT, "Default shared namespace");
}

static void
drop_namespace(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &local_namespace_of(key)->row);
	free_namespace(local_namespace_of(key));
}

void
local_namespaces_free(struct local *l)
{
	local_map_done(&l->namespaces->map, l, drop_namespace);
	free(l->namespaces);
}

static void
write_row(struct local *l, struct local_namespace *n)
{
	local_changes_record(l, LOCAL_NAMESPACES, n->ns.modify_index);
	turn_write(l->base.sup, &n->row);
	turn_durable(l->base.sup);
}

void
local_namespace_put(struct local *l, struct namespace *ns)
{
	struct local_namespace *n = local_namespace_find(l, ns->name);

	ns->modify_index = local_index_next(l);
	ns->create_index = n ? n->ns.create_index : ns->modify_index;
	if (!n) {
		n = insert_namespace(l, ns);
	} else {
		/* The map refers to the name, so that one stays. */
		free(ns->name);
		ns->name = steal_ptr(&n->ns.name);
		namespace_done(&n->ns);
		n->ns = *ns;
		namespace_init(ns);
	}
	write_row(l, n);
}

void
local_namespace_forget(struct local *l, struct local_namespace *n)
{
	local_map_remove(&l->namespaces->map, &n->key);
	n->gone = true;
	n->ns.modify_index = local_index_next(l);
	write_row(l, n);
}

void
local_namespace_adopt(struct local *l, const char *name)
{
	if (!local_namespace_find(l, name))
		turn_write(l->base.sup, &insert_named(l, name, "")->row);
}

static int
load_namespace(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *json = store_col_text(row, 1);
	cleanup_done(namespace) struct namespace ns;
	struct local_namespace *known;
	struct err why = { 0 };

	(void)e;
	namespace_init(&ns);
	if (model_from_text(&namespace_type, json, strlen(json), &ns, &why) < 0 || !ns.name) {
		journal_error(JOURNAL_STATE, NULL, "state.db: %s is ignored: %s",
		    store_col_text(row, 0), why.msg);
		return 0;
	}
	known = local_namespace_find(l, ns.name); /* "default" */
	if (known) {
		local_map_remove(&l->namespaces->map, &known->key);
		free_namespace(known);
	}
	(void)insert_namespace(l, &ns);
	return 0;
}

int
local_namespaces_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_META_NAMESPACES, NULL, 0, load_namespace, l, e);
}
