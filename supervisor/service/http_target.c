// SPDX-License-Identifier: Apache-2.0
/* http_target.c: where a check connects, and where a redirect leads. Runs in: supervisor. */
#include "supervisor/service/http_target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/service.h"

#define HTTP_PORT  80
#define HTTPS_PORT 443
#define PORT_MAX   65535

int
check_addr_parse(const char *ip, int64_t port, union check_addr *ret, struct err *e)
{
	char bare[INET6_ADDRSTRLEN];
	size_t len = strlen(ip);

	memset(ret, 0, sizeof *ret);
	if (port < 1 || port > PORT_MAX)
		return err_say(e, -EINVAL, "invalid port %lld", (long long)port);
	if (len >= 2 && len - 2 < sizeof bare && ip[0] == '[' && ip[len - 1] == ']') {
		memcpy(bare, ip + 1, len - 2);
		bare[len - 2] = '\0';
		ip = bare;
	}
	if (inet_pton(AF_INET, ip, &ret->in.sin_addr) == 1) {
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons((uint16_t)port);
		return 0;
	}
	if (inet_pton(AF_INET6, ip, &ret->in6.sin6_addr) == 1) {
		ret->in6.sin6_family = AF_INET6;
		ret->in6.sin6_port = htons((uint16_t)port);
		return 0;
	}
	return err_say(
	    e, -EINVAL, "\"%.100s\" is not an IP address, and checks do not resolve names", ip);
}

socklen_t
check_addr_len(const union check_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof a->in6 : sizeof a->in;
}

void
check_addr_format(const union check_addr *a, char ret[CHECK_ADDR_SIZE])
{
	char ip[INET6_ADDRSTRLEN] = "";

	if (a->sa.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &a->in6.sin6_addr, ip, sizeof ip);
		(void)snprintf(ret, CHECK_ADDR_SIZE, "[%s]:%u", ip, ntohs(a->in6.sin6_port));
	} else {
		(void)inet_ntop(AF_INET, &a->in.sin_addr, ip, sizeof ip);
		(void)snprintf(ret, CHECK_ADDR_SIZE, "%s:%u", ip, ntohs(a->in.sin_port));
	}
}

int
http_target_set_path(struct http_target *t, const char *path, struct err *e)
{
	char made[HTTP_TARGET_MAX];
	size_t n = 0;

	if (*path != '/')
		made[n++] = '/';
	for (; *path && *path != '#'; path++) {
		unsigned char c = (unsigned char)*path;

		if (n + 4 > sizeof made)
			return err_say(
			    e, -EINVAL, "the path is longer than %d bytes", HTTP_TARGET_MAX - 4);
		if (c > ' ' && c < 0x7f)
			made[n++] = (char)c;
		else
			n += (size_t)snprintf(made + n, 4, "%%%02X", c);
	}
	made[n] = '\0';
	memcpy(t->path, made, n + 1);
	return 0;
}

/* Parses "host" or "host:port" from `from` to end. port is the default. */
static int
parse_authority(
    const char *from, const char *end, int64_t port, union check_addr *ret, struct err *e)
{
	char text[128];
	char *colon;

	if ((size_t)(end - from) >= sizeof text)
		return err_say(e, -EINVAL, "redirected to a host whose name has %zu bytes",
		    (size_t)(end - from));
	memcpy(text, from, (size_t)(end - from));
	text[end - from] = '\0';
	colon = strrchr(text, ':');
	if (colon && !strchr(colon, ']')) {
		*colon = '\0';
		port = port_number(colon + 1);
	}
	return check_addr_parse(text, port, ret, e);
}

/* Resolves a path that is relative to that of t. */
static int
follow_relative(struct http_target *t, const char *location, struct err *e)
{
	char joined[2 * HTTP_TARGET_MAX];
	size_t keep = strcspn(t->path, "?");

	if (*location != '?')
		while (keep > 1 && t->path[keep - 1] != '/')
			keep--;
	(void)snprintf(joined, sizeof joined, "%.*s%s", (int)keep, t->path, location);
	return http_target_set_path(t, joined, e);
}

int
http_target_follow(struct http_target *t, const char *location, struct err *e)
{
	const char *authority = NULL, *end;
	struct http_target next = *t;
	int r;

	if (strncasecmp(location, "https://", 8) == 0 || strncasecmp(location, "http://", 7) == 0) {
		authority = strstr(location, "//") + 2;
		next.tls = authority == location + 8;
	} else if (strncmp(location, "//", 2) == 0)
		authority = location + 2;
	else if (strstr(location, "://") && strcspn(location, ":") < strcspn(location, "/?#"))
		return err_say(e, -EINVAL, "redirected to \"%.60s\", which is not http", location);
	if (!authority) {
		r = *location == '/' ? http_target_set_path(&next, location, e)
				     : follow_relative(&next, location, e);
	} else {
		end = authority + strcspn(authority, "/?#");
		r = parse_authority(
		    authority, end, next.tls ? HTTPS_PORT : HTTP_PORT, &next.addr, e);
		if (r == 0)
			r = http_target_set_path(&next, end, e);
	}
	if (r == 0)
		*t = next;
	return r;
}
