// SPDX-License-Identifier: Apache-2.0
/* hb_server.c: the list of known servers. Runs in: heartbeat. */
#include "heartbeat/hb_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heartbeat/hb.h"

static void
add_server(struct hb_servers *s, const char *name)
{
	if (!name[0] || s->n == HB_RPC_SERVERS || hb_servers_find(s, name))
		return;
	s->list[s->n] = (struct hb_server){ 0 };
	(void)snprintf(s->list[s->n].name, sizeof s->list[0].name, "%s", name);
	s->n++;
}

static void
shuffle(struct hb_servers *s)
{
	for (size_t i = s->n; i > 1; i--) {
		size_t k = hb_random(i);
		struct hb_server swap = s->list[k];

		s->list[k] = s->list[i - 1];
		s->list[i - 1] = swap;
	}
	s->next = 0;
}

void
hb_servers_from_config(struct hb_servers *s, const struct agent_config *config)
{
	s->n = 0;
	for (uint32_t i = 0; i < config->n_servers; i++)
		add_server(s, config->servers[i]);
	shuffle(s);
}

bool
hb_servers_from_cluster(struct hb_servers *s, const struct hb_rpc_node *node)
{
	bool same = node->n_servers == s->n;

	for (unsigned i = 0; i < node->n_servers && same; i++)
		same = hb_servers_find(s, node->servers[i]) != NULL;
	if (same || node->n_servers == 0)
		return false;
	s->n = 0;
	for (unsigned i = 0; i < node->n_servers; i++)
		add_server(s, node->servers[i]);
	shuffle(s);
	return true;
}

struct hb_server *
hb_servers_find(struct hb_servers *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->list[i].name, name) == 0)
			return &s->list[i];
	return NULL;
}

void
hb_servers_why(const struct hb_servers *s, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < s->n && len < size; i++)
		if (s->list[i].why[0])
			len += (size_t)snprintf(ret + len, size - len, "%s%s: %s", len ? "; " : "",
			    s->list[i].name, s->list[i].why);
	if (len == 0)
		(void)snprintf(ret, size, "no server has answered yet");
}

int
hb_server_split(const char *name, char *ret_host, unsigned *ret_port)
{
	const char *colon = strrchr(name, ':'), *host = name;
	size_t len = strlen(name);
	unsigned long port = HB_SERVER_PORT;
	char *end;

	if (name[0] == '[') {
		const char *close = strchr(name, ']');

		if (!close || (close[1] && close[1] != ':'))
			return -EINVAL;
		host++;
		len = (size_t)(close - host);
		colon = close[1] ? close + 1 : NULL;
	} else if (colon && colon == strchr(name, ':')) {
		len = (size_t)(colon - name);
	} else {
		colon = NULL; /* no port, or an IPv6 address without brackets */
	}
	if (colon) {
		port = strtoul(colon + 1, &end, 10);
		if (end == colon + 1 || *end || port == 0 || port > 65535)
			return -EINVAL;
	}
	if (len == 0 || len >= HB_RPC_ADDR_SIZE)
		return -EINVAL;
	memcpy(ret_host, host, len);
	ret_host[len] = '\0';
	*ret_port = (unsigned)port;
	return 0;
}

int
hb_server_address(const char *host, unsigned port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;

	memset(ret, 0, sizeof *ret);
	if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons((uint16_t)port);
		return 1;
	}
	if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		return 1;
	}
	return 0;
}
