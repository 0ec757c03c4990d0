// SPDX-License-Identifier: Apache-2.0
/* leftovers.c: removes leaks when the agent starts. Runs in: supervisor. */
#include "supervisor/alloc/leftovers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/alloc/leaks.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/driver/run.h"
#include "supervisor/node/mounts.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/volume/plugin_dirs.h"

static void
on_removed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	if (r < 0)
		log_warn("remove a leftover: %s", e->msg);
}

/* mount-helper has unmounted everything in the directory of the alloc in arg. */
static void
on_released(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct file_alloc_dir_remove_req req = { 0 };
	cleanup_free struct id *id = arg;

	on_removed(sup, NULL, r, rep, fd, e);
	if (r < 0)
		return;
	req.alloc = *id;
	(void)file_call_alloc_dir_remove(sup, &req, on_removed, NULL);
}

static bool
reap_run(struct sup *sup, const char *name)
{
	struct id id;

	if (!id_from_hex(name, &id) || run_is_known(sup, &id))
		return false;
	run_reap_unknown(sup, &id);
	return true;
}

static bool
remove_alloc(struct sup *sup, const char *name)
{
	struct mnt_alloc_release_req req = { 0 };
	cleanup_free struct id *id = mem_new(struct id);
	struct err e = { 0 };

	/* If a row could not be read, the directory may be that alloc's: its data stays. */
	if (sup->allocs->n_unreadable > 0 || !id_from_uuid(name, id))
		return false;
	if (mounts_refuse(sup, id, &e) < 0) {
		log_warn("remove a leftover: %s", e.msg);
		return true;
	}
	req.alloc = *id;
	(void)mnt_call_alloc_release(sup, &req, on_released, steal_ptr(&id));
	return true;
}

static bool
remove_network(struct sup *sup, const char *name)
{
	struct net_network_drop_req req = { 0 };

	if (sup->allocs->n_unreadable > 0 || !id_from_uuid(name, &req.alloc))
		return false;
	(void)queue_ask(sup, QUEUE_NETWORK_DROP, &req, -1, on_removed, NULL);
	return true;
}

/* Its alloc may be known: only the plugin's task has ended. */
static bool
remove_socket_dir(struct sup *sup, const char *name)
{
	struct id id;

	if (sup->allocs->n_unreadable > 0 || !id_from_uuid(name, &id))
		return false;
	plugin_socket_dir_remove(sup, &id);
	return true;
}

/* Removes the root of a plugin, such as "node/hp". mount-helper refuses if it has a volume. */
static bool
remove_plugin_root(struct sup *sup, const char *name)
{
	struct id no_alloc = id_random_uuid(); /* the alloc whose socket directory is removed too */

	for (int kind = CSI_PLUGIN_CONTROLLER; kind <= CSI_PLUGIN_MONOLITH; kind++) {
		const char *word = csi_plugin_kind_names[kind];
		size_t len = strlen(word);

		if (strncmp(name, word, len) != 0 || name[len] != '/' ||
		    strchr(name + len + 1, '/'))
			continue;
		plugin_dirs_remove(sup, &no_alloc, (enum csi_plugin_kind)kind, name + len + 1);
		return true;
	}
	return false;
}

/* The values of kind are listed in leaks.c. An alloc may be listed once for each of its
 * directories: removing it again does nothing. */
static void
remove_one(struct sup *sup, const char *kind, const char *name, const char *detail)
{
	static const char *const alloc_kinds[] = { "alloc-dir", "logs" };
	bool removed = (strcmp(kind, "run") == 0 && reap_run(sup, name)) ||
		       (strcmp(kind, "network") == 0 && remove_network(sup, name)) ||
		       (strcmp(kind, "csi-socket") == 0 && remove_socket_dir(sup, name)) ||
		       (strcmp(kind, "csi-dir") == 0 && remove_plugin_root(sup, name));

	for (size_t i = 0; i < ELEMENTSOF(alloc_kinds); i++)
		if (strcmp(kind, alloc_kinds[i]) == 0)
			removed |= remove_alloc(sup, name);
	journal_warn(JOURNAL_LEFTOVER, NULL, "found leftover %s %s (%s)%s", kind, name, detail,
	    removed ? "; removed" : "");
}

static void
on_found(struct sup *sup, void *arg, json_t *list)
{
	json_t *one;
	size_t i;

	json_array_foreach (list, i, one)
		remove_one(sup, json_string_value(json_object_get(one, "Kind")),
		    json_string_value(json_object_get(one, "Name")),
		    json_string_value(json_object_get(one, "Detail")));
	json_decref(list);
}

void
leftovers_remove(struct sup *sup)
{
	leaks_collect(sup, on_found, NULL);
}
