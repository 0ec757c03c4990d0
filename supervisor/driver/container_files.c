// SPDX-License-Identifier: Apache-2.0
/* container_files.c: a container's name, and its /etc/hosts, /etc/hostname and /etc/resolv.conf.
 * Runs in: supervisor. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/driver/container.h"

#define RESOLV_MAX ((size_t)64 << 10)

static void __attribute__((format(printf, 2, 3))) append(char **text, const char *format, ...)
{
	cleanup_free char *before = *text, *more = NULL;
	va_list args;

	va_start(args, format);
	more = mem_vprintf(format, args);
	va_end(args);
	*text = mem_printf("%s%s", before ? before : "", more);
}

/* Appends a line of all texts of a list, or nothing. */
static void
append_list(char **text, const char *word, json_t *list)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		append(text, "%s %s", i == 0 ? word : "", str(json_string_value(item)));
	if (json_array_size(list) > 0)
		append(text, "\n");
}

/* extra_hosts: "NAME:ADDRESS", where the address may have colons. */
static void
add_hosts(const struct task *task, const char *name, struct spec_writer *spec)
{
	cleanup_free char *text =
	    mem_printf("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
		       "fe00::\tip6-localnet\nff00::\tip6-mcastprefix\nff02::1\tip6-allnodes\n"
		       "ff02::2\tip6-allrouters\n127.0.1.1\t%s\n",
		name);
	json_t *item;
	size_t i;

	json_array_foreach (driver_config_get(task, "extra_hosts"), i, item) {
		const char *entry = str(json_string_value(item));
		size_t len = strcspn(entry, ":=");

		append(&text, "%s\t%.*s\n", entry[len] ? entry + len + 1 : "", (int)len, entry);
	}
	container_option(spec, "etc", "hosts:%s", text);
}

/* Without servers of its own, a container asks those of the machine. */
static void
add_resolv_conf(const struct task *task, struct spec_writer *spec)
{
	json_t *servers = driver_config_get(task, "dns_servers") ?: driver_config_get(task, "dns");
	cleanup_free char *text = NULL;
	json_t *item;
	size_t i;

	if (!servers && fd_read_file(AT_FDCWD, "/etc/resolv.conf", RESOLV_MAX, &text) < 0)
		text = NULL;
	json_array_foreach (servers, i, item)
		append(&text, "nameserver %s\n", str(json_string_value(item)));
	append_list(&text, "search", driver_config_get(task, "dns_search_domains"));
	append_list(&text, "options", driver_config_get(task, "dns_options"));
	container_option(spec, "etc", "resolv.conf:%s", str(text));
}

/* A container in the network of the machine has its name, as under Docker; another one the
 * beginning of the alloc's id. */
static void
find_name(const struct task *task, const struct exec_start *req, char ret[65])
{
	const char *name = container_text(task, "hostname");
	char hex[ID_HEX_SIZE];
	struct utsname un;

	id_to_hex(&req->alloc, hex);
	hex[12] = '\0';
	if (!name)
		name = req->net_mode == EXEC_NS_HOST && uname(&un) == 0 ? un.nodename : hex;
	(void)snprintf(ret, 65, "%s", name);
}

void
container_name(const struct task *task, const struct exec_start *req, struct spec_writer *spec)
{
	char name[65];

	find_name(task, req, name);
	container_option(spec, "hostname", "%s", name);
}

void
container_files(const struct task *task, const struct exec_start *req, struct spec_writer *spec)
{
	char name[65];

	find_name(task, req, name);
	container_option(spec, "etc", "hostname:%s\n", name);
	add_hosts(task, name, spec);
	add_resolv_conf(task, spec);
}
