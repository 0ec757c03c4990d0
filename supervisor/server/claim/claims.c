/* SPDX-License-Identifier: Apache-2.0 */
/* claims.c: takes and releases claims of a volume, and finds those that are over. Runs in:
 * supervisor. */
#include "supervisor/server/claim/claims.h"

#include <string.h>

#include "common/mem.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

bool
claim_is_writer_mode(enum csi_access access)
{
	return access == CSI_SINGLE_NODE_WRITER || access == CSI_MULTI_NODE_SINGLE_WRITER ||
	       access == CSI_MULTI_NODE_MULTI_WRITER;
}

bool
volume_in_use(const struct csi_volume *vol)
{
	return vol->read_claims.n > 0 || vol->write_claims.n > 0;
}

bool
volume_read_schedulable(const struct csi_volume *vol)
{
	return vol->schedulable && !vol->resource_exhausted;
}

bool
volume_write_schedulable(const struct csi_volume *vol)
{
	size_t i;

	if (!volume_read_schedulable(vol))
		return false;
	if (vol->access_mode != CSI_ACCESS_NONE)
		return claim_is_writer_mode(vol->access_mode);
	for (i = 0; i < vol->requested_capabilities.n; i++)
		if (claim_is_writer_mode(vol->requested_capabilities.v[i].access_mode))
			return true;
	return false;
}

/* Returns the id of the first alloc in a map of claims, or NULL. */
static const char *
first_holder(const void *claims)
{
	const struct any_list *m = claims;

	return m->n ? *(char *const *)m->v : NULL;
}

/* Returns the alloc that prevents one more reader or writer, or NULL. */
static const char *
blocking_alloc(const struct csi_volume *vol, bool write, const char **ret_what)
{
	const char *reader = first_holder(&vol->read_claims),
		   *writer = first_holder(&vol->write_claims);
	bool alone = vol->access_mode == CSI_SINGLE_NODE_WRITER;

	if (write) {
		*ret_what = "written";
		return alone || vol->access_mode == CSI_MULTI_NODE_SINGLE_WRITER ? writer : NULL;
	}
	if ((alone || vol->access_mode == CSI_SINGLE_NODE_READER) && reader) {
		*ret_what = "read";
		return reader;
	}
	*ret_what = "written";
	return alone ? writer : NULL;
}

static int
check_schedulable(const struct csi_volume *vol, bool write, struct err *e)
{
	if (!vol->schedulable)
		return err_say(e, -EAGAIN,
		    "volume is currently unschedulable: volume %s: plugin %s has %lld healthy "
		    "nodes of %lld%s",
		    str(vol->id), str(vol->plugin_id), (long long)vol->nodes_healthy,
		    (long long)vol->nodes_expected,
		    vol->controller_required && !vol->controllers_healthy
			? " and no healthy controller"
			: "");
	if (vol->resource_exhausted)
		return err_say(e, -EAGAIN,
		    "volume is currently unschedulable: volume %s: the plugin says that a resource "
		    "is exhausted",
		    str(vol->id));
	if (write && !volume_write_schedulable(vol))
		return err_say(e, -EAGAIN,
		    "volume is currently unschedulable: volume %s cannot be written %s%s",
		    str(vol->id), vol->access_mode ? "with access mode " : "by its capabilities",
		    csi_access_names[vol->access_mode]);
	return 0;
}

static int
check_modes(const struct csi_volume *vol, const struct csi_claim *claim, struct err *e)
{
	if (vol->attachment_mode && claim->attachment_mode &&
	    vol->attachment_mode != claim->attachment_mode)
		return err_say(e, -EINVAL,
		    "cannot change attachment mode of claimed volume: volume %s is attached as %s, "
		    "not %s",
		    str(vol->id), csi_attachment_names[vol->attachment_mode],
		    csi_attachment_names[claim->attachment_mode]);
	return 0;
}

