/* SPDX-License-Identifier: Apache-2.0 */
/* csl.h: declarations that the files of the plugin share. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_H

#include <grpc/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "contrib/csi-local/csl_arena.h"
#include "contrib/csi-local/csl_store.h"
#include "proto/csi.pb-c.h"

#define CSL_DRIVER_NAME  "csi-local.drover"
#define CSL_MESSAGE_SIZE 600
#define CSL_NAME_BYTES   128 /* the CSI specification's limit for a string field */
#define CSL_CONTEXT_ENTRY                                                                          \
	"csi-local/attachment" /* of a publish context: the attachment's token                     \
				*/

struct csl_secrets;
struct csl_busy;

/* The plugin: its settings, which do not change, and what all calls share. */
struct csl {
	struct csl_store *store;
	struct csl_busy *busy;
	struct csl_secrets *secrets; /* what each call must bring; NULL: nothing */
	const char *driver_name, *node_id;
	bool controller, node; /* the services of this process */
	bool attach;           /* volumes must be attached to a node before they are staged */
	bool node_expand;      /* NodeExpandVolume is required after every expansion */
	unsigned int delay_ms; /* how long each call that mounts or unmounts takes */
	int64_t max_volumes, capacity_bytes; /* 0: no limit */
	struct csl_pairs topology;           /* of this node */
	int log_fd;                          /* of the log of calls; -1: none */
};

/* One call: its memory, the volumes that it holds, and the message of its failure. */
struct csl_op {
	struct csl *csl;
	struct csl_arena arena;
	char message[CSL_MESSAGE_SIZE];
	const char **held; /* keys of csl_busy */
	size_t n_held;
};

/* A method: fills *rep, whose fields may point to the request, to the call's arena or to static
 * memory. Returns a grpc_status_code; other than OK, with the call's message. */
typedef int csl_method(struct csl_op *op, const void *req, void *rep);

/* Sets the message and returns status. */
int csl_fail(struct csl_op *op, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define csl_invalid(op, ...) csl_fail(op, GRPC_STATUS_INVALID_ARGUMENT, __VA_ARGS__)
/* Returns INTERNAL, or RESOURCE_EXHAUSTED without space, with e's message. */
int csl_internal(struct csl_op *op, const struct err *e);

/* Holds a name of a group until the call ends. Returns 0; ABORTED if another call holds it. */
int csl_hold(struct csl_op *op, const char *group, const char *name);

/* csl_identity.c */
csl_method csl_probe, csl_get_plugin_info, csl_get_plugin_capabilities;
csl_method csl_controller_get_capabilities, csl_group_controller_get_capabilities;
csl_method csl_node_get_capabilities;
/* csl_controller.c */
csl_method csl_create_volume, csl_delete_volume, csl_validate_volume_capabilities;
csl_method csl_controller_expand_volume, csl_controller_modify_volume;
/* csl_list.c */
csl_method csl_list_volumes, csl_controller_get_volume, csl_get_capacity;
/* csl_attach.c */
csl_method csl_controller_publish_volume, csl_controller_unpublish_volume;
/* csl_snapshot.c, csl_group.c */
csl_method csl_create_snapshot, csl_delete_snapshot, csl_list_snapshots;
csl_method csl_create_group, csl_delete_group, csl_get_group;
/* csl_node.c */
csl_method csl_node_stage_volume, csl_node_unstage_volume, csl_node_publish_volume,
    csl_node_unpublish_volume;
/* csl_node_info.c */
csl_method csl_node_get_info, csl_node_get_volume_stats, csl_node_expand_volume;

#endif
