// SPDX-License-Identifier: Apache-2.0
/* host_facts.c: collects this machine's kernel, addresses, file systems, environment and resolver
 * files. Runs in: supervisor. */
#include "supervisor/node/host_facts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/node/node_state.h"

#define FILE_MAX (64 * 1024)

/* Sets *ret to the file's text, or to the reason why it cannot be read. */
static void
take_file(const char *path, char **ret)
{
	cleanup_free char *text = NULL;
	ssize_t n = fd_read_file(AT_FDCWD, path, FILE_MAX, &text);

	if (n < 0)
		str_set(ret, strerrordesc_np((int)-n));
	else
		str_set(ret, utf8_is_text(text, (size_t)n) ? text : "it is not UTF-8 text");
}

static void
take_kernel(struct host_data *ret)
{
	struct utsname u;

	if (uname(&u) == 0)
		str_setf(&ret->os, "%s %s %s %s %s", u.machine, u.nodename, u.release, u.sysname,
		    u.version);
}

static void
take_address(const struct node_network *net, const struct node_address *from, struct host_data *ret)
{
	struct host_address *a = list_add(host_address, &ret->network);

	str_set(&a->type, str_eq(from->family, "ipv6") ? "IPv6" : "IPv4");
	str_set(&a->string, from->address);
	str_set(&a->address, from->address);
	str_set(&a->interface, net->device);
}

static void
take_network(struct sup *sup, struct host_data *ret)
{
	const struct node *node = node_get(sup);

	for (size_t i = 0; i < node->node_resources.node_networks.n; i++) {
		const struct node_network *net = &node->node_resources.node_networks.v[i];

		/* An address has one entry for each of its aliases; they are adjacent. */
		for (size_t k = 0; k < net->addresses.n; k++)
			if (k == 0 ||
			    !str_eq(net->addresses.v[k].address, net->addresses.v[k - 1].address))
				take_address(net, &net->addresses.v[k], ret);
	}
}

static void
take_environment(struct host_data *ret)
{
	for (char **word = environ; word && *word; word++) {
		size_t len = strcspn(*word, "=");
		cleanup_free char *name = mem_strndup(*word, len);

		string_map_set(&ret->environment, name, (*word)[len] ? *word + len + 1 : "");
	}
}

static void
take_disks(struct host_data *ret)
{
	cleanup_done(host_stats) struct host_stats stats;

	host_stats_init(&stats);
	host_usage_disks(&stats);
	for (size_t i = 0; i < stats.disk_stats.n; i++) {
		const struct host_disk *disk = &stats.disk_stats.v[i];
		struct host_space *space = map_put(host_space, &ret->disk, str(disk->mountpoint));

		space->disk_mb = (int64_t)(disk->size >> 20);
		space->used_mb = (int64_t)(disk->used >> 20);
	}
}

void
host_facts_fill(struct sup *sup, struct host_data *ret)
{
	take_kernel(ret);
	take_network(sup, ret);
	take_file("/etc/resolv.conf", &ret->resolv_conf);
	take_file("/etc/hosts", &ret->hosts);
	take_environment(ret);
	take_disks(ret);
}
