// SPDX-License-Identifier: Apache-2.0
/* node_troubles.c: keeps the node's troubles, in memory and in a row of state.db. Runs in:
 * supervisor. */
#include "supervisor/node/node_troubles.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup.h"
#include "supervisor/core/sup_turn.h"

#define ROW "node_troubles"

struct node_troubles {
	json_t *all;
	struct dirty row;
};

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	cleanup_free char *text = mem_need(json_dumps(sup->node_troubles->all, JSON_COMPACT));

	return store_meta_put(sup->store, ROW, text, e);
}

int
node_troubles_new(struct sup *sup, struct err *e)
{
	struct node_troubles *t = mem_new(struct node_troubles);
	cleanup_free char *text = NULL;
	int r = store_meta_get(sup->store, ROW, &text, e);

	t->row.write = write_row;
	t->row.point = CRASH_ROW_NODE;
	if (r >= 0 && !sup->new_identity)
		t->all = json_loads(text, 0, NULL);
	if (!json_is_object(t->all)) {
		json_decref(t->all);
		t->all = json_object();
	}
	sup->node_troubles = t;
	return r == -ENOENT ? 0 : r;
}

void
node_troubles_free(struct sup *sup)
{
	if (!sup->node_troubles)
		return;
	turn_forget_write(sup, &sup->node_troubles->row);
	json_decref(sup->node_troubles->all);
	free_p(&sup->node_troubles);
}

const char *
node_trouble(const struct sup *sup, const char *name)
{
	return json_string_value(json_object_get(sup->node_troubles->all, name));
}

void
node_trouble_set(struct sup *sup, const char *name, const char *why, bool store)
{
	json_t *all = sup->node_troubles->all;

	if (why)
		(void)json_object_set_new(all, name, json_string(why));
	else
		(void)json_object_del(all, name);
	if (store)
		turn_write(sup, &sup->node_troubles->row);
}

json_t *
node_troubles(const struct sup *sup)
{
	return sup->node_troubles->all;
}
