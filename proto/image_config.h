/* SPDX-License-Identifier: Apache-2.0 */
/* image_config.h: how container images are fetched and removed, as plugin "docker" says. Runs in:
 * every process. */
#ifndef DROVER_PROTO_IMAGE_CONFIG_H
#define DROVER_PROTO_IMAGE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define IMAGE_HELPER_SIZE 64

struct config_images {
	char auth_helper[IMAGE_HELPER_SIZE]; /* docker-credential-<this>; empty: none */
	uint64_t idle_ms;                    /* the longest time without a byte; default 2 min */
	uint64_t gc_delay_ms;                /* after the last use; default 3 min */
	bool gc;                             /* unused images are removed; default true */
	uint8_t reserved[7];
};

/* Limits and defaults for jobs with containers of one driver: plugin "docker" or "podman". */
struct config_container {
	uint64_t allow_caps; /* bits of capabilities; default: those below */
	uint64_t pids_limit; /* of each container; 0: that of every task */
	uint64_t pull_ms;    /* of a task that does not say it; default 5 min */
};

/* Containers of one driver may have the nodes in the machine's /dev that one of these patterns
 * matches. A pattern is one of a shell, without the "/dev/"; only a slash in it matches a slash. */
struct config_devices {
	uint32_t n;
	char patterns[CONFIG_NODES_MAX][CONFIG_NAME_SIZE];
};

/* Docker's default capabilities without NET_RAW, as Nomad's clients grant them. */
#define CONTAINER_DEFAULT_CAPS                                                                     \
	(CAP_BIT(AUDIT_WRITE) | CAP_BIT(CHOWN) | CAP_BIT(DAC_OVERRIDE) | CAP_BIT(FOWNER) |         \
	    CAP_BIT(FSETID) | CAP_BIT(KILL) | CAP_BIT(MKNOD) | CAP_BIT(NET_BIND_SERVICE) |         \
	    CAP_BIT(SETFCAP) | CAP_BIT(SETGID) | CAP_BIT(SETPCAP) | CAP_BIT(SETUID) |              \
	    CAP_BIT(SYS_CHROOT))
/* A container has no others, whatever the configuration allows: they are Docker's default ones, and
 * count in the container's user namespace only. */
#define CONTAINER_MOST_CAPS (CONTAINER_DEFAULT_CAPS | CAP_BIT(NET_RAW))

#endif
