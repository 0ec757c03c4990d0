/* SPDX-License-Identifier: Apache-2.0 */
/* volume.h: CSI volumes with their claims, and plugins, as the source stores them and the API shows
 * them. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_VOLUME_H
#define DROVER_MODEL_VOLUME_H

#include "model/alloc.h"
#include "model/csi.h"
#include "model/csi_instance.h"
#include "model/engine/field.h"
#include "model/volume_here.h"

/* The API and the wire use the numbers. */
enum claim_mode { CLAIM_READ, CLAIM_WRITE, CLAIM_GC };
enum claim_state {
	CLAIM_TAKEN,
	CLAIM_NODE_DETACHED,
	CLAIM_CONTROLLER_DETACHED,
	CLAIM_READY_TO_FREE,
	CLAIM_UNPUBLISHING
};

/* The last step of the controller for the claim. A call that has begun may have taken effect. */
enum claim_attach { CLAIM_UNATTACHED, CLAIM_ATTACHING, CLAIM_ATTACHED, CLAIM_DETACHING };

extern const char *const claim_mode_names[CLAIM_GC + 1];
extern const char *const claim_state_names[CLAIM_UNPUBLISHING + 1];
extern const char *const claim_attach_names[CLAIM_DETACHING + 1];

struct csi_claim {
	char *alloc_id, *node_id, *external_node_id;
	enum claim_mode mode;
	enum csi_access access_mode;
	enum csi_attachment attachment_mode;
	enum claim_state state;
	/* Only in state.db of the embedded server. */
	int64_t since; /* ns */
	enum claim_attach attach;
	bool attach_read_only;
	char *attach_boot;                 /* the boot in which it was attached */
	struct string_map publish_context; /* what the controller answered; may be secret */
};

struct csi_capability {
	enum csi_attachment attachment_mode;
	enum csi_access access_mode;
};

struct csi_topology_request {
	MODEL_LIST(struct csi_topology) required;
	MODEL_LIST(struct csi_topology) preferred;
};

struct csi_volume {
	char *id, *name, *external_id, *namespace;
	struct csi_topology_request *requested_topologies;
	MODEL_LIST(struct csi_topology) topologies;
	enum csi_access access_mode; /* the modes in use now */
	enum csi_attachment attachment_mode;
	struct mount_options *mount_options;
	struct string_map secrets, parameters, mutable_parameters, context;
	bool secrets_lost; /* it has secrets, which the key in seal.key does not open */
	bool flags_sealed; /* its row has sealed mount flags, but no secrets */
	struct string_map publish_context; /* of a claim: the controller's data for the node */
	int64_t capacity, requested_capacity_min, requested_capacity_max; /* bytes */
	/* The size that nodes still have to learn, in bytes, 0 if they all know it; and why the
	 * last try failed. */
	int64_t node_expansion;
	char *node_expansion_error;
	MODEL_LIST(struct csi_capability) requested_capabilities;
	char *clone_id, *snapshot_id;
	/* By alloc id. Never shown by the API. */
	MODEL_MAP(struct csi_claim) read_claims;
	MODEL_MAP(struct csi_claim) write_claims;
	MODEL_MAP(struct csi_claim) past_claims;
	bool schedulable;
	char *plugin_id, *provider, *provider_version;
	bool controller_required;
	int64_t controllers_healthy, controllers_expected, nodes_healthy, nodes_expected;
	int64_t resource_exhausted;       /* time; 0 if it was never exhausted */
	int64_t create_time, modify_time; /* ns */
	uint64_t create_index, modify_index;
	/* Only for the API: the claims' alloc ids, their stubs, and the counts of the list. */
	struct strings read_allocs, write_allocs;
	MODEL_LIST(struct alloc) allocations;
	int64_t current_readers, current_writers;
	struct volume_here *here; /* what this node knows; NULL: it is not mounted here */
	struct volume_at_controller *at_controller; /* NULL: it was not asked */
};

MODEL_DECLARE(csi_claim);
MODEL_DECLARE(csi_capability);
MODEL_DECLARE(csi_topology_request);
MODEL_DECLARE(csi_volume); /* for state.db: every field that is stored */

/* The table for GET /v1/volume/csi/:id and the list: without claims, secrets null, flags
 * redacted. */
extern const struct type csi_volume_view_type;
extern const struct type csi_volume_stub_type;
/* The table for a request that registers or creates a volume. */
extern const struct type csi_volume_request_type;
/* Fills read_allocs, write_allocs, current_readers and current_writers from the claims. */
void csi_volume_fill_view(struct csi_volume *vol);

struct csi_plugin {
	char *id, *provider, *version;
	bool controller_required;
	MODEL_MAP(struct csi_info) controllers; /* by node id */
	MODEL_MAP(struct csi_info) nodes;
	MODEL_LIST(struct alloc) allocations; /* stubs, newest ModifyIndex first */
	int64_t controllers_healthy, controllers_expected, nodes_healthy, nodes_expected;
	uint64_t create_index, modify_index;
	MODEL_LIST(struct csi_instance) instances; /* on this node */
	struct csi_capacity *capacity;             /* NULL: unknown */
	char *capacity_error;                      /* why it is unknown */
};

MODEL_DECLARE(csi_plugin);
extern const struct type csi_plugin_stub_type;

/* Sets the plugin's counts of healthy and expected controllers and nodes, and
 * controller_required. */
void csi_plugin_count(struct csi_plugin *plugin);
bool csi_plugin_needs_attach(const struct csi_plugin *plugin);
/* Returns whether the plugin has a controller, none of which has answered yet, so that it is not
 * known whether volumes must be attached. */
bool csi_plugin_lacks_controller(const struct csi_plugin *plugin);

/* Returns whether id is a name, or a name and an index (per_alloc): "data", "data[3]". */
bool csi_volume_id_is_valid(const char *id);
/* Returns whether a and b would be created differently; then *ret is the first field that differs:
 * "RequestedCapabilities[0].AccessMode". */
bool csi_volume_creation_differs(
    const struct csi_volume *a, const struct csi_volume *b, char *ret, size_t size);
/* Adds the problems for which `volume create` is rejected before a plugin is called. */
void csi_volume_validate(const struct csi_volume *vol, struct problems *p);

#endif
