// SPDX-License-Identifier: Apache-2.0
/* nomad_csi.c: requests of servers for the CSI plugins on this node: calls of the controller, and
 * the expansion of a volume in use. Runs in: supervisor. */
#include "supervisor/cluster/serve/nomad_csi.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/cluster/serve/nomad_requests.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "supervisor/volume/controller_calls.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"
#include "supervisor/cluster/rpc/rpc_csi.h"

/* A call of a controller in progress. */
struct asked {
	uint64_t stream;
	const char *what;
	struct rpc_csi_controller_req req;
	struct csi_volume vol;
};

static void
free_asked(struct asked *a)
{
	rpc_csi_controller_req_done(&a->req);
	csi_volume_done(&a->vol);
	free(a);
}

/* Adds the text by which servers recognise an error that may be retried. */
static void
refuse_request(struct sup *sup, struct asked *a, int r, const struct err *e)
{
	struct text text = { 0 };

	text_printf(&text, "%s: %s%s", a->what,
	    r == -EHOSTDOWN || r == -ECONNRESET ? "CSI client error (retryable): " : "", e->msg);
	link_answer(sup, a->stream, text.text, NULL, 0);
	text_done(&text);
}

static void
add_capability(struct csi_volume *vol, const struct csi_capability *from)
{
	*list_add(csi_capability, &vol->requested_capabilities) = *from;
}

/* Reads a capability whose modes are numbers; one that is not known becomes the mode NONE. */
static void
take_numbers(struct asked *a, struct rpc_csi_capability *from)
{
	static const enum csi_access access[] = { CSI_ACCESS_NONE, CSI_SINGLE_NODE_WRITER,
		CSI_SINGLE_NODE_READER, CSI_MULTI_NODE_READER, CSI_MULTI_NODE_SINGLE_WRITER,
		CSI_MULTI_NODE_MULTI_WRITER };
	static const enum csi_attachment types[] = { CSI_ATTACHMENT_NONE, CSI_BLOCK_DEVICE,
		CSI_FILE_SYSTEM };
	struct csi_capability cap = { 0 };

	if (from->access_mode > 0 && from->access_mode < (int64_t)ELEMENTSOF(access))
		cap.access_mode = access[from->access_mode];
	if (from->access_type > 0 && from->access_type < (int64_t)ELEMENTSOF(types))
		cap.attachment_mode = types[from->access_type];
	add_capability(&a->vol, &cap);
	if (!a->req.mount_options)
		a->req.mount_options = steal_ptr(&from->mount_volume);
}

/* Reads capabilities: a list, a single one, or one as two fields. */
static void
take_capabilities(struct asked *a)
{
	struct rpc_csi_controller_req *req = &a->req;
	const struct csi_capability halves = { .attachment_mode = req->attachment_mode,
		.access_mode = req->access_mode };

	for (size_t i = 0; i < req->volume_capabilities.n; i++)
		add_capability(&a->vol, &req->volume_capabilities.v[i]);
	if (req->volume_capabilities.n > 0)
		return;
	if (req->access_mode)
		add_capability(&a->vol, &halves);
	else if (req->volume_capability)
		take_numbers(a, req->volume_capability);
}

/* Builds the volume for the plugin's call; fields that are not moved stay in req. */
static void
take_volume(struct asked *a)
{
	struct rpc_csi_controller_req *req = &a->req;
	const char *external = *str(req->external_volume_id) ? req->external_volume_id
			       : *str(req->external_source_volume_id)
				   ? req->external_source_volume_id
				   : req->volume_id;

	str_set(&a->vol.id, req->name);
	str_set(&a->vol.name, req->name);
	str_set(&a->vol.external_id, external);
	str_set(&a->vol.plugin_id, req->plugin_id);
	take_capabilities(a);
	if (req->mount_options) {
		struct rpc_csi_mount_options *from = req->mount_options;
		struct mount_options *to = a->vol.mount_options = mount_options_new();

		str_set(&to->fs_type, *str(from->fs_type) ? from->fs_type : from->filesystem);
		to->mount_flags = from->mount_flags;
		from->mount_flags = (struct strings){ 0 };
	}
	a->vol.requested_topologies = steal_ptr(&req->requested_topologies);
	a->vol.snapshot_id = steal_ptr(&req->snapshot_id);
	a->vol.clone_id = steal_ptr(&req->clone_id);
	a->vol.requested_capacity_min = req->capacity_min;
	a->vol.requested_capacity_max = req->capacity_max;
	a->vol.secrets = req->secrets;
	a->vol.parameters = req->parameters;
	a->vol.context = req->context.n ? req->context : req->volume_context;
	*(req->context.n ? &req->context : &req->volume_context) = (struct string_map){ 0 };
	req->secrets = req->parameters = (struct string_map){ 0 };
}