static bool
is_capable(const struct csi_volume *vol, const struct csi_claim *claim)
{
	size_t i;

	for (i = 0; i < vol->requested_capabilities.n; i++) {
		const struct csi_capability *c = &vol->requested_capabilities.v[i];

		if ((!claim->access_mode || c->access_mode == claim->access_mode) &&
		    (!claim->attachment_mode || c->attachment_mode == claim->attachment_mode))
			return true;
	}
	return vol->requested_capabilities.n == 0;
}

/* The modes of the first claim on a free volume must be among its capabilities. */
static int
check_capability(const struct csi_volume *vol, const struct csi_claim *claim, struct err *e)
{
	if (vol->access_mode || vol->attachment_mode || is_capable(vol, claim))
		return 0;
	return err_say(e, -EINVAL, "volume %s has no capability for %s, %s", str(vol->id),
	    csi_attachment_names[claim->attachment_mode], csi_access_names[claim->access_mode]);
}

static bool
holds_claim(const struct csi_volume *vol, const struct csi_claim *claim)
{
	const void *claims =
	    claim->mode == CLAIM_WRITE ? (const void *)&vol->write_claims : &vol->read_claims;

	return model_map_get(&csi_claim_type, claims, claim->alloc_id);
}

/* Appends the alloc of the claim, its node and its age to *e, and returns e->code. */
static int
say_holder(const struct csi_claim *c, struct err *e)
{
	char since[RFC3339_SIZE] = "";
	struct err why = *e;

	time_format(c->since / 1000000000 * 1000000000, since);
	return err_say(e, why.code, "%salloc %s on node %s%s%s", why.msg, str(c->alloc_id),
	    str(c->node_id), c->since ? " since " : "", c->since ? since : "");
}

/* Returns a shallow copy of the volume with the modes that it would have with this claim. */
static struct csi_volume
with_modes(const struct csi_volume *vol, const struct csi_claim *claim)
{
	struct csi_volume view = *vol;

	if (!view.access_mode)
		view.access_mode = claim->access_mode;
	if (!view.attachment_mode)
		view.attachment_mode = claim->attachment_mode;
	return view;
}

int
volume_claim_check(const struct csi_volume *vol, const struct csi_claim *claim, struct err *e)
{
	bool write = claim->mode == CLAIM_WRITE;
	struct csi_volume view;
	const char *holder, *what;
	int r;

	if (holds_claim(vol, claim))
		return 0;
	r = check_modes(vol, claim, e);
	if (r == 0)
		r = check_capability(vol, claim, e);
	if (r < 0)
		return r;
	view = with_modes(vol, claim);
	r = check_schedulable(&view, write, e);
	if (r < 0)
		return r;
	holder = blocking_alloc(&view, write, &what);
	if (!holder || str_eq(holder, claim->alloc_id))
		return 0;
	(void)err_say(e, -EBUSY, "volume max claims reached: volume %s (%s) is %s by ",
	    str(vol->id), csi_access_names[view.access_mode], what);
	return say_holder(volume_find_claim(vol, holder), e);
}

static void
put_claim(void *claims, const struct csi_claim *claim)
{
	struct csi_claim copy, *at;

	csi_claim_copy(claim, &copy);
	at = model_map_put(&csi_claim_type, claims, claim->alloc_id);
	csi_claim_done(at);
	*at = copy;
}

/* A volume that was registered without capabilities gets the modes of its first claim as its only
 * capability. */
static void
set_modes(struct csi_volume *vol, const struct csi_claim *claim)
{
	struct csi_capability *c;

	if (vol->requested_capabilities.n == 0) {
		c = list_add(csi_capability, &vol->requested_capabilities);
		c->access_mode = claim->access_mode;
		c->attachment_mode = claim->attachment_mode;
	}
	if (!vol->access_mode)
		vol->access_mode = claim->access_mode;
	if (!vol->attachment_mode)
		vol->attachment_mode = claim->attachment_mode;
}

