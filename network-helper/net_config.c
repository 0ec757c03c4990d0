// SPDX-License-Identifier: Apache-2.0
/* net_config.c: the configurations of CNI networks: the bridge's own, and those in cni_config_dir.
 * Runs in: a worker of network-helper, as root. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/path.h"
#include "network-helper/net.h"

#define FILES_MAX   256
#define PLUGINS_MAX 32

/* The other agent's configuration, so that both can use one bridge and one store of addresses. */
static json_t *
make_bridge(void)
{
	const struct config_cni *c = net_cni;
	json_t *ranges = json_pack("[[{s:s}]]", "subnet", c->subnet);
	json_t *routes = json_pack("[{s:s}]", "dst", "0.0.0.0/0");

	if (c->subnet6[0]) {
		(void)json_array_append_new(ranges, json_pack("[{s:s}]", "subnet", c->subnet6));
		(void)json_array_append_new(routes, json_pack("{s:s}", "dst", "::/0"));
	}
	return json_pack("{s:s, s:s, s:[{s:s}, {s:s, s:s, s:b, s:b, s:b, s:b, s:{s:s, s:o, s:o, "
			 "s:s}}, {s:s, s:s, s:s}, {s:s, s:{s:b}, s:b}]}",
	    "cniVersion", "0.4.0", "name", "nomad", "plugins", "type", "loopback", "type", "bridge",
	    "bridge", c->bridge, "ipMasq", 1, "isGateway", 1, "forceAddress", 1, "hairpinMode",
	    c->hairpin, "ipam", "type", "host-local", "ranges", ranges, "routes", routes, "dataDir",
	    "/var/run/cni", "type", "firewall", "backend", "iptables", "iptablesAdminChainName",
	    "NOMAD-ADMIN", "type", "portmap", "capabilities", "portMappings", 1, "snat", 1);
}

/* A file with one plugin is a list of one. */
static json_t *
make_list(json_t *file)
{
	if (json_is_array(json_object_get(file, "plugins")))
		return json_incref(file);
	return json_pack("{s:O?, s:O?, s:[O]}", "cniVersion", json_object_get(file, "cniVersion"),
	    "name", json_object_get(file, "name"), "plugins", file);
}

static int
check_list(const json_t *list, struct err *e)
{
	const json_t *plugins = json_object_get(list, "plugins"), *plugin;
	const char *version = json_string_value(json_object_get(list, "cniVersion"));
	size_t i, n = json_array_size(plugins);

	if (n < 1 || n > PLUGINS_MAX)
		return err_say(e, -EINVAL, "it must have 1 to %d plugins", PLUGINS_MAX);
	if (!version || strlen(version) > 16)
		return err_say(e, -EINVAL, "it has no cniVersion");
	json_array_foreach (plugins, i, plugin) {
		const char *type = json_string_value(json_object_get(plugin, "type"));

		if (!type || !name_is_component(type))
			return err_say(e, -EINVAL, "its plugin %zu has no valid type", i + 1);
	}
	return 0;
}

/* Returns the list if the file has the network of this name; NULL: of any name. */
static json_t *
load_file(const char *file, const char *name, struct err *e)
{
	char path[2 * CONFIG_PATH_SIZE];
	cleanup_close int at = -1;
	cleanup_free char *text = NULL;
	cleanup_json json_t *json = NULL;
	json_t *list;
	ssize_t n;

	(void)snprintf(path, sizeof path, "%s/%s", net_cni->config_dir, file);
	at = path_open_owned(path, 0, e);
	if (at < 0)
		return NULL;
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", at);
	n = fd_read_file(AT_FDCWD, path, NET_JSON_MAX, &text);
	json = n < 0 ? NULL : json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	list = json_is_object(json) ? make_list(json) : NULL;
	if (!list)
		(void)err_say(e, -EBADMSG, "%s/%s has no readable JSON", net_cni->config_dir, file);
	else if (!name || strcmp(json_string_value(json_object_get(list, "name")) ?: "", name) == 0)
		return list;
	json_decref(list);
	return NULL;
}

static int
is_config(const struct dirent *d)
{
	const char *dot = strrchr(d->d_name, '.');

	return dot && dot != d->d_name &&
	       (strcmp(dot, ".conf") == 0 || strcmp(dot, ".conflist") == 0 ||
		   strcmp(dot, ".json") == 0);
}

/* Calls fn for each file, in the order of their names. Returns 0 or -errno. */
static int
each_file(void (*fn)(const char *file, void *arg), void *arg)
{
	struct dirent **files;
	int n = scandir(net_cni->config_dir, &files, is_config, alphasort);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (i < FILES_MAX)
			fn(files[i]->d_name, arg);
		free(files[i]);
	}
	free(files);
	return 0;
}

struct search {
	const char *name;
	json_t *found;
	struct err why;
};

static void
look_in_file(const char *file, void *arg)
{
	struct search *s = arg;

	if (!s->found)
		s->found = load_file(file, s->name, &s->why);
}

/* The first file, by name, that has the network. */
static json_t *
find_network(const char *name, struct err *e)
{
	struct search s = { .name = name };
	int r = each_file(look_in_file, &s);

	if (r < 0)
		(void)err_set(&s.why, r, "read %s", net_cni->config_dir);
	if (!s.found)
		(void)err_say(e, -ENOENT, "%s has no CNI network \"%s\"%s%s", net_cni->config_dir,
		    name, s.why.code ? ": " : "", s.why.msg);
	return s.found;
}

static void
add_name(const char *file, void *arg)
{
	struct err why = { 0 };
	cleanup_json json_t *list = load_file(file, NULL, &why);

	if (list && check_list(list, &why) == 0)
		(void)json_array_append(arg, json_object_get(list, "name"));
}

json_t *
net_config_names(void)
{
	json_t *names = json_array();

	(void)each_file(add_name, names);
	return names;
}

json_t *
net_config_load(const struct net_job *job, struct err *e)
{
	json_t *list = job->kind == NET_KIND_BRIDGE ? make_bridge() : find_network(job->name, e);
	struct err why = { 0 };

	if (list && check_list(list, &why) == 0)
		return list;
	if (list)
		(void)err_say(e, why.code, "the configuration of network \"%s\" cannot be used: %s",
		    job->name, why.msg);
	else if (!e->code)
		(void)err_say(e, -ENOMEM, "make the configuration of the bridge");
	json_decref(list);
	return NULL;
}
