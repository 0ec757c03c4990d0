/* SPDX-License-Identifier: Apache-2.0 */
/* agent_config.h: the configuration as two records of fixed size: `config` for the unprivileged
 * processes, `policy` for exec-helper and mount-helper. The launcher's config child writes them
 * once into sealed memfds; the others map them. All processes are of one build, so the records need
 * no encoding. Strings are NUL-terminated; lists have a count. Runs in: every process. */
#ifndef DROVER_PROTO_AGENT_CONFIG_H
#define DROVER_PROTO_AGENT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/artifact_config.h"
#include "proto/audit_config.h"
#include "proto/config_sizes.h"
#include "proto/drivers.h"
#include "proto/image_config.h"
#include "proto/listen_config.h"
#include "proto/network_config.h"
#include "proto/telemetry_config.h"
#include "proto/template_config.h"

#define CONFIG_MAGIC 0x64726366u /* "drcf" */
#define POLICY_MAGIC 0x6472706cu /* "drpl" */

struct config_host_volume {
	char name[CONFIG_NAME_SIZE];
	char path[CONFIG_PATH_SIZE];
	bool read_only;
};

/* A CSI plugin that is not a task. */
struct config_csi_plugin {
	char id[CONFIG_NAME_SIZE];
	char socket[CONFIG_PATH_SIZE];
	uint64_t health_timeout_ms;
	uint32_t kind; /* enum plugin_kind */
};

struct config_range {
	uint32_t low, high; /* both inclusive */
	uint32_t drivers;   /* bit 1 << enum driver: the drivers that deny this range */
};

struct agent_policy {
	uint32_t magic, size;
	uint32_t drivers;        /* bit 1 << enum driver: enabled drivers */
	uint32_t drivers_denied; /* by driver.allowlist, driver.denylist; not in `drivers` */
	uint64_t allow_caps;     /* exec: one bit per capability that a task may have */
	bool allow_host_pid, allow_host_ipc; /* exec: whether pid_mode and ipc_mode may be "host" */
	uint32_t allow_privileged;  /* bits of enum driver: its containers may be privileged … */
	uint32_t allow_host_userns; /* … or have the machine's ids */
	struct config_devices allow_devices[2]; /* of the drivers docker and podman */
	uint32_t n_denied_users;                /* by user.denylist, names of users … */
	char denied_users[CONFIG_RANGES_MAX][CONFIG_NAME_SIZE];
	uint32_t checked_drivers; /* … for these drivers: bit 1 << enum driver */
	uint32_t n_denied_uids, n_denied_gids;
	struct config_range denied_uids[CONFIG_RANGES_MAX], denied_gids[CONFIG_RANGES_MAX];
	uint32_t n_host_volumes;
	struct config_host_volume host_volumes[CONFIG_VOLUMES_MAX];
	uint32_t n_csi_plugins; /* mount-helper connects to their sockets */
	struct config_csi_plugin csi_plugins[CONFIG_PLUGINS_MAX];
	uint32_t n_chroot_env; /* exec: host paths and their paths in a task's root */
	struct {
		char source[CONFIG_PATH_SIZE];
		char target[CONFIG_PATH_SIZE];
	} chroot_env[CONFIG_CHROOT_MAX];
	struct config_cni cni;
	uint32_t n_masks; /* paths that are hidden in an exec task's root */
	char masks[CONFIG_MASKS_MAX][CONFIG_PATH_SIZE];
	char cgroup_parent[CONFIG_PATH_SIZE]; /* empty: the systemd unit's, or /drover */
};

