// SPDX-License-Identifier: Apache-2.0
/*
 * config_listen.c: health { }: the TCP address of the agent, its TLS and token, and how often the
 * agent is probed. Runs in: the launcher's configuration child, cli.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_reader.h"

#define FORM "an address and a port such as \"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\""

/* Splits "host:port" or "[host]:port". Returns false if it has another form. */
static bool
split_address(const char *text, char host[INET6_ADDRSTRLEN], uint64_t *ret_port)
{
	const char *colon = strrchr(text, ':'), *end = colon;
	bool bracketed = text[0] == '[';

	if (!colon || (bracketed && (end == text || *--end != ']')))
		return false;
	text += bracketed;
	if (end < text || end - text >= INET6_ADDRSTRLEN ||
	    (!bracketed && memchr(text, ':', (size_t)(end - text))))
		return false;
	(void)snprintf(host, INET6_ADDRSTRLEN, "%.*s", (int)(end - text), text);
	colon++;
	return config_take_number(&colon, 65535, ret_port) && !*colon && *ret_port > 0;
}

/* Without a host it is the wildcard of IPv6, which accepts IPv4 as well. */
static bool
set_sockaddr(struct config_listen *at, const char *host, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	_Static_assert(sizeof in6 <= sizeof at->sockaddr, "an address fits");
	if (inet_pton(AF_INET, host, &in.sin_addr) == 1) {
		at->family = AF_INET;
		at->len = sizeof in;
		memcpy(at->sockaddr, &in, sizeof in);
		return true;
	}
	at->family = AF_INET6;
	at->len = sizeof in6;
	if (host[0] && inet_pton(AF_INET6, host, &in6.sin6_addr) != 1)
		return false;
	memcpy(at->sockaddr, &in6, sizeof in6);
	return true;
}

static int
read_health_address(struct config_reader *c, const struct hcl_node *node)
{
	struct config_listen at = { 0 };
	char host[INET6_ADDRSTRLEN];
	uint64_t port;
	int r = config_get_text(c, node, node->key, at.text, sizeof at.text);

	if (r == 0 && at.text[0] &&
	    (!split_address(at.text, host, &port) || !set_sockaddr(&at, host, (uint16_t)port)))
		r = config_fail(
		    c, node->at, "health.address: expected %s, found \"%s\"", FORM, at.text);
	if (r == 0)
		c->config->listen[LISTEN_HEALTH] = at;
	return r;
}

static int
read_health_interval(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1000, &c->config->health_interval_ms);
}

static int
read_health_ca(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_HEALTH_CA);
}

static int
read_health_cert(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_HEALTH_CERT);
}

static int
read_health_key(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_HEALTH_KEY);
}

static int
read_health_token(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_HEALTH_TOKEN);
}

static const struct config_attr health_tls_attrs[] = {
	CALL("ca_file", read_health_ca),
	CALL("cert_file", read_health_cert),
	CALL("key_file", read_health_key),
	{ 0 },
};

const struct config_attr config_health_attrs[] = {
	CALL("address", read_health_address),
	CALL("interval", read_health_interval),
	CALL("token_file", read_health_token),
	BLOCK("tls", health_tls_attrs),
	{ 0 },
};
