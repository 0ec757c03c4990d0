// SPDX-License-Identifier: Apache-2.0
/* container_network.c: the network of a container's own, which stands for Docker's default bridge.
 * Runs in: supervisor. */
#include <string.h>

#include "common/sha1.h"
#include "supervisor/driver/container.h"

bool
container_has_network(const struct task_group *group, const struct task *task)
{
	const struct driver_ops *driver = driver_find(str(task->driver));
	const char *mode = driver && driver->containers ? container_text(task, "network_mode") : "";

	return mode ? strcmp(mode, "bridge") == 0 || strcmp(mode, "default") == 0
		    : !group_own_network(group);
}

/* A UUID of version 5 (RFC 9562, section 5.5), so that it cannot be the id of another alloc. */
struct id
container_network_id(const struct id *alloc, const char *task)
{
	uint8_t hash[SHA1_SIZE];
	struct id id;
	struct sha1 s;

	sha1_init(&s);
	sha1_add(&s, alloc->b, sizeof alloc->b);
	sha1_add(&s, task, strlen(task));
	sha1_end(&s, hash);
	memcpy(id.b, hash, sizeof id.b);
	id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x50);
	id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
	return id;
}

/* As Nomad's drivers: podman advertises the address, docker does so only if it is one of IPv6. */
const char *
container_address(const struct task *task, const struct alloc *a, bool *ret_auto)
{
	const struct task_state *s = map_get(task_state, &a->task_states, task->name);
	const struct driver_ops *driver = driver_find(str(task->driver));
	bool ipv6 = s && *str(s->address_ipv6) && container_flag(task, "advertise_ipv6_address");

	if (!s || !*str(s->address))
		return "";
	*ret_auto = ipv6 || driver->id == DRIVER_PODMAN;
	return ipv6 ? s->address_ipv6 : s->address;
}

static int64_t
port_of(const json_t *map, const char *label)
{
	const json_t *value = json_object_get(map, label);
	const char *text = json_string_value(value);

	return text ? port_number(text) : json_integer_value(value);
}

int64_t
container_port_inside(const struct task *task, const char *label)
{
	const json_t *map = driver_config_get(task, "port_map"), *item;
	int64_t port = port_of(map, label);
	size_t i;

	json_array_foreach (map, i, item)
		if (port <= 0)
			port = port_of(item, label);
	return port;
}

bool
container_publishes(const struct task *task, const char *label)
{
	json_t *item;
	size_t i;

	json_array_foreach (driver_config_get(task, "ports"), i, item)
		if (str_eq(json_string_value(item), label))
			return true;
	return container_port_inside(task, label) > 0;
}
