// SPDX-License-Identifier: Apache-2.0
/* local_variables.c: variables and their rows. Runs in: supervisor. */
#include "supervisor/server/variable/local_variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/seal_texts.h"
#include "supervisor/core/store.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/job/local_namespaces.h"
#include "supervisor/server/variable/local_locks.h"

#define LOST                                                                                       \
	"because state/seal.key is not the key they were encrypted with: bring that file back "    \
	"and restart the agent, or write the variable%s again"

/* Each variable takes 0.6 KB of memory, and its items take disk. */
#define NUMBER_MAX 65536
#define MIB_MAX    64

struct local_variables {
	struct local_map map;
	uint64_t bytes; /* of all items, sealed */
};

void
local_variables_init(struct local *l)
{
	l->variables = mem_new(struct local_variables);
}

struct selection {
	const char *namespace, *prefix;
};

static bool
is_selected(const void *arg, struct local_key *key)
{
	const struct selection *s = arg;
	const struct variable *var = &local_variable_of(key)->var;

	return (strcmp(s->namespace, "*") == 0 || strcmp(s->namespace, var->namespace) == 0) &&
	       strncmp(var->path, s->prefix, strlen(s->prefix)) == 0;
}

struct local_key **
local_variables_select(
    const struct local *l, const char *namespace, const char *prefix, size_t *ret_n)
{
	const struct selection s = { namespace, prefix };

	return local_map_select(&l->variables->map, is_selected, &s, ret_n);
}

/* As in the tokens of pages, so that both have one order. */
static char *
make_name(const char *namespace, const char *path)
{
	return mem_printf("%s.%s", namespace, path);
}

struct local_variable *
local_variable_find(struct local *l, const char *namespace, const char *path)
{
	cleanup_free char *name = make_name(namespace, path);

	return local_variable_of(local_map_find(&l->variables->map, name));
}

static void
free_variable(struct local_variable *v)
{
	local_lock_drop(v);
	variable_done(&v->var);
	sealed_done(&v->items);
	free(v->name);
	free(v);
}

static void
drop_variable(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &local_variable_of(key)->row);
	free_variable(local_variable_of(key));
}

void
local_variables_free(struct local *l)
{
	local_map_done(&l->variables->map, l, drop_variable);
	free(l->variables);
}

/* --- rows --- */

static char *
name_column(const struct variable *var)
{
	return mem_printf("variable items of %s/%s", var->namespace, var->path);
}

/* The empty text at the end: a variable without items has a sealed value too. */
static void
put_items(struct seal_texts *texts, const void *obj)
{
	seal_put_map(texts, &((const struct variable *)obj)->items);
	seal_put_text(texts, "");
}

static void
take_items(void *obj, const char *at, size_t left)
{
	seal_take_map(&at, &left, &((struct variable *)obj)->items);
}

static int
write_variable(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_variable *v = container_of(d, struct local_variable, row);
	struct text json = { 0 };
	int r;

	if (v->gone)
		return STORE_EXEC(sup->store, STMT_VARIABLE_DELETE, e, SV_TEXT(v->var.namespace),
		    SV_TEXT(v->var.path));
	model_to_text(&variable_type, &v->var, MODEL_COMPACT | MODEL_ROW, &json);
	r = STORE_EXEC(sup->store, STMT_VARIABLE_PUT, e, SV_TEXT(v->var.namespace),
	    SV_TEXT(v->var.path), SV_TEXT(json.text), SV_BLOB(v->items.bytes, v->items.len));
	text_done(&json);
	return r;
}

static void
on_variable_written(struct sup *sup, struct dirty *d)
{
	struct local_variable *v = container_of(d, struct local_variable, row);

	(void)sup;
	sealed_done(&v->items);
	if (v->gone)
		free_variable(v);
}

/* Takes over *var. */
static struct local_variable *
insert_variable(struct local *l, struct variable *var)
{
	struct local_variable *v = mem_new(struct local_variable);

	v->l = l;
	v->row.write = write_variable;
	v->row.point = CRASH_ROW_VARIABLE;
	v->row.written = on_variable_written;
	v->name = make_name(var->namespace, var->path);
	local_map_add(&l->variables->map, &v->key, v->name);
	v->var = *var;
	variable_init(var);
	return v;
}

static void
write_row(struct local_variable *v, uint64_t index)
{
	struct sup *sup = v->l->base.sup;

	local_changes_record(v->l, LOCAL_VARIABLES, index);
	turn_write(sup, &v->row);
	turn_durable(sup);
}

/* --- changes --- */

static struct local_variable *
new_variable(struct local *l, const struct variable *var)
{
	cleanup_done(variable) struct variable made;

	variable_init(&made);
	str_set(&made.namespace, var->namespace);
	str_set(&made.path, var->path);
	made.create_index = var->modify_index;
	made.create_time = var->modify_time;
	return insert_variable(l, &made);
}

static void
set_lock(struct local_variable *v, const struct variable_lock *lock)
{
	variable_lock_free(v->var.lock);
	v->var.lock = variable_lock_new();
	variable_lock_copy(lock, v->var.lock);
	local_lock_begin(v);
}

