/* SPDX-License-Identifier: Apache-2.0 */
/* csl.h: declarations that the files of the plugin share. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_H

#include <grpc/status.h>

#include "contrib/csi-local/csl_store.h"
#include "proto/csi.pb-c.h"

#define CSL_PLUGIN_NAME   "csi-local.drover"
#define CSL_MESSAGE_SIZE  600
#define CSL_NODE_ID_BYTES 192 /* the CSI specification's limit for a node id */
#define CSL_NAME_BYTES    128 /* the CSI specification's limit for a string field */

struct csl {
	struct csl_store *store;
	const char *node_id;
};

/* The result of a call: its status is the handler's return value, its message is here. */
struct csl_result {
	char message[CSL_MESSAGE_SIZE];
	void *scratch; /* freed after the reply has been packed */
};

/*
 * A method: fills *rep, whose fields may point to the store, to static memory or to *result's
 * scratch. Returns a grpc_status_code.
 */
typedef int csl_method(struct csl *c, const void *req, void *rep, struct csl_result *result);

/* Sets the message and returns status. */
int csl_fail(struct csl_result *result, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#define csl_invalid(result, ...) csl_fail(result, GRPC_STATUS_INVALID_ARGUMENT, __VA_ARGS__)
/* Finds the volume of a request. Returns 0, INVALID_ARGUMENT if id is empty, NOT_FOUND if it does
 * not exist. */
int csl_volume_get(struct csl *c, const char *id, CslVolume **ret, struct csl_result *result);
/* Checks a capability. Returns 0, or INVALID_ARGUMENT with what a directory volume cannot provide.
 */
int csl_capability_check(const Csi__V1__VolumeCapability *cap, struct csl_result *result);

/* csl_controller.c */
csl_method csl_create_volume, csl_delete_volume, csl_validate_volume_capabilities, csl_list_volumes;
csl_method csl_controller_expand_volume;
csl_method csl_controller_get_capabilities;
/* csl_node.c */
csl_method csl_node_stage_volume, csl_node_unstage_volume, csl_node_publish_volume,
    csl_node_unpublish_volume;
csl_method csl_node_get_capabilities, csl_node_get_info;

#endif
