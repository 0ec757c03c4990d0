// SPDX-License-Identifier: Apache-2.0
/* container_sysctl.c: the key sysctl of a container: what its own root sets in its namespaces, and
 * what network-helper sets in its network, over which that root has no privilege. Runs in:
 * supervisor. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/net_sysctl.h"
#include "supervisor/driver/container.h"

/* With network_mode = "none", the network namespace belongs to the container's root. */
static bool
is_of_network(const struct task *task, const char *name)
{
	const char *mode = container_text(task, "network_mode");

	return strncmp(name, "net.", 4) == 0 && !(mode && strcmp(mode, "none") == 0);
}

static int
check_network(const struct task *task, const char *name, const char *value, struct err *e)
{
	const char *mode = container_text(task, "network_mode");

	if (mode && strcmp(mode, "host") == 0)
		return err_say(e, -EINVAL,
		    "task %s: config.sysctl: \"%.60s\" would be for the whole machine with "
		    "network_mode = \"host\": set it on the machine, or use another network",
		    task->name, name);
	if (!net_sysctl_is_allowed(name))
		return err_say(e, -EINVAL,
		    "task %s: config.sysctl: \"%.60s\" cannot be set: jobs can set net.core.*, "
		    "net.unix.*, net.ipv{4,6}.conf.{all,default}.*, and of net.ipv4 what begins "
		    "with "
		    "tcp_, udp_, icmp_, ip_local_ and ip_forward",
		    task->name, name);
	if (!value)
		return err_say(e, -EINVAL,
		    "task %s: config.sysctl: the value of \"%.60s\" cannot have a variable: the "
		    "network is made before these are known",
		    task->name, name);
	return 0;
}

static int
check_sysctl(const struct task *task, const char *name, const char *value, void *arg, struct err *e)
{
	struct spec_writer *spec = arg;

	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-./") != strlen(name) ||
	    strstr(name, ".."))
		return err_say(
		    e, -EINVAL, "task %s: config.sysctl: there is no \"%.60s\"", task->name, name);
	for (const char *c = value; c && *c; c++)
		if (iscntrl((unsigned char)*c) && *c != '\t')
			return err_say(e, -EINVAL,
			    "task %s: config.sysctl: the value of \"%.60s\" is not one line",
			    task->name, name);
	if (is_of_network(task, name))
		return check_network(task, name, value, e);
	if (strncmp(name, "net.", 4) == 0 && container_has_host_ids(task))
		return err_say(e, -EINVAL,
		    "task %s: config.sysctl: \"%.60s\" cannot be set in a container with "
		    "userns_mode = \"host\" and network_mode = \"none\": use another network",
		    task->name, name);
	if (spec)
		container_option(spec, "sysctl", "%s=%s", name, value);
	return 0;
}

int
container_sysctls(const struct task *task, bool evaluated, struct spec_writer *spec, struct err *e)
{
	return container_each(task, "sysctl", evaluated, check_sysctl, spec, e);
}

struct lines {
	char *text;
	size_t size;
};

/* Returns the value of the setting that is in the lines, or NULL. */
static const char *
find_value(const char *lines, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = lines; *at; at = strchr(at, '\n') + 1)
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
	return NULL;
}

static int
add_line(const struct task *task, const char *name, const char *value, void *arg, struct err *e)
{
	struct lines *l = arg;
	size_t at = strlen(l->text), len = value ? strlen(value) : 0;
	const char *before = find_value(l->text, name);

	if (!value || !is_of_network(task, name) ||
	    (before && strncmp(before, value, len) == 0 && before[len] == '\n'))
		return 0;
	if (before)
		return err_say(e, -EINVAL,
		    "task %s: config.sysctl: \"%.60s\" has another value in another task of the "
		    "group, which is in the same network",
		    task->name, name);
	if ((size_t)snprintf(l->text + at, l->size - at, "%s=%s\n", name, value) >= l->size - at)
		return err_say(e, -E2BIG,
		    "task %s: config.sysctl: the settings of the network are longer than %zu bytes",
		    task->name, l->size);
	return 0;
}

int
container_network_sysctls(const struct task *task, char *lines, size_t size, struct err *e)
{
	return container_each(task, "sysctl", false, add_line, &(struct lines){ lines, size }, e);
}
