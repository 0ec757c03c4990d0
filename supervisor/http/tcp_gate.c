// SPDX-License-Identifier: Apache-2.0
/* tcp_gate.c: which requests over TCP are looked at. Runs in: supervisor. Asked by: the network,
 * through the listener. */
#include "supervisor/http/tcp_gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "model/engine/containers.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/http/http_req.h"

#define TOKEN_MAX 8192 /* bytes */

/* --- clients --- */

static bool
is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Reads "192.0.2.1:4711" or "[2001:db8::1]:4711". One client has a whole /64 of IPv6. All that
 * cannot be read is one client, too. */
static struct in6_addr
read_address(const char *text)
{
	bool is_v6 = *text == '[';
	size_t len = strcspn(text + is_v6, is_v6 ? "]" : ":");
	struct in6_addr from = { 0 };
	char host[INET6_ADDRSTRLEN];

	if (len >= sizeof host)
		return from;
	(void)snprintf(host, sizeof host, "%.*s", (int)len, text + is_v6);
	if (is_v6 && inet_pton(AF_INET6, host, &from) == 1)
		memset(&from.s6_addr[8], 0, 8);
	else if (!is_v6 && inet_pton(AF_INET, host, &from.s6_addr[12]) == 1)
		from.s6_addr[10] = from.s6_addr[11] = 0xff;
	return from;
}

struct http_tcp *
http_tcp_new(uint32_t link, const char *address, const char *certificate)
{
	struct http_tcp *t;

	if (!is_printable(address) || !is_printable(certificate) ||
	    strlen(address) >= sizeof t->address || strlen(certificate) >= sizeof t->certificate)
		return NULL;
	t = mem_new(struct http_tcp);
	t->link = link;
	t->from = read_address(address);
	(void)strcpy(t->address, address);
	(void)strcpy(t->certificate, certificate);
	return t;
}

/* --- requests --- */

/* Returns whether the client has proven itself by a certificate. A name that the listener sends
 * counts only if the configuration asks clients for certificates. */
static bool
is_proven(const struct api_req *req)
{
	const struct agent_config *config = req->sup->config;

	return config->tls_http && config->tls_verify_https_client &&
	       req->client->tcp->certificate[0];
}

/* Returns whether its path needs no permission. */
static bool
is_open(const struct api_req *req)
{
	return req->route && strcmp(api_paths[api_req_path(req)].need, "ACL_OPEN") == 0;
}

/* Returns whether the request has a token that is to be checked. */
static bool
has_token(const struct api_req *req)
{
	const char *token = str(api_token(req));

	return *token && strlen(token) <= TOKEN_MAX && req->sup->config->acl_enabled &&
	       req->sup->api->backend->authenticate;
}

/* A path that changes something and needs no permission makes that change for everybody who can
 * send it a request. So neither tasks nor unproven clients over TCP may use such a path. A
 * certificate does not make the token of a task valid here. */
bool
tcp_gate_permits(const struct api_req *req)
{
	bool reads = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;

	if (req->client->task)
		return !is_open(req) || !req->route->durable;
	if (!req->client->tcp)
		return true;
	if (is_proven(req))
		return !has_token(req) || req->named;
	return is_open(req) ? reads && !req->route->durable : req->named;
}

void
tcp_gate_refuse(struct api_req *req)
{
	req->refused = true;
	if (req->client->task)
		api_reply_error(
		    req, 403, "Permission denied: this is not for tasks: use the control socket");
	else if (is_open(req) && !is_proven(req))
		api_reply_error(req, 403,
		    "Permission denied: over TCP this needs a client certificate "
		    "(tls.verify_https_client): use the control socket");
	else
		api_reply_error(req, 403,
		    "Permission denied: a request over TCP needs a valid ACL token (-token, "
		    "DROVER_TOKEN, or the header X-Nomad-Token)");
}

/* Its connection is not ended any more to make room for one of somebody who is not proven. A new
 * listener uses the numbers of links again. */
static void
note_proven(struct sup *sup, struct http_tcp *t)
{
	const struct lis_proven_ev proven = { .link = t->link };

	if (!t->proven && t->listener == child_generation(sup, IPC_LISTENER))
		child_tell(sup, IPC_LISTENER, LIS_PROVEN_EV, &proven);
	t->proven = true;
}

/* Returns whether the head says that a body follows. */
static bool
has_body(const struct api_req *req)
{
	const char *len = api_header(req, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return (len && strcmp(len, "0") != 0) || api_header(req, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

static void
refuse(struct api_req *req, int status, const char *text)
{
	req->refused = true;
	api_reply_error(req, status, "%s", text);
}

static void
go_on(struct api_req *req)
{
	struct http_tcp *t = req->client->tcp;

	if (req->named || is_proven(req))
		note_proven(req->sup, t);
	else if (has_body(req) && tcp_gate_permits(req))
		refuse(req, 413, "Permission denied: over TCP this request must have no body");
	t->go_on(req);
}

static void
on_checked(struct http_tcp *t, int r, const char *why)
{
	struct api_req *req = t->req;
	char text[ERR_MSG_SIZE + 64];

	req->named = r == 0;
	if (r == -EDQUOT) {
		refuse(req, 429, "too many requests of this address had no valid token");
	} else if (r != 0 && r != -EACCES && r != -EBADMSG) {
		(void)snprintf(text, sizeof text, "the token cannot be checked now: %s", why);
		refuse(req, 503, text);
	}
	go_on(req); /* also to be audited */
}

void
tcp_gate_check(struct api_req *req, void (*on_known)(struct api_req *))
{
	struct http_tcp *t = req->client->tcp;

	t->req = req;
	t->go_on = on_known;
	if (has_token(req))
		tcp_tokens_check(req->sup, t, api_token(req), on_checked);
	else
		go_on(req); /* tcp_gate_permits() decides by the path */
}

void
tcp_gate_forget(struct api_req *req)
{
	if (req->client->tcp)
		tcp_tokens_forget(req->client->tcp);
}