/* v: NULL for a new variable. One that does not grow needs no more room. */
static int
check_room(
    const struct local_variables *all, const struct local_variable *v, size_t size, struct err *e)
{
	size_t present = v ? v->size : 0;

	if (!v && all->map.table.n >= NUMBER_MAX)
		return err_say(e, -EDQUOT,
		    "the agent has %d variables, which is the limit: delete some first",
		    NUMBER_MAX);
	if (size > present && all->bytes - present + size > (uint64_t)MIB_MAX << 20)
		return err_say(e, -EDQUOT,
		    "all variables of the agent are limited to %d MiB together: delete some first",
		    MIB_MAX);
	return 0;
}

static void
set_size(struct local_variable *v, size_t size)
{
	v->l->variables->bytes += size - v->size;
	v->size = size;
}

int
local_variable_put(struct local *l, struct variable *var, struct err *e)
{
	struct local_variable *v = local_variable_find(l, var->namespace, var->path);
	cleanup_free char *about = name_column(var);
	struct sealed items = { 0 };
	int r = seal_close_texts(l->base.sup->seal, about, put_items, var, &items, e);

	if (r == 0)
		r = check_room(l->variables, v, items.len, e);
	if (r < 0) {
		sealed_done(&items);
		return r;
	}
	var->modify_index = local_index_next(l);
	var->modify_time = clock_real_ns();
	if (!v)
		v = new_variable(l, var);
	if (var->lock)
		set_lock(v, var->lock);
	sealed_done(&v->items);
	v->items = items;
	set_size(v, items.len);
	v->var.modify_index = var->modify_index;
	v->var.modify_time = var->modify_time;
	var->create_index = v->var.create_index;
	var->create_time = v->var.create_time;
	if (v->var.lock && !var->lock) {
		var->lock = variable_lock_new();
		variable_lock_copy(v->var.lock, var->lock);
	}
	write_row(v, var->modify_index);
	return 0;
}

void
local_variable_forget(struct local_variable *v)
{
	local_lock_drop(v);
	local_map_remove(&v->l->variables->map, &v->key);
	set_size(v, 0);
	v->gone = true;
	write_row(v, local_index_next(v->l));
}

void
local_variable_unlock(struct local_variable *v)
{
	local_lock_drop(v);
	variable_lock_free(v->var.lock);
	v->var.lock = NULL;
	v->var.modify_index = local_index_next(v->l);
	write_row(v, v->var.modify_index);
}

/* --- reading --- */

struct read {
	const struct seal *seal;
	const char *about;
	struct variable *ret;
	bool opened;
};

static void
open_items(struct read *read, const void *bytes, size_t len)
{
	read->opened = seal_open_texts(read->seal, read->about, bytes, len, take_items, read->ret);
}

static int
read_items(void *arg, const struct store_row *row, struct err *e)
{
	size_t len;
	const void *bytes = store_col_blob(row, 0, &len);

	(void)e;
	open_items(arg, bytes, len);
	return 0;
}

int
local_variable_get(const struct local_variable *v, struct variable *ret, struct err *e)
{
	struct sup *sup = v->l->base.sup;
	cleanup_free char *about = name_column(&v->var);
	struct read read = { .seal = sup->seal, .about = about, .ret = ret };
	int r = 0;

	variable_done(ret);
	variable_copy(&v->var, ret);
	if (v->items.bytes)
		open_items(&read, v->items.bytes, v->items.len);
	else
		r = store_each(sup->store, STMT_VARIABLE_ITEMS,
		    (const struct store_val[]){ SV_TEXT(v->var.namespace), SV_TEXT(v->var.path) },
		    2, read_items, &read, e);
	if (r == 0 && !read.opened)
		r = err_say(e, -EBADMSG, "the items of variable \"%s\" cannot be read, " LOST,
		    v->var.path, "");
	return r;
}

static int
load_variable(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	const char *json = store_col_text(row, 2);
	cleanup_done(variable) struct variable var;
	struct local_variable *v;
	struct err why = { 0 };

	(void)e;
	variable_init(&var);
	if (model_from_text(&variable_type, json, strlen(json), &var, &why) < 0) {
		journal_error(JOURNAL_STATE, NULL, "state.db: variable %s is ignored: %s",
		    store_col_text(row, 1), why.msg);
		return 0;
	}
	str_set(&var.namespace, store_col_text(row, 0));
	str_set(&var.path, store_col_text(row, 1));
	local_namespace_adopt(l, var.namespace);
	v = insert_variable(l, &var);
	set_size(v, (size_t)store_col_int(row, 3));
	if (v->var.lock)
		local_lock_begin(v);
	return 0;
}

/* Reports a lost key at the agent's start, by any of the variables. */
static void
check_key(struct local *l)
{
	const struct local_variable *v = container_of(
	    hash_each(&l->variables->map.table, NULL), struct local_variable, key.link);
	cleanup_done(variable) struct variable var;
	struct err why = { 0 };

	variable_init(&var);
	if (local_variable_get(v, &var, &why) == -EBADMSG)
		journal_error(
		    JOURNAL_STATE, NULL, "the items of variables cannot be read, " LOST, "s");
}

int
local_variables_load(struct local *l, struct err *e)
{
	int r = store_each(l->base.sup->store, STMT_VARIABLE_ALL, NULL, 0, load_variable, l, e);

	if (r == 0 && l->variables->map.table.n > 0)
		check_key(l);
	return r;
}
