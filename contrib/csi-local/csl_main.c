// SPDX-License-Identifier: Apache-2.0
/* csl_main.c: a CSI plugin whose volumes are directories and files. Runs in: drover-csi-local. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "contrib/csi-local/csl.h"
#include "contrib/csi-local/csl_busy.h"
#include "contrib/csi-local/csl_grpc.h"
#include "contrib/csi-local/csl_secret.h"
#include "contrib/csi-local/csl_service.h"

#define DRIVER_NAME_BYTES 63 /* the CSI specification's limit */

static char socket_path[108];
static struct csl_arena settings; /* lives as long as the process */

static const char usage[] =
    "usage: drover-csi-local -root DIR [flags]\n"
    "  -root DIR                  directory of the volumes; made if its parent exists\n"
    "  -endpoint SOCKET           unix:///path or /path; default: $CSI_ENDPOINT\n"
    "  -node-id ID                the node id; default: the host's name\n"
    "  -driver-name NAME          default: " CSL_DRIVER_NAME "\n"
    "  -mode MODE                 monolith (default), controller or node\n"
    "  -attach                    volumes are attached to nodes before they are staged\n"
    "  -max-volumes N             volumes that this node can have; default: no limit\n"
    "  -topology KEY=VALUE[,...]  where this node is\n"
    "  -capacity BYTES            what all volumes may have together; default: no limit\n"
    "  -node-expand               nodes take part in every expansion\n"
    "  -require-secret KEY=SHA1   a secret that each call must bring; can be repeated\n"
    "  -log-calls FILE            append each call to FILE, as a line of JSON\n"
    "  -delay MS                  how long calls that mount or unmount take\n";

/* State is durable before each answer, so the process can exit at once; mounts stay for the next
 * plugin. */
static void
on_term(int signo)
{
	(void)signo;
	(void)unlink(socket_path);
	_exit(0);
}

static int
set_endpoint(const char *text, struct err *e)
{
	if (!text)
		return err_say(
		    e, -EINVAL, "no address to listen on: use -endpoint or set CSI_ENDPOINT");
	if (strncmp(text, "unix://", 7) == 0)
		text += 7;
	else if (strncmp(text, "unix:", 5) == 0)
		text += 5;
	if (text[0] != '/')
		return err_say(e, -EINVAL,
		    "the endpoint '%s' is not the absolute path of a unix socket", text);
	if (strlen(text) >= sizeof socket_path)
		return err_set(e, -ENAMETOOLONG, "the endpoint %s", text);
	(void)strcpy(socket_path, text);
	return 0;
}

static int
set_mode(struct csl *c, const char *mode, struct err *e)
{
	c->controller = strcmp(mode, "node") != 0;
	c->node = strcmp(mode, "controller") != 0;
	if (c->controller && c->node && strcmp(mode, "monolith") != 0)
		return err_say(
		    e, -EINVAL, "-mode %s: it must be monolith, controller or node", mode);
	return 0;
}

/* Reads a whole number of at least 0. */
static int
set_number(const char *flag, const char *text, int64_t max, int64_t *ret, struct err *e)
{
	char *end;

	errno = 0;
	*ret = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *ret < 0 || *ret > max)
		return err_say(e, -EINVAL, "-%s %s: it must be a number from 0 to %lld", flag, text,
		    (long long)max);
	return 0;
}

static int
set_topology(struct csl *c, char *text, struct err *e)
{
	char *next, *value;

	for (char *pair = strtok_r(text, ",", &next); pair; pair = strtok_r(NULL, ",", &next)) {
		value = strchr(pair, '=');
		if (!value || value == pair || value[1] == '\0')
			return err_say(
			    e, -EINVAL, "-topology: '%s' is not a key, '=' and a value", pair);
		*value++ = '\0';
		csl_pairs_set(&settings, &c->topology.at, &c->topology.n, pair, value);
	}
	return 0;
}

static int
set_log(struct csl *c, const char *path, struct err *e)
{
	c->log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	return c->log_fd < 0 ? err_set(e, -errno, "-log-calls: open %s", path) : 0;
}

