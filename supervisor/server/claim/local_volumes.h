/* SPDX-License-Identifier: Apache-2.0 */
/* local_volumes.h: CSI volumes, and their fields that follow from their plugins. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_VOLUMES_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_VOLUMES_H

#include "model/volume.h"
#include "supervisor/core/seal.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"

#define CALLING_FOR_NONE "none" /* detaches what no alloc claims */

/* The attachment or release in progress for a volume. Its controller gets one call at a time. */
struct local_claim_work {
	char *calling; /* the alloc for which the controller is called, or CALLING_FOR_NONE; NULL:
			  no call is out */
	bool detaching;
	LIST_HEAD(, claim_wait) waits;   /* local_attach.c */
	LIST_HEAD(, release_wait) asked; /* local_release.c */
	struct sup_timer again;
	uint64_t not_before_ms, delay_ms; /* of the next detachment, after failures */
	unsigned failures;
	char *error; /* of the last one */
};

struct local_volume {
	struct local *l;
	struct local_key key; /* "<namespace>/<id>" */
	char *name;
	struct csi_volume vol; /* without external_id: the end of its creation is unknown */
	struct dirty row;
	struct sealed unread; /* volume_row.h */
	const char *busy;     /* "created", "deleted", …: the plugin is being called; or NULL */
	bool gone;            /* the row is being deleted; then this is freed */
	struct local_claim_work work;
	struct local_expansion *expansion; /* local_expand.c; NULL: there is none */
};

void local_volumes_init(struct local *l);
void local_volumes_free(struct local *l);
int local_volumes_load(struct local *l, struct err *e);

struct local_volume *local_volume_find(
    struct local *l, const char *namespace, const char *id); /* or NULL */
/* Returns all volumes, sorted by name; the caller frees the array of *ret_n. */
struct local_key **local_volumes_sorted(const struct local *l, size_t *ret_n);
static inline struct local_volume *
local_volume_of(struct local_key *key)
{
	return key ? container_of(key, struct local_volume, key) : NULL;
}
/* Takes over *vol. */
struct local_volume *local_volume_new(struct local *l, struct csi_volume *vol);
/* Writes it under a new index, durably. */
void local_volume_changed(struct local *l, struct local_volume *lv);
void local_volume_forget(struct local *l, struct local_volume *lv);
/* To be called at the end of a call for work.calling. Returns false if the volume was forgotten in
 * the meantime; then it may be freed. */
bool local_volume_end_call(struct local_volume *lv);
/* Sets the fields that follow from the plugin: schedulable, provider, counts. */
void local_volume_refresh(struct local *l, struct csi_volume *vol);
/* Fills in the plugin as the API shows it, without allocations. Returns false if it has no
 * instance.
 */
bool local_plugin_get(struct local *l, const char *id, struct csi_plugin *ret);

#endif
