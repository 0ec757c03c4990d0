// SPDX-License-Identifier: Apache-2.0
/*
 * config_listen.c: the TCP addresses of the agent: health { } with its TLS and token, and how often
 * the agent is probed; ports { http }, addresses { http } and bind_addr. Runs in: the launcher's
 * configuration child, cli.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_reader.h"

#define API_PORT 4646
#define FORM     "an address and a port such as \"127.0.0.1:4648\", \"[::1]:4648\" or \":4648\""

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

/* --- the API --- */

#define UNUSED_PEER(key)                                                                           \
	UNUSED_AS(key, "has no effect: drover listens for neither servers nor clients of a "       \
		       "cluster")

const struct config_attr config_addresses_attrs[] = {
	TEXT("http", http_address),
	UNUSED_PEER("rpc"),
	UNUSED_PEER("serf"),
	{ 0 },
};

const struct config_attr config_ports_attrs[] = {
	PORT("http", http_port),
	UNUSED_PEER("rpc"),
	UNUSED_PEER("serf"),
	{ 0 },
};

bool
config_listen_is_local(const struct config_listen *at)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	memcpy(&in, at->sockaddr, sizeof in);
	memcpy(&in6, at->sockaddr, sizeof in6);
	return at->family == AF_INET ? ntohl(in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
				     : IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

bool
config_find_api_address(struct agent_config *config, struct config_sink *sink)
{
	const char *host = config->http_address[0] ? config->http_address : config->bind_address;
	uint64_t port = config->http_port ? config->http_port : API_PORT;
	struct config_listen at = { 0 };
	char text[ERR_MSG_SIZE];

	config->listen[LISTEN_API] = at;
	if (!config->http_port && !config->http_address[0])
		return false;
	if (strcmp(host, "0.0.0.0") == 0)
		host = ""; /* Nomad means every address, also of IPv6 */
	if (!set_sockaddr(&at, host, (uint16_t)port)) {
		(void)snprintf(text, sizeof text,
		    "%s: expected an address such as \"127.0.0.1\" or \"::1\", found \"%s\"",
		    config->http_address[0] ? "addresses.http" : "bind_addr", host);
		config_say(sink, true, text);
		return false;
	}
	(void)snprintf(
	    at.text, sizeof at.text, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
	config->listen[LISTEN_API] = at;
	return true;
}

const struct config_attr config_health_attrs[] = {
	CALL("address", read_health_address),
	CALL("interval", read_health_interval),
	CALL("token_file", read_health_token),
	BLOCK("tls", health_tls_attrs),
	{ 0 },
};