static const struct option options[] = {
	{ "root", required_argument, NULL, 'r' },
	{ "endpoint", required_argument, NULL, 'e' },
	{ "node-id", required_argument, NULL, 'n' },
	{ "driver-name", required_argument, NULL, 'N' },
	{ "mode", required_argument, NULL, 'm' },
	{ "attach", no_argument, NULL, 'a' },
	{ "max-volumes", required_argument, NULL, 'M' },
	{ "topology", required_argument, NULL, 't' },
	{ "capacity", required_argument, NULL, 'c' },
	{ "node-expand", no_argument, NULL, 'x' },
	{ "require-secret", required_argument, NULL, 's' },
	{ "log-calls", required_argument, NULL, 'l' },
	{ "delay", required_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct places {
	const char *root, *endpoint;
};

/* Applies one option. Returns 0, or -EINVAL with *e. */
static int
set_option(struct csl *c, struct places *p, int option, struct err *e)
{
	int64_t number = 0;
	int r = 0;

	switch (option) {
	case 'r':
		p->root = optarg;
		return 0;
	case 'e':
		p->endpoint = optarg;
		return 0;
	case 'n':
		c->node_id = optarg;
		return 0;
	case 'N':
		c->driver_name = optarg;
		return 0;
	case 'm':
		return set_mode(c, optarg, e);
	case 'a':
		c->attach = true;
		return 0;
	case 'M':
		return set_number("max-volumes", optarg, INT32_MAX, &c->max_volumes, e);
	case 't':
		return set_topology(c, optarg, e);
	case 'c':
		return set_number("capacity", optarg, INT64_MAX, &c->capacity_bytes, e);
	case 'x':
		c->node_expand = true;
		return 0;
	case 's':
		return csl_secret_require(&c->secrets, optarg, e);
	case 'l':
		return set_log(c, optarg, e);
	case 'd':
		r = set_number("delay", optarg, 3600000, &number, e);
		c->delay_ms = (unsigned int)number;
		return r;
	default:
		return err_say(e, -EINVAL, "%s", "");
	}
}

static int
check_settings(const struct csl *c, struct err *e)
{
	size_t len = strlen(c->driver_name);

	if (c->node && !name_is_component(c->node_id))
		return err_say(e, -EINVAL,
		    "the node id '%s' is not 1 to 128 letters, digits, '.', '_' or '-', without a "
		    "leading '.': use -node-id",
		    c->node_id);
	if (!name_is_component(c->driver_name) || len > DRIVER_NAME_BYTES)
		return err_say(e, -EINVAL,
		    "the driver name '%s' is not 1 to %d letters, digits, '.', '_' or '-'",
		    c->driver_name, DRIVER_NAME_BYTES);
	return 0;
}

/* Records this node, so that controllers know it. */
static int
save_node(const struct csl *c, struct err *e)
{
	CslNode node = CSL_NODE__INIT;

	node.version = 1;
	node.id = (char *)(uintptr_t)c->node_id;
	node.max_volumes = (uint64_t)c->max_volumes;
	node.topology = c->topology.at;
	node.n_topology = c->topology.n;
	return csl_store_node_save(c->store, &node, e);
}

static int
serve_volumes(struct csl *c, const struct places *p, struct err *e)
{
	struct csl_server *server;
	int r = check_settings(c, e);

	if (r == 0)
		r = set_endpoint(p->endpoint, e);
	if (r == 0)
		r = csl_store_open(
		    p->root, c->controller, c->node ? c->node_id : NULL, &c->store, e);
	if (r == 0 && c->node)
		r = save_node(c, e);
	if (r < 0)
		return r;
	c->busy = csl_busy_new();
	/* Now the lock is ours, so a file at the socket's path is ours too. */
	(void)signal(SIGTERM, on_term);
	(void)signal(SIGINT, on_term);
	r = csl_server_new(socket_path, csl_service_handle, c, &server, e);
	if (r < 0)
		return r;
	log_info("serving volumes of %s on %s", p->root, socket_path);
	csl_server_run(server);
}

int
main(int argc, char **argv)
{
	static char host[256];
	struct places places = { .endpoint = getenv("CSI_ENDPOINT") };
	struct csl c = { .driver_name = CSL_DRIVER_NAME,
		.node_id = host,
		.controller = true,
		.node = true,
		.log_fd = -1 };
	struct err e = { 0 };
	int opt;

	log_init("csi-local", LOG_LEVEL_INFO);
	csl_arena_init(&settings);
	(void)gethostname(host, sizeof host - 1);
	while ((opt = getopt_long_only(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (set_option(&c, &places, opt, &e) < 0) {
			fprintf(stderr, "%s%s%s", e.msg, e.msg[0] ? "\n" : "", usage);
			return 2;
		}
	}
	if (!places.root || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	(void)serve_volumes(&c, &places, &e);
	log_error("%s", e.msg);
	return 1;
}
