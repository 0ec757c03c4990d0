// SPDX-License-Identifier: Apache-2.0
/* host_facts.c: what is true of this machine: kernel, addresses, file systems, how names are
 * looked up. Runs in: supervisor. */
#include "supervisor/node/host_facts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/utf8.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/node/node_state.h"

#define FILE_MAX (64 * 1024)

/* The file's text, or why there is none. */
static int
take_file(const char *path, char **ret)
{
	cleanup_free char *text = NULL;
	ssize_t n = fd_read_file(AT_FDCWD, path, FILE_MAX, &text);

	if (n < 0)
		return str_set(ret, strerrordesc_np((int)-n));
	return str_set(ret, utf8_is_text(text, (size_t)n) ? text : "it is no text");
}

static int
take_kernel(struct host_data *ret)
{
	struct utsname u;

	if (uname(&u) < 0)
		return 0;
	return str_setf(
	    &ret->os, "%s %s %s %s %s", u.machine, u.nodename, u.release, u.sysname, u.version);
}

static int
take_address(const struct node_network *net, const struct node_address *from, struct host_data *ret)
{
	struct host_address *a = list_add(host_address, &ret->network);

	if (!a || str_set(&a->type, str_eq(from->family, "ipv6") ? "IPv6" : "IPv4") < 0 ||
	    str_set(&a->string, from->address) < 0 || str_set(&a->address, from->address) < 0)
		return -ENOMEM;
	return str_set(&a->interface, net->device);
}

static int
take_network(struct sup *sup, struct host_data *ret)
{
	const struct node *node = node_get(sup);
	int r = 0;

	for (size_t i = 0; i < node->node_resources.node_networks.n; i++) {
		const struct node_network *net = &node->node_resources.node_networks.v[i];

		/* One under several names is one. */
		for (size_t k = 0; k < net->addresses.n && r >= 0; k++)
			if (k == 0 ||
			    !str_eq(net->addresses.v[k].address, net->addresses.v[k - 1].address))
				r = take_address(net, &net->addresses.v[k], ret);
	}
	return r;
}

static int
take_environment(struct host_data *ret)
{
	int r = 0;

	for (char **word = environ; word && *word && r >= 0; word++) {
		size_t len = strcspn(*word, "=");
		cleanup_free char *name = strndup(*word, len);

		r = !name ? -ENOMEM
			  : string_map_set(
				&ret->environment, name, (*word)[len] ? *word + len + 1 : "");
	}
	return r;
}

static int
take_disks(struct host_data *ret)
{
	cleanup_done(host_stats) struct host_stats stats;
	int r;

	host_stats_init(&stats);
	r = host_usage_disks(&stats);
	for (size_t i = 0; i < stats.disk_stats.n && r >= 0; i++) {
		const struct host_disk *disk = &stats.disk_stats.v[i];
		struct host_space *space = map_put(host_space, &ret->disk, str(disk->mountpoint));

		if (!space)
			return -ENOMEM;
		space->disk_mb = (int64_t)(disk->size >> 20);
		space->used_mb = (int64_t)(disk->used >> 20);
	}
	return r == -ENOMEM ? r : 0;
}

int
host_facts_fill(struct sup *sup, struct host_data *ret)
{
	int r;

	if ((r = take_kernel(ret)) < 0 || (r = take_network(sup, ret)) < 0 ||
	    (r = take_file("/etc/resolv.conf", &ret->resolv_conf)) < 0 ||
	    (r = take_file("/etc/hosts", &ret->hosts)) < 0 || (r = take_environment(ret)) < 0)
		return r;
	return take_disks(ret);
}
