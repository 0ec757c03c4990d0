// SPDX-License-Identifier: Apache-2.0
/* node_meta.c: the changes that operators made to the node's metadata. Runs in: supervisor. */
#include "supervisor/node/node_meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/source.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_turn.h"

#define KEY_MAX   128
#define KEYS_MAX  1000 /* all are sent to the servers with each change */
#define VALUE_MAX 4096
#define ROW       "nomad_meta"

struct node_meta {
	json_t *dynamic; /* key to text, or null */
	struct dirty row;
};

static int
write_meta(struct sup *sup, struct dirty *d, struct err *e)
{
	cleanup_free char *text = json_dumps(sup->node_meta->dynamic, JSON_COMPACT);

	return store_meta_put(sup->store, ROW, text, e);
}

int
node_meta_new(struct sup *sup, struct err *e)
{
	cleanup_free char *text = NULL;
	struct node_meta *m;
	int r = store_meta_get(sup->store, ROW, &text, e);

	if (r < 0 && r != -ENOENT)
		return r;
	m = mem_new(struct node_meta);
	sup->node_meta = m;
	m->row.write = write_meta;
	m->row.point = CRASH_ROW_NODE_META;
	m->dynamic = r >= 0 ? json_loads(text, 0, NULL) : json_object();
	if (!json_is_object(m->dynamic))
		return err_say(e, -EBADMSG, "state.db: the node's metadata is not an object");
	node_set_meta(sup, m->dynamic);
	return 0;
}

void
node_meta_free(struct sup *sup)
{
	if (!sup->node_meta)
		return;
	turn_forget_write(sup, &sup->node_meta->row);
	json_decref(sup->node_meta->dynamic);
	free_p(&sup->node_meta);
}

static bool
is_key(const char *key)
{
	size_t len =
	    strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./");

	return len > 0 && len <= KEY_MAX && key[len] == '\0' && key[0] != '.';
}

static int
check_change(const char *key, const json_t *value, struct err *e)
{
	if (!is_key(key) || !(json_is_string(value) || json_is_null(value)))
		return err_say(e, -EINVAL, "invalid metadata key \"%.64s\"", key);
	if (json_string_length(value) > VALUE_MAX)
		return err_say(
		    e, -EINVAL, "metadata \"%.64s\" is longer than %d bytes", key, VALUE_MAX);
	return 0;
}

static bool
is_configured(const struct sup *sup, const char *key)
{
	for (uint32_t i = 0; i < sup->config->n_meta; i++)
		if (strcmp(sup->config->meta[i].key, key) == 0)
			return true;
	return false;
}

/* A deleted key stays as null if the configuration has it, so that it hides the configured value.
 */
static int
change_key(const struct sup *sup, json_t *into, const char *key, json_t *value, struct err *e)
{
	int r = check_change(key, value, e);

	if (r < 0)
		return r;
	if (json_is_null(value) && !is_configured(sup, key))
		(void)json_object_del(into, key);
	else
		(void)json_object_set(into, key, value);
	return 0;
}

int
node_meta_apply(struct sup *sup, const json_t *changes, struct err *e)
{
	json_t *made = json_copy(sup->node_meta->dynamic), *value;
	const char *key;
	int r = 0;

	json_object_foreach ((json_t *)(uintptr_t)changes, key, value)
		if (r == 0)
			r = change_key(sup, made, key, value, e);
	if (r == 0 && json_object_size(made) > KEYS_MAX)
		r = err_say(e, -EINVAL, "that would be %zu keys of metadata; the maximum is %d",
		    json_object_size(made), KEYS_MAX);
	if (r < 0) {
		json_decref(made);
		return r;
	}
	json_decref(sup->node_meta->dynamic);
	sup->node_meta->dynamic = made;
	turn_write(sup, &sup->node_meta->row);
	turn_durable(sup);
	node_set_meta(sup, sup->node_meta->dynamic);
	node_changed(sup);
	return 0;
}

void
node_meta_show(struct sup *sup, struct rpc_meta_apply_rep *ret)
{
	*ret = (struct rpc_meta_apply_rep){ .meta = node_get(sup)->meta,
		.dynamic = sup->node_meta->dynamic };
	for (uint32_t i = 0; i < sup->config->n_meta; i++)
		string_map_set(
		    &ret->static_meta, sup->config->meta[i].key, sup->config->meta[i].value);
}

void
node_meta_unshow(struct rpc_meta_apply_rep *rep)
{
	rep->meta = (struct string_map){ 0 }; /* the node's */
	rep->dynamic = NULL;
	rpc_meta_apply_rep_done(rep);
}
