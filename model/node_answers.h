/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_answers.h: a node's answers to its servers, which are the same at its own socket: files of
 * an alloc, its metadata, volumes and snapshots of a plugin. Runs in: supervisor.
 */
#ifndef DROVER_MODEL_NODE_ANSWERS_H
#define DROVER_MODEL_NODE_ANSWERS_H

#include "model/csi.h"
#include "model/engine/field.h"
#include "model/rpc_meta.h"

struct rpc_file {
	char *name;
	bool is_dir;
	int64_t size;
	char *file_mode; /* "-rw-r--r--" */
	int64_t mod_time;
	char *content_type;
};

struct rpc_fs_list_rep {
	MODEL_LIST(struct rpc_file) files;
	struct rpc_meta meta;
};

struct rpc_meta_apply_rep {
	struct string_map meta;
	json_t *dynamic;
	struct string_map static_meta;
};

struct rpc_csi_entry {
	char *external_id;
	int64_t capacity_bytes;
	struct string_map volume_context;
	char *clone_id, *snapshot_id;
	struct strings published_external_node_ids;
	bool is_abnormal;
	char *status;
};

/* Answers of several calls. ControllerAttachVolume: publish_context. ControllerCreateVolume,
 * ControllerExpandVolume and NodeExpandVolume: the fields of the same names. ControllerListVolumes:
 * entries. */
struct rpc_csi_rep {
	struct string_map publish_context;
	char *external_volume_id;
	int64_t capacity_bytes;
	struct string_map volume_context;
	MODEL_LIST(struct csi_topology) topologies;
	bool node_expansion_required;
	MODEL_LIST(struct rpc_csi_entry) entries;
	char *next_token;
};

/* The answer of ControllerCreateSnapshot, and an entry of ControllerListSnapshots. */
struct rpc_csi_snapshot {
	char *id, *external_source_volume_id;
	char *group_id;                  /* of the snapshots of several volumes, made together */
	int64_t size_bytes, create_time; /* seconds */
	bool is_ready;
};

struct rpc_csi_snapshots_rep {
	MODEL_LIST(struct rpc_csi_snapshot) entries;
	char *next_token;
};

MODEL_DECLARE(rpc_file);
MODEL_DECLARE(rpc_fs_list_rep);
MODEL_DECLARE(rpc_meta_apply_rep);
MODEL_DECLARE(rpc_csi_entry);
MODEL_DECLARE(rpc_csi_rep);
MODEL_DECLARE(rpc_csi_snapshot);
MODEL_DECLARE(rpc_csi_snapshots_rep);

#endif
