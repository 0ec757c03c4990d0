/* SPDX-License-Identifier: Apache-2.0 */
/* sup.h: the supervisor's context: pointers to its parts. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_H
#define DROVER_SUPERVISOR_CORE_SUP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/id.h"
#include "common/proc.h"
#include "proto/agent_config.h"

struct sd_event;
struct store;
struct turn;
struct changes;
struct children;
struct alloc_table;
struct source;
struct node_meta;
struct node_state;
struct api;
struct plugins;
struct volumes;
struct followers;
struct monitor;

/* There is one per process. Each part makes its own member, in the order of sup_main.c. */
struct sup {
	struct sd_event *event;
	const struct agent_config *config;
	struct proc_args args;
	char boot_id[BOOT_ID_SIZE];
	struct store *store;         /* core/store.h */
	struct turn *turn;           /* sup_turn.h */
	struct changes *changes;     /* changed.h */
	struct children *children;   /* sup_child.h */
	struct alloc_table *allocs;  /* table/alloc_table.h */
	struct source *source;       /* source/source.h */
	struct node_state *node;     /* node/node_state.h */
	struct node_meta *node_meta; /* node/node_meta.h */
	struct plugins *plugins;     /* volume/plugins.h */
	struct volumes *volumes;     /* volume/volumes.h */
	struct followers *followers; /* api/fs_stream.h */
	struct monitor *monitor;     /* api/fs_stream.h: monitor.c */
	struct api *api;             /* http/api.h */
	int run_dir_fd;              /* <data>/run: records */
	int sock_dir_fd;             /* <rt>/x: the runs' sockets */
	int log_dir_fd;              /* <data>/logs */
	bool draining;               /* -dev is ending: all allocs are stopped first */
	bool exiting;
};

#endif
