// SPDX-License-Identifier: Apache-2.0
/* csl_main.c: a CSI plugin whose volumes are directories. Runs in: drover-csi-local. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "contrib/csi-local/csl.h"
#include "contrib/csi-local/csl_grpc.h"
#include "contrib/csi-local/csl_service.h"

static char socket_path[108];

static const char usage[] =
    "usage: drover-csi-local -root DIR [-endpoint SOCKET] [-node-id ID]\n"
    "  -root DIR         directory of the volumes; made if its parent exists\n"
    "  -endpoint SOCKET  unix:///path or /path; default: $CSI_ENDPOINT\n"
    "  -node-id ID       the node id; default: the host's name\n";

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
serve_volumes(struct csl *c, const char *root, const char *endpoint, struct err *e)
{
	struct csl_server *server;
	int r;

	if (strlen(c->node_id) > CSL_NODE_ID_BYTES || c->node_id[0] == '\0')
		return err_say(e, -EINVAL, "the node id has %zu bytes; it must have 1 to %d",
		    strlen(c->node_id), CSL_NODE_ID_BYTES);
	if ((r = set_endpoint(endpoint, e)) < 0 || (r = csl_store_open(root, &c->store, e)) < 0)
		return r;
	/* Now the lock is ours, so a file at the socket's path is ours too. */
	(void)signal(SIGTERM, on_term);
	(void)signal(SIGINT, on_term);
	r = csl_server_new(socket_path, csl_service_handle, c, &server, e);
	if (r < 0)
		return r;
	log_info("serving volumes of %s on %s", root, socket_path);
	csl_server_run(server);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "root", required_argument, NULL, 'r' },
		{ "endpoint", required_argument, NULL, 'e' },
		{ "node-id", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *root = NULL, *endpoint = getenv("CSI_ENDPOINT");
	char host[CSL_NODE_ID_BYTES + 1] = "";
	struct csl c = { .node_id = host };
	struct err e = { 0 };
	int opt;

	log_init("csi-local", LOG_LEVEL_INFO);
	(void)gethostname(host, sizeof host - 1);
	while ((opt = getopt_long_only(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'r')
			root = optarg;
		else if (opt == 'e')
			endpoint = optarg;
		else if (opt == 'n')
			c.node_id = optarg;
		else {
			fputs(usage, opt == 'h' ? stdout : stderr);
			return opt == 'h' ? 0 : 2;
		}
	}
	if (!root || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	(void)serve_volumes(&c, root, endpoint, &e);
	log_error("%s", e.msg);
	return 1;
}