struct agent_config {
	uint32_t magic, size;
	char data_dir[CONFIG_PATH_SIZE];    /* empty: /var/lib/drover */
	char runtime_dir[CONFIG_PATH_SIZE]; /* not with dev */
	char name[CONFIG_NAME_SIZE];        /* of the node; empty: the host's name */
	char region[CONFIG_NAME_SIZE], datacenter[CONFIG_NAME_SIZE];
	char node_class[CONFIG_NAME_SIZE], node_pool[CONFIG_NAME_SIZE];
	char log_level[16], lang[CONFIG_NAME_SIZE]; /* lang: for tasks that set none; empty: none */
	uint32_t n_servers;                         /* 0: the embedded server */
	char servers[CONFIG_SERVERS_MAX][CONFIG_PATH_SIZE];
	/* Until the first connection: the pause after all servers failed (0: heartbeat's own), and
	 * after how many pauses the agent gives up (0: never). */
	uint64_t retry_interval_ms, retry_max;
	bool drain_on_shutdown, leave_on_interrupt, leave_on_terminate;
	uint32_t drain_signals; /* what follows: bits of the signals that drain the node before the
				   agent ends (leave.h) */
	bool drain_force, drain_spares_system, disable_remote_exec, dev;
	uint64_t drain_deadline_ms; /* 0: none */
	bool
	    ephemeral; /* a node that the servers have not heard for this long joins as a new one */
	uint64_t ephemeral_limit_ms;
	bool tls_rpc, tls_verify_server_hostname; /* TLS on the connection to the servers */
	struct config_listen listen[LISTEN_USES];
	/* bind_addr, addresses.http and ports.http: config_check() makes listen[LISTEN_API] of
	 * them. */
	char bind_address[64], http_address[64];
	uint64_t http_port;
	bool tls_http, tls_verify_https_client;     /* TLS on the API over TCP; with certificates */
	uint64_t health_interval_ms;                /* between two probes; 0: only on request */
	char files[CONFIG_FILES][CONFIG_PATH_SIZE]; /* paths; empty: none */
	uint32_t files_of[CONFIG_PROCESSES]; /* that an enum ipc_peer gets: bits 1 << config_file */
	bool acl_enabled;    /* API requests to this node need a token that the servers know */
	uint64_t acl_ttl_ms; /* how long a token is cached; default 30 s */
	/* How long a token that expires is valid at least and at most; without servers. */
	uint64_t acl_expiration_min_ms, acl_expiration_max_ms;
	uint32_t n_meta;
	struct {
		char key[CONFIG_NAME_SIZE];
		char value[CONFIG_PATH_SIZE];
	} meta[CONFIG_META_MAX];
	uint32_t drivers; /* as in the policy, for the node's attributes */
	uint64_t allow_caps;
	bool allow_host_pid, allow_host_ipc;
	uint32_t allow_privileged, allow_host_userns;
	struct config_devices allow_devices[2];
	uint32_t host_paths; /* bits of enum driver: `volumes` of its containers may be paths of the
				machine, which are in host volumes */
	uint32_t n_host_volumes;
	struct config_host_volume host_volumes[CONFIG_VOLUMES_MAX];
	uint32_t n_csi_plugins; /* as in the policy */
	struct config_csi_plugin csi_plugins[CONFIG_PLUGINS_MAX];
	bool default_pid_host, default_ipc_host; /* exec: modes of a task that sets none */
	uint64_t max_kill_timeout_ms;            /* default 30 s */
	struct config_template template;
	uint64_t csi_call_timeout_ms;                               /* of each try; default 2 min */
	uint64_t gc_interval_ms, gc_disk_percent, gc_inode_percent; /* see alloc_gc.h */
	uint64_t gc_max_allocs, gc_parallel_destroys;
	uint64_t eval_gc_ms, job_gc_ms; /* how long the embedded server keeps old ones */
	uint64_t cpu_total_mhz, memory_total_mb, disk_total_mb, disk_free_mb; /* 0: measured */
	uint64_t reserved_cpu_mhz, reserved_memory_mb, reserved_disk_mb;
	char network_interface[CONFIG_DEVICE_SIZE]; /* empty: the interface of the default route */
	uint32_t n_host_networks;
	struct config_host_network host_networks[CONFIG_NETWORKS_MAX];
	struct config_cni cni; /* as in the policy */
	uint64_t min_dynamic_port, max_dynamic_port;
	struct config_artifact artifact;
	struct config_telemetry telemetry;
	struct config_audit audit;
	struct config_images images;
	struct config_container containers[2];   /* of the drivers docker and podman */
	char reserved_cores[CONFIG_NAME_SIZE];   /* "0-3,8": cores that jobs cannot get */
	char reservable_cores[CONFIG_NAME_SIZE]; /* empty: all cores that are not reserved */
	uint32_t log_store; /* enum exec_log_store: of tasks whose job does not say it */
};

#endif
