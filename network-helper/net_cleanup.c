// SPDX-License-Identifier: Apache-2.0
/* net_cleanup.c: removes a network of an agent that does not run any more. Runs in: a process of
 * its own, as root, which `drover cleanup` starts with the descriptors of a worker. */
#include <stdio.h>
#include <string.h>

#include "network-helper/net.h"

int
net_cleanup(const char *runtime_dir, const char *cni_path, const char *alloc)
{
	static struct config_cni cni;
	struct net_job job = { 0 };
	struct err e = { 0 };

	(void)snprintf(cni.path, sizeof cni.path, "%s", cni_path);
	(void)snprintf(job.alloc, sizeof job.alloc, "%s", alloc);
	net_cni = &cni;
	net_runtime_dir = runtime_dir;
	if (net_drop(-1, &job, NULL, &e) == 0)
		return 0;
	(void)printf("%s", e.msg);
	return 1;
}
