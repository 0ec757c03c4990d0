// SPDX-License-Identifier: Apache-2.0
/* config_defaults.c: the configuration without any file. Runs in: the launcher and its
 * configuration child, cli. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/privs.h"
#include "config/config_reader.h"

int
policy_mask_add(struct agent_policy *policy, const char *path)
{
	if (strlen(path) >= CONFIG_PATH_SIZE)
		return -ENAMETOOLONG;
	for (uint32_t i = 0; i < policy->n_masks; i++)
		if (strcmp(policy->masks[i], path) == 0)
			return 0;
	if (policy->n_masks == CONFIG_MASKS_MAX)
		return -ENOSPC;
	(void)strcpy(policy->masks[policy->n_masks++], path);
	return 0;
}

static void
default_policy(struct agent_policy *policy, bool dev)
{
	static const char *const chroot[] = { "/bin", "/etc", "/lib", "/lib32", "/lib64",
		"/run/resolvconf", "/run/systemd/resolve", "/sbin", "/usr" };
	static const char *const masks[] = { "/etc/shadow", "/etc/shadow-", "/etc/gshadow",
		"/etc/gshadow-", "/etc/ssl/private", "/etc/drover" };

	*policy = (struct agent_policy){ .magic = POLICY_MAGIC,
		.size = sizeof *policy,
		/* Where the plugins of other agents are, then where Debian has them. */
		.cni = { .path = CNI_PATH_DEFAULT,
		    .config_dir = "/opt/cni/config",
		    .bridge = "nomad",
		    .subnet = "172.26.64.0/20" } };
	policy->n_denied_users = 1;
	(void)strcpy(policy->denied_users[0], "root");
	policy->checked_drivers = DRIVER_BIT(DRIVER_EXEC);
	policy->drivers = DRIVER_BIT(DRIVER_EXEC);
	/* Servers would place jobs here whose keys the drivers of containers refuse. */
	if (dev)
		policy->drivers |= DRIVER_BIT(DRIVER_RAW_EXEC) | DRIVER_BIT(DRIVER_DOCKER) |
				   DRIVER_BIT(DRIVER_PODMAN);
	/* Every exec task has these (exec_policy.c). PRIVSEP.md, "Capabilities of exec tasks", says
	 * what granting others means. */
	policy->allow_caps = CAP_BIT(AUDIT_WRITE) | CAP_BIT(KILL) | CAP_BIT(NET_BIND_SERVICE);
	/* What other agents grant by default, and SYS_ADMIN for CSI plugins: with -dev, raw_exec
	 * tasks are root anyway. */
	if (dev)
		policy->allow_caps |= CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER) |
				      CAP_BIT(FSETID) | CAP_BIT(MKNOD) | CAP_BIT(SETFCAP) |
				      CAP_BIT(SETGID) | CAP_BIT(SETPCAP) | CAP_BIT(SETUID) |
				      CAP_BIT(SYS_CHROOT) | CAP_BIT(SYS_ADMIN);
	for (size_t i = 0; i < ELEMENTSOF(chroot); i++) {
		(void)strcpy(policy->chroot_env[i].source, chroot[i]);
		(void)strcpy(policy->chroot_env[i].target, chroot[i]);
	}
	policy->n_chroot_env = ELEMENTSOF(chroot);
	for (size_t i = 0; i < ELEMENTSOF(masks); i++)
		(void)policy_mask_add(policy, masks[i]);
}

#define CONTAINER_DEFAULTS                                                                         \
	{                                                                                          \
		.allow_caps = CONTAINER_DEFAULT_CAPS, .pull_ms = 300000                            \
	}

void
config_defaults(struct agent_config *config, struct agent_policy *policy, bool dev)
{
	default_policy(policy, dev);
	*config = (struct agent_config){
		.magic = CONFIG_MAGIC,
		.size = sizeof *config,
		.runtime_dir = "/run/drover",
		.region = "global",
		.datacenter = "dc1",
		.node_pool = "default",
		.log_level = "info",
		.drivers = policy->drivers,
		.allow_caps = policy->allow_caps,
		.cni = policy->cni,
		.max_kill_timeout_ms = 30000,
		.template.wait_min_ms = 5000,
		.template.wait_max_ms = 240000,
		.template.bounds_max_ms = UINT64_MAX,
		.csi_call_timeout_ms = 120000,
		.telemetry = { .allocs = dev,
		    .node = dev,
		    .prometheus = true,
		    .filter_default = true,
		    .alloc_meta = dev,
		    .interval_ms = 10000 },
		.audit = { .mode = 0600, .rotate_bytes = 100000000, .rotate_ms = 24 * 3600000 },
		.min_dynamic_port = 20000,
		.max_dynamic_port = 32000,
		.images = { .idle_ms = 120000, .gc_delay_ms = 180000, .gc = true },
		.containers = { CONTAINER_DEFAULTS, CONTAINER_DEFAULTS },
		.artifact = { .http_ms = 1800000,
		    .git_ms = 1800000,
		    .s3_ms = 1800000,
		    .http_bytes = 100000000000,
		    .unpack_bytes = 100000000000,
		    .unpack_files = 4096 },
		.ephemeral_limit_ms = 300000,
		.acl_ttl_ms = 30000,
		.acl_expiration_min_ms = 60000,
		.acl_expiration_max_ms = 86400000,
		.drain_deadline_ms = 3600000,
		.gc_interval_ms = dev ? 600000 : 60000,
		.gc_disk_percent = dev ? 99 : 80,
		.gc_inode_percent = dev ? 99 : 70,
		.gc_max_allocs = 50,
		.gc_parallel_destroys = 2,
		.eval_gc_ms = 24 * 3600000,
		.job_gc_ms = 4 * 3600000,
		.dev = dev,
	};
}
