// SPDX-License-Identifier: Apache-2.0
/* node_cni.c: the CNI plugins and networks of this machine, as attributes and networks of the node.
 * Runs in: supervisor. */
#include "supervisor/node/node_cni.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/node/node_attr.h"
#include "supervisor/node/node_network.h"
#include "supervisor/node/node_state.h"

#define LIST_MAX     (1 << 20)
#define NETWORKS_MAX 256
#define DIGITS       "0123456789"
#define AWAITED_MS   5000 /* of the answer: plugins may hang */

static uint64_t asked_ms; /* 0: no answer is outstanding */

/* A version has numbers with dots between them, and may have a suffix after '-' or '+'. */
static bool
is_version(const char *word, size_t len)
{
	const char *at = word + (*word == 'v'), *end = word + len;

	while (at < end && isdigit((unsigned char)*at)) {
		at += strspn(at, DIGITS);
		if (at == end || *at == '-' || *at == '+')
			return at == end || at + 1 < end;
		if (*at++ != '.')
			return false;
	}
	return false;
}

/* Returns the first word that is a version, such as "1.0.0" or "v1.9.1"; NULL: none. The caller
 * frees it. */
static char *
find_version(const char *text)
{
	for (size_t len; *(text += strspn(text, " ")); text += len) {
		len = strcspn(text, " ");
		if (is_version(text, len))
			return mem_printf("%.*s", (int)len, text);
	}
	return NULL;
}

static void
take_plugins(struct node *n, json_t *plugins)
{
	const char *name;
	json_t *value;

	json_object_foreach (plugins, name, value) {
		cleanup_free char *version = find_version(str(json_string_value(value)));
		cleanup_free char *attr = mem_printf("plugins.cni.version.%s", name);

		if (version)
			node_attr(n, attr, version);
	}
}

static void
on_listed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_close int list = fd;
	const void *map = NULL;
	size_t len = 0, i;
	json_t *all = NULL, *name;
	struct node *n = node_of(sup);

	asked_ms = 0;
	if (r < 0)
		log_warn("find the versions of CNI plugins: %s", e->msg);
	else if (fd_memfd_map(list, LIST_MAX, &map, &len) >= 0 && map)
		all = json_loadb(map, len, 0, NULL);
	take_plugins(n, json_object_get(all, "plugins"));
	json_array_foreach (json_object_get(all, "networks"), i, name)
		if (json_string_value(name) && i < NETWORKS_MAX)
			node_network_add_cni(n, json_string_value(name));
	json_decref(all);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	if (all)
		node_changed(sup);
}

void
node_cni_take(struct sup *sup)
{
	if (sup->config->n_servers == 0 || !node_network_has_plugins(sup->config))
		return;
	asked_ms = clock_ms();
	(void)queue_ask(
	    sup, QUEUE_PLUGIN_LIST, &(struct net_plugin_list_req){}, -1, on_listed, NULL);
}

bool
node_cni_is_awaited(void)
{
	return asked_ms != 0 && clock_ms() < asked_ms + AWAITED_MS;
}