/* Decodes a request; NULL if it was answered with an error. */
static struct asked *
take_request(struct sup *sup, uint64_t stream, const void *body, size_t len, const char *what)
{
	struct asked *a = mem_new(struct asked);
	struct err e = { 0 };
	int r;

	a->stream = stream;
	a->what = what;
	rpc_csi_controller_req_init(&a->req);
	csi_volume_init(&a->vol);
	r = model_from_msgpack(
	    &rpc_csi_controller_req_type, body, len, &a->req, WIRE_MEMORY_MAX, &e);
	if (r < 0) {
		refuse_request(sup, a, r, &e);
		free_asked(a);
		return NULL;
	}
	take_volume(a);
	turn_durable(sup);
	return a;
}

/* Called when the call has ended; rep is valid if r is 0. */
static void
finish_request(struct sup *sup, struct asked *a, int r, const struct err *e,
    const struct type *type, const void *rep)
{
	if (r < 0)
		refuse_request(sup, a, r, e);
	else
		nomad_answer(sup, a->stream, type, rep);
	free_asked(a);
}

static void
on_done(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct asked *a = arg;

	if (r < 0)
		refuse_request(sup, a, r, e);
	else
		nomad_answer_empty(sup, a->stream);
	free_asked(a);
}

static void
on_created(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct asked *a = arg;
	struct rpc_csi_rep rep = {
		.external_volume_id = a->vol.external_id,
		.capacity_bytes = a->vol.capacity,
		.volume_context = a->vol.context,
	};

	rep.topologies.v = a->vol.topologies.v;
	rep.topologies.n = a->vol.topologies.n;
	finish_request(sup, a, r, e, &rpc_csi_rep_type, &rep);
}

void
nomad_csi_create_volume(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller create volume");

	if (!a)
		return;
	str_set(&a->vol.external_id, NULL);
	volume_create(sup, &a->vol, on_created, a);
}

void
nomad_csi_delete_volume(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller delete volume");
	struct err e = { 0 };
	int r;

	if (!a)
		return;
	/* The servers may have given up the claim of an alloc that this node has not unmounted. */
	r = volume_refuse_mounted(sup, str(a->vol.plugin_id), str(a->vol.external_id), &e);
	if (r < 0)
		on_done(sup, a, r, &e);
	else
		volume_delete(sup, &a->vol, on_done, a);
}

void
nomad_csi_validate_volume(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "validate volume");

	if (a)
		volume_validate(sup, &a->vol, on_done, a);
}

static void
on_attached(struct sup *sup, void *arg, int r, const struct string_map *publish_context,
    const struct err *e)
{
	struct rpc_csi_rep rep = { .publish_context = *publish_context };

	finish_request(sup, arg, r, e, &rpc_csi_rep_type, &rep);
}

/* A controller that only creates and deletes volumes cannot attach them, but servers ask it to; the
 * answer is success. */
static bool
never_attaches(struct sup *sup, const struct asked *a)
{
	struct plugin *p = plugin_find(sup, str(a->vol.plugin_id), CSI_PLUGIN_CONTROLLER);
	const struct csi_info *info = p ? plugin_controller_info(p) : NULL;

	return info && info->controller_info && !info->controller_info->supports_attach_detach;
}

void
nomad_csi_attach_volume(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller attach volume");

	if (a && never_attaches(sup, a))
		on_done(sup, a, 0, NULL);
	else if (a)
		volume_attach(
		    sup, &a->vol, str(a->req.client_csi_node_id), a->req.read_only, on_attached, a);
}

void
nomad_csi_detach_volume(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller detach volume");

	if (a && never_attaches(sup, a))
		on_done(sup, a, 0, NULL);
	else if (a)
		volume_detach(sup, &a->vol, str(a->req.client_csi_node_id), on_done, a);
}