static int
take_claim(struct csi_volume *vol, const struct csi_claim *claim, struct err *e)
{
	bool write = claim->mode == CLAIM_WRITE;
	int r;

	if (holds_claim(vol, claim))
		return 0;
	r = volume_claim_check(vol, claim, e);
	if (r < 0)
		return r;
	put_claim(write ? (void *)&vol->write_claims : &vol->read_claims, claim);
	set_modes(vol, claim);
	(void)map_remove(
	    csi_claim, write ? (void *)&vol->read_claims : &vol->write_claims, claim->alloc_id);
	(void)map_remove(csi_claim, &vol->past_claims, claim->alloc_id);
	return 0;
}

static void
forget_claims(struct csi_volume *vol, const char *alloc_id)
{
	(void)map_remove(csi_claim, &vol->read_claims, alloc_id);
	(void)map_remove(csi_claim, &vol->write_claims, alloc_id);
	(void)map_remove(csi_claim, &vol->past_claims, alloc_id);
	if (vol->read_claims.n || vol->write_claims.n || vol->past_claims.n)
		return;
	vol->access_mode = CSI_ACCESS_NONE;
	vol->attachment_mode = CSI_ATTACHMENT_NONE;
}

int
volume_claim(struct csi_volume *vol, const struct csi_claim *claim, struct err *e)
{
	cleanup_free char *id = NULL; /* claim may be one of the volume's own */

	if (claim->state == CLAIM_TAKEN && claim->mode != CLAIM_GC)
		return take_claim(vol, claim, e);
	if (claim->state == CLAIM_READY_TO_FREE) {
		id = mem_strdup(str(claim->alloc_id));
		forget_claims(vol, id);
	} else {
		volume_release_claim(vol, claim, claim->state);
	}
	return 0;
}

const struct csi_claim *
volume_find_claim(const struct csi_volume *vol, const char *alloc_id)
{
	const struct csi_claim *c = map_get(csi_claim, &vol->write_claims, alloc_id);

	if (!c)
		c = map_get(csi_claim, &vol->read_claims, alloc_id);
	return c ? c : map_get(csi_claim, &vol->past_claims, alloc_id);
}

struct csi_claim *
volume_held_claim(struct csi_volume *vol, const char *alloc_id)
{
	struct csi_claim *c = map_get(csi_claim, &vol->write_claims, alloc_id);

	return c ? c : map_get(csi_claim, &vol->read_claims, alloc_id);
}

struct csi_claim *
volume_nth_claim(struct csi_volume *vol, size_t i)
{
	if (i < vol->write_claims.n)
		return &vol->write_claims.v[i].value;
	i -= vol->write_claims.n;
	return i < vol->read_claims.n ? &vol->read_claims.v[i].value : NULL;
}

const struct csi_claim *
volume_other_attachment(struct csi_volume *vol, const struct csi_claim *claim)
{
	const struct csi_claim *c, *begun = NULL;

	for (size_t i = 0; (c = volume_nth_claim(vol, i)); i++) {
		if (c->attach == CLAIM_UNATTACHED || str_eq(c->alloc_id, claim->alloc_id) ||
		    !str_eq(c->node_id, claim->node_id))
			continue;
		if (c->attach == CLAIM_ATTACHED)
			return c;
		begun = c;
	}
	return begun;
}

int
volume_attach_check(struct csi_volume *vol, const struct csi_claim *claim, struct err *e)
{
	const struct csi_claim *other = volume_other_attachment(vol, claim);

	if (!other || !other->attach_read_only || claim->mode == CLAIM_READ)
		return 0;
	(void)err_say(e, -EBUSY,
	    "volume max claims reached: volume %s cannot be written while it is attached read-only "
	    "for ",
	    str(vol->id));
	return say_holder(other, e);
}

void
volume_release_claim(struct csi_volume *vol, const struct csi_claim *claim, enum claim_state state)
{
	struct csi_claim past = {
		.alloc_id = claim->alloc_id,
		.node_id = claim->node_id,
		.external_node_id = claim->external_node_id,
		.mode = claim->mode,
		.access_mode = claim->access_mode,
		.attachment_mode = claim->attachment_mode,
		.since = claim->since,
		.state = state,
	};

	put_claim(&vol->past_claims, &past);
}
