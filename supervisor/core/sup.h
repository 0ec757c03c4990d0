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
struct reserve;
struct seal;
struct turn;
struct tidy;
struct changes;
struct children;
struct alloc_table;
struct source;
struct node_events;
struct node_troubles;
struct node_meta;
struct node_state;
struct disk_size;
struct host_usage;
struct mounts;
struct api;
struct runs;
struct driver_breakers;
struct run_poll;
struct usage_roots;
struct lease_watch;
struct plugins;
struct plugins_configured;
struct volumes;
struct check_queues;
struct check_probes;
struct check_tls;
struct sup_alloc;
struct task;
struct string_map;
struct client;
struct leave;
struct departure;
struct alloc_fs;
struct alloc_gc;
struct health;
struct disk_watch;
struct followers;
struct monitor;
struct queues;
struct statsd;
struct audit_log;
struct images;

/* The supervisor has one struct sup. Each part makes its own member, in the order of sup_main.c. */
struct sup {
	struct sd_event *event;
	const struct agent_config *config;
	struct proc_args args;
	char boot_id[BOOT_ID_SIZE];

	/* core/: store.h, reserve.h, seal.h, sup_turn.h, sup_tidy.h, changed.h, sup_child.h,
	 * sup_queue.h */
	struct store *store;
	struct reserve *reserve;
	struct seal *seal;
	struct turn *turn;
	struct tidy *tidy;
	struct changes *changes;
	struct children *children;
	struct queues *queues;
	/* audit/audit_log.h; NULL: requests are not audited */
	struct audit_log *audit;
	/* table/alloc_table.h, source/source.h */
	struct alloc_table *allocs;
	struct source *source;
	/* node/: node_state.h, node_events.h, node_troubles.h, node_meta.h, node_disk.h,
	 * host_usage.h, mounts.h */
	struct node_state *node;
	struct node_meta *node_meta;
	struct node_events *node_events;
	struct node_troubles *node_troubles;
	struct disk_size *disk;
	struct host_usage *host_usage;
	struct mounts *mounts;
	/* driver/: run.h, driver_breaker.h, run_watch.h, run_usage.h, lease_page.h, session.h */
	struct runs *runs;
	struct driver_breakers *breakers;
	struct run_poll *run_poll;
	struct usage_roots *usage_roots;
	struct lease_watch *lease_watch;
	unsigned n_sessions;
	/* volume/: plugins.h, plugin_configured.h, volumes.h */
	struct plugins *plugins;
	struct plugins_configured *plugins_configured;
	struct volumes *volumes;
	struct images *images; /* image/images.h */
	/* service/: checks.h, check_probe.h, check_tls.h, task_env.h */
	struct check_queues *check_queues;
	struct check_probes *check_probes;
	struct check_tls *check_tls;
	void (*task_env_vars[2])(/* by enum task_env_layer */
	    const struct sup_alloc *sa, const struct task *task, struct string_map *vars);
	/* health/probe.h */
	struct health *health;
	/* alloc/: client.h, leave.h, departure.h, alloc_fs.h, alloc_gc.h, hook_disk.c */
	struct client *client;
	struct leave *leave; /* NULL: no drain before the end */
	struct departure *departure;
	struct alloc_fs *alloc_fs;
	struct alloc_gc *alloc_gc;
	struct disk_watch *disk_watch;
	/* http/api.h; api/fs_stream.h, monitor.c */
	struct api *api;
	struct followers *followers;
	struct monitor *monitor;
	struct statsd *statsd; /* metrics/statsd.h; NULL: metrics are not sent */

	int run_dir_fd;    /* <data>/run: records */
	int sock_dir_fd;   /* <rt>/x: the runs' sockets */
	int log_dir_fd;    /* <data>/logs */
	bool new_identity; /* the node's old identity is forgotten: it gets a new one at this start
			    */
	bool draining;     /* the agent is ending: all allocs are stopped first, none is placed */
	bool exiting;
	int exit_code; /* when exiting: for main */
};

#endif
