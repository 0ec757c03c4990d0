/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_config.h: what the configuration says, as two records of fixed size: `config` for the
 * unprivileged processes, `policy` for exec-helper and mount-helper. Written once by the launcher's
 * config child into sealed memfds; mapped by the others. All processes are of one build, so the
 * records need no encoding. Strings are NUL-terminated, lists come with a count.
 */
#ifndef DROVER_PROTO_AGENT_CONFIG_H
#define DROVER_PROTO_AGENT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_NAME_SIZE    128
#define CONFIG_PATH_SIZE    256
#define CONFIG_META_MAX     64
#define CONFIG_VOLUMES_MAX  64
#define CONFIG_CHROOT_MAX   64
#define CONFIG_MASKS_MAX    128
#define CONFIG_RANGES_MAX   32
#define CONFIG_SERVERS_MAX  16
#define CONFIG_NETWORKS_MAX 16
#define CONFIG_DEVICE_SIZE  16 /* IFNAMSIZ */
#define CONFIG_CIDR_SIZE    64
#define CONFIG_TLS_FILES    3           /* ca_file, cert_file, key_file */
#define CONFIG_MAGIC        0x64726366u /* "drcf" */
#define POLICY_MAGIC        0x6472706cu /* "drpl" */

enum driver { DRIVER_NONE = 0, DRIVER_RAW_EXEC = 1, DRIVER_EXEC = 2 };

struct config_host_volume {
	char name[CONFIG_NAME_SIZE];
	char path[CONFIG_PATH_SIZE];
	bool read_only;
};

/* What addresses of the node have this name: those in the prefix, of the interface, or both. */
struct config_host_network {
	char name[CONFIG_NAME_SIZE];
	char interface[CONFIG_DEVICE_SIZE]; /* empty: any */
	char cidr[CONFIG_CIDR_SIZE];        /* as written; empty: any, and family 0 */
	uint8_t prefix[16];
	uint32_t prefix_bits;
	int family;
	char reserved_ports[CONFIG_PATH_SIZE]; /* common/port_list.h: no job's there */
};

struct config_range {
	uint32_t low, high; /* both included */
	uint32_t drivers;   /* bit 1 << enum driver: for which of them they are denied */
};

struct agent_policy {
	uint32_t magic, size;
	uint32_t drivers;        /* bit 1 << enum driver: enabled */
	uint32_t drivers_denied; /* by driver.allowlist, driver.denylist; not in `drivers` */
	uint64_t allow_caps;     /* exec: bit per capability that a task may have */
	bool allow_host_pid, allow_host_ipc; /* exec: pid_mode, ipc_mode "host" */
	uint32_t n_denied_uids, n_denied_gids;
	struct config_range denied_uids[CONFIG_RANGES_MAX], denied_gids[CONFIG_RANGES_MAX];
	uint32_t n_host_volumes;
	struct config_host_volume host_volumes[CONFIG_VOLUMES_MAX];
	uint32_t n_chroot_env; /* exec's root: host path and the same or another path inside */
	struct {
		char source[CONFIG_PATH_SIZE];
		char target[CONFIG_PATH_SIZE];
	} chroot_env[CONFIG_CHROOT_MAX];
	uint32_t n_masks; /* paths inside an exec task that are covered */
	char masks[CONFIG_MASKS_MAX][CONFIG_PATH_SIZE];
	char cgroup_parent[CONFIG_PATH_SIZE]; /* empty: the unit's, or /drover */
};

struct agent_config {
	uint32_t magic, size;
	char data_dir[CONFIG_PATH_SIZE]; /* empty: /var/lib/drover */
	char name[CONFIG_NAME_SIZE];     /* of the node; empty: the host's name */
	char region[CONFIG_NAME_SIZE], datacenter[CONFIG_NAME_SIZE];
	char node_class[CONFIG_NAME_SIZE], node_pool[CONFIG_NAME_SIZE];
	char log_level[16];
	uint32_t n_servers; /* none: the local source */
	char servers[CONFIG_SERVERS_MAX][CONFIG_PATH_SIZE];
	bool tls_rpc; /* to the servers */
	bool tls_verify_server_hostname;
	char tls_files[CONFIG_TLS_FILES][CONFIG_PATH_SIZE];
	bool acl_enabled;    /* who asks this node has to show a token that the servers know */
	uint64_t acl_ttl_ms; /* how long what they said of one is believed; default 30 s */
	uint32_t n_meta;
	struct {
		char key[CONFIG_NAME_SIZE];
		char value[CONFIG_PATH_SIZE];
	} meta[CONFIG_META_MAX];
	uint32_t drivers; /* as in the policy, so that the node can say so */
	uint64_t allow_caps;
	bool allow_host_pid, allow_host_ipc;
	uint32_t n_host_volumes;
	struct config_host_volume host_volumes[CONFIG_VOLUMES_MAX];
	bool default_pid_host, default_ipc_host; /* exec: modes of a task that names none */
	uint64_t max_kill_timeout_ms;            /* default 30 s */
	uint64_t gc_interval_ms, gc_disk_percent, gc_inode_percent; /* alloc/alloc_gc.h */
	uint64_t gc_max_allocs, gc_parallel_destroys;
	uint64_t eval_gc_ms, job_gc_ms;       /* source/local: how long it knows what is over */
	uint64_t cpu_total_mhz;               /* 0: measured */
	uint64_t memory_total_mb;             /* 0: measured */
	uint64_t disk_total_mb, disk_free_mb; /* 0: measured */
	uint64_t reserved_cpu_mhz, reserved_memory_mb, reserved_disk_mb;
	char network_interface[CONFIG_DEVICE_SIZE]; /* empty: that of the default route */
	uint32_t n_host_networks;
	struct config_host_network host_networks[CONFIG_NETWORKS_MAX];
	char reserved_ports[CONFIG_PATH_SIZE]; /* at no address any job's */
	uint64_t min_dynamic_port, max_dynamic_port;
	char reserved_cores[CONFIG_NAME_SIZE];   /* "0-3,8": no job's */
	char reservable_cores[CONFIG_NAME_SIZE]; /* empty: all others */
	bool dev;
};

#endif
