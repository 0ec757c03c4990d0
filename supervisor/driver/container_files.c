// SPDX-License-Identifier: Apache-2.0
/* container_files.c: a container's name, and its /etc/hosts, /etc/hostname and /etc/resolv.conf.
 * Runs in: supervisor. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/driver/container.h"

#define HOSTS_MAX    ((size_t)1 << 20) /* larger files of the machine are not used */
#define HOST_GATEWAY "host-gateway"    /* as an address of extra_hosts: that of the machine */

static void __attribute__((format(printf, 2, 3))) append(char **text, const char *format, ...)
{
	cleanup_free char *before = *text, *more = NULL;
	va_list args;

	va_start(args, format);
	more = mem_vprintf(format, args);
	va_end(args);
	*text = mem_printf("%s%s", before ? before : "", more);
}

/* Returns the texts of a key, or of its other name. */
static struct strings
list_of(const struct task *task, const char *key, const char *other)
{
	json_t *list = driver_config_get(task, key), *item;
	struct strings ret = { 0 };
	size_t i;

	if (!list && other)
		list = driver_config_get(task, other);
	json_array_foreach (list, i, item)
		strings_add(&ret, str(json_string_value(item)));
	return ret;
}

/* Reads "NAME:ADDRESS", where the address may have colons. Returns the address, or NULL. */
static const char *
read_host(const char *entry, int *ret_name)
{
	size_t len = strcspn(entry, ":=");
	const char *address = entry[len] ? entry + len + 1 : "";
	uint8_t ip[16];

	*ret_name = (int)len;
	return len > 0 && strcspn(entry, " \t\r\n#") >= len &&
		       (strcmp(address, HOST_GATEWAY) == 0 ||
			   inet_pton(AF_INET, address, ip) == 1 ||
			   inet_pton(AF_INET6, address, ip) == 1)
		   ? address
		   : NULL;
}

int
container_check_hosts(const struct task *task, bool evaluated, struct err *e)
{
	json_t *item;
	size_t i;
	int len;

	json_array_foreach (driver_config_get(task, "extra_hosts"), i, item) {
		const char *entry = str(json_string_value(item));

		if (!driver_value_is_open(item, evaluated) && !read_host(entry, &len))
			return err_say(e, -EINVAL,
			    "task %s: config.extra_hosts: \"%.100s\" is not NAME:ADDRESS, with an "
			    "IP address or " HOST_GATEWAY,
			    task->name, entry);
	}
	return 0;
}

/* The address of the machine: in its own network, where Docker has that of its bridge, too. */
static const char *
find_gateway(const struct task_net *net, const struct exec_start *req)
{
	if (!id_is_zero(&req->network))
		return net->gateway;
	return req->net_mode == EXEC_NS_HOST ? "127.0.0.1" : "";
}

/* As with Docker, a container in the machine's network begins with the machine's file, which has
 * the machine's name. The caller frees it. */
static char *
begin_hosts(const struct task *task, const char *name, const struct task_net *net,
    const struct exec_start *req)
{
	bool own_network = !id_is_zero(&req->network);
	const char *own = own_network ? net->address : "";
	cleanup_free char *machine = NULL;
	char *text;

	if (!own_network && req->net_mode == EXEC_NS_HOST &&
	    fd_read_file(AT_FDCWD, "/etc/hosts", HOSTS_MAX, &machine) >= 0) {
		text = mem_printf("%s\n", machine);
		if (container_text(task, "hostname"))
			append(&text, "127.0.1.1\t%s\n", name);
		return text;
	}
	return mem_printf("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
			  "fe00::0\tip6-localnet\nff00::0\tip6-mcastprefix\n"
			  "ff02::1\tip6-allnodes\nff02::2\tip6-allrouters\n%s\t%s\n",
	    *own ? own : "127.0.1.1", name);
}

static int
add_hosts(const struct task *task, const char *name, const struct task_net *net,
    const struct exec_start *req, struct spec_writer *spec, struct err *e)
{
	cleanup_free char *text = begin_hosts(task, name, net, req);
	json_t *item;
	size_t i;
	int len;

	json_array_foreach (driver_config_get(task, "extra_hosts"), i, item) {
		const char *entry = str(json_string_value(item));
		const char *address = str(read_host(entry, &len));

		if (strcmp(address, HOST_GATEWAY) == 0)
			address = find_gateway(net, req);
		if (!*address)
			return err_say(e, -EINVAL,
			    "task %s: config.extra_hosts: \"%.100s\": the machine's address in "
			    "this "
			    "network is not known, only in networks of mode bridge and host: write "
			    "the address",
			    task->name, entry);
		append(&text, "%s\t%.*s\n", address, len, entry);
	}
	container_option(spec, "etc", "hosts:%s", text);
	return 0;
}

/* A dns block of the group's network comes before the container's own keys, as with clients. */
static void
add_resolv_conf(const struct task *task, const struct task_net *net, const struct exec_start *req,
    struct spec_writer *spec)
{
	struct dns_config own = { .servers = list_of(task, "dns_servers", "dns"),
		.searches = list_of(task, "dns_search_domains", NULL),
		.options = list_of(task, "dns_options", NULL) };
	cleanup_free char *text = NULL;
	bool unused;

	text =
	    resolv_conf_make(net->has_dns ? &net->dns : &own, !id_is_zero(&req->network), &unused);
	container_option(spec, "etc", "resolv.conf:%s", str(text));
	strings_done(&own.servers);
	strings_done(&own.searches);
	strings_done(&own.options);
}

/* A container in the network of the machine has its name, as under Docker; another one that of the
 * group's network, or else the beginning of the alloc's id. */
static void
find_name(
    const struct task *task, const struct task_net *net, const struct exec_start *req, char ret[65])
{
	const char *name = container_text(task, "hostname");
	char hex[ID_HEX_SIZE];
	struct utsname un;

	id_to_hex(&req->alloc, hex);
	hex[12] = '\0';
	if (!name && *net->hostname && id_equal(&req->network, &req->alloc))
		name = net->hostname;
	if (!name)
		name = req->net_mode == EXEC_NS_HOST && id_is_zero(&req->network) && uname(&un) == 0
			   ? un.nodename
			   : hex;
	(void)snprintf(ret, 65, "%s", name);
}

void
container_name(const struct task *task, const struct task_net *net, const struct exec_start *req,
    struct spec_writer *spec)
{
	char name[65];

	find_name(task, net, req, name);
	container_option(spec, "hostname", "%s", name);
}

int
container_files(const struct task *task, const struct task_net *net, const struct exec_start *req,
    struct spec_writer *spec, struct err *e)
{
	char name[65];

	find_name(task, net, req, name);
	container_option(spec, "etc", "hostname:%s\n", name);
	add_resolv_conf(task, net, req, spec);
	return add_hosts(task, name, net, req, spec, e);
}