static void
on_expanded(
    struct sup *sup, void *arg, int r, int64_t capacity_bytes, bool on_nodes, const struct err *e)
{
	struct rpc_csi_rep rep = {
		.capacity_bytes = capacity_bytes,
		.node_expansion_required = on_nodes,
	};

	finish_request(sup, arg, r, e, &rpc_csi_rep_type, &rep);
}

void
nomad_csi_expand_volume(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller expand volume");
	const struct csi_capacity_range none = { 0 }, *range;

	if (!a)
		return;
	range = a->req.capacity_range ? a->req.capacity_range : &none;
	volume_expand(sup, &a->vol, range->required_bytes, range->limit_bytes, on_expanded, a);
}

static void
on_listed(struct sup *sup, void *arg, int r, const struct rpc_csi_rep *list, const struct err *e)
{
	finish_request(sup, arg, r, e, &rpc_csi_rep_type, list);
}

void
nomad_csi_list_volumes(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller list volumes");

	if (a)
		volume_list(sup, str(a->vol.plugin_id), a->req.max_entries,
		    str(a->req.starting_token), 0, on_listed, a);
}

static void
on_snapshots(struct sup *sup, void *arg, int r, const struct rpc_csi_snapshots_rep *list,
    const struct err *e)
{
	finish_request(sup, arg, r, e, &rpc_csi_snapshots_rep_type, list);
}

void
nomad_csi_list_snapshots(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller list snapshots");

	if (a)
		snapshot_list(sup, str(a->vol.plugin_id), a->req.max_entries,
		    str(a->req.starting_token), &a->vol.secrets, on_snapshots, a);
}

static void
on_snapshot(struct sup *sup, void *arg, int r, const struct rpc_csi_snapshots_rep *list,
    const struct err *e)
{
	struct err none = { 0 };

	/* The reply may also be the list of another method, or empty. */
	if (r == 0 && list->entries.n == 0) {
		r = err_say(&none, -EPROTO, "the plugin returned no snapshot");
		e = &none;
	}
	finish_request(sup, arg, r, e, &rpc_csi_snapshot_type, r < 0 ? NULL : &list->entries.v[0]);
}

void
nomad_csi_create_snapshot(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller create snapshot");

	if (a)
		snapshot_create(sup, &a->vol, str(a->req.name), on_snapshot, a);
}

void
nomad_csi_delete_snapshot(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	struct asked *a = take_request(sup, stream, body, len, "controller delete snapshot");

	if (a)
		snapshot_delete(
		    sup, str(a->vol.plugin_id), str(a->req.id), &a->vol.secrets, on_done, a);
}

/* The node method that volumes in use need; nomad_detach.c has the other. */

static void
on_expanded_here(struct sup *sup, void *arg, int r, int64_t capacity_bytes, const struct err *e)
{
	const struct rpc_csi_rep rep = { .capacity_bytes = capacity_bytes };
	cleanup_free uint64_t *stream = arg;

	if (r < 0)
		link_answer(sup, *stream, e->msg, NULL, 0);
	else
		nomad_answer(sup, *stream, &rpc_csi_rep_type, &rep);
}

void
nomad_csi_expand_here(struct sup *sup, uint64_t stream, const void *body, size_t len)
{
	cleanup_done(rpc_csi_node_req) struct rpc_csi_node_req req;
	static const struct csi_capacity_range none;
	const struct csi_capacity_range *range;
	struct volume_size size;
	struct sup_alloc *sa = NULL;
	struct err e = { 0 };
	struct id id;

	rpc_csi_node_req_init(&req);
	if (model_from_msgpack(&rpc_csi_node_req_type, body, len, &req, WIRE_MEMORY_MAX, &e) < 0) {
		link_answer(sup, stream, e.msg, NULL, 0);
		return;
	}
	if (req.claim && id_from_uuid(str(req.claim->alloc_id), &id))
		sa = alloc_find(sup, &id);
	range = req.capacity ? req.capacity : &none;
	/* Servers send no secrets with it. */
	size = (struct volume_size){ range->required_bytes, range->limit_bytes, NULL };
	volume_expand_here(
	    sup, sa, str(req.volume_id), &size, on_expanded_here, nomad_keep_stream(stream));
}
