// SPDX-License-Identifier: Apache-2.0
/* tcp_gate.c: which requests over TCP are looked at. Runs in: supervisor. Asked by: the network,
 * through the listener. */
#include "supervisor/http/tcp_gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "model/engine/containers.h"
#include "supervisor/http/api_paths.h"
#include "supervisor/http/http_req.h"

#define TOKEN_MAX 8192 /* bytes */

/* The permission of each path by name, because this layer does not know what permissions mean. */
static const char *const path_needs[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, ...) #need,
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

/* --- clients --- */

static bool
is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

struct http_tcp *
http_tcp_new(const char *address, const char *certificate)
{
	struct http_tcp *t;

	if (!is_printable(address) || !is_printable(certificate) ||
	    strlen(address) >= sizeof t->address || strlen(certificate) >= sizeof t->certificate)
		return NULL;
	t = mem_new(struct http_tcp);
	t->refs = 1;
	(void)strcpy(t->address, address);
	(void)strcpy(t->certificate, certificate);
	return t;
}

struct http_tcp *
http_tcp_ref(struct http_tcp *t)
{
	t->refs++;
	return t;
}

void
http_tcp_unref(struct http_tcp *t)
{
	if (t && --t->refs == 0)
		free(t);
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
	return req->route && strcmp(path_needs[api_req_path(req)], "ACL_OPEN") == 0;
}

/* Returns whether the request has a token that is to be checked. */
static bool
has_token(const struct api_req *req)
{
	const char *token = str(api_token(req));

	return *token && strlen(token) <= TOKEN_MAX && req->sup->config->acl_enabled &&
	       req->sup->api->backend->authenticate;
}

/* A certificate does not make the token of a task valid here. */
bool
tcp_gate_permits(const struct api_req *req)
{
	bool reads = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;

	if (!req->client->tcp)
		return true;
	if (is_proven(req))
		return !has_token(req) || req->named;
	/* What changes something without a permission does so for whoever asks. */
	return is_open(req) ? reads && !req->route->durable : req->named;
}

void
tcp_gate_refuse(struct api_req *req)
{
	req->refused = true;
	if (is_open(req) && !is_proven(req))
		api_reply_error(req, 403,
		    "Permission denied: over TCP this needs a client certificate "
		    "(tls.verify_https_client): use the control socket");
	else
		api_reply_error(req, 403,
		    "Permission denied: a request over TCP needs a valid ACL token (-token, "
		    "DROVER_TOKEN, or the header X-Nomad-Token)");
}

/* A request whose token is being checked. Its connection stays suspended. */
struct token_check {
	struct api_req *req;
	void (*go_on)(struct api_req *req);
};

static void
on_checked(struct sup *sup, void *arg, int r, const struct err *e)
{
	struct token_check c = *(struct token_check *)arg;

	free(arg);
	if (r == -ECANCELED) /* the request is gone */
		return;
	c.req->named = r == 0;
	if (r == 0 || r == -EACCES || r == -EBADMSG)
		c.go_on(c.req); /* also to be audited */
	else
		api_reply_error(c.req, 503, "the token cannot be checked now: %s", e->msg);
}

void
tcp_gate_check(struct api_req *req, void (*go_on)(struct api_req *))
{
	const struct api_backend *backend = req->sup->api->backend;
	struct token_check *c;

	if (!has_token(req)) {
		go_on(req); /* tcp_gate_permits() decides by the path */
	} else {
		c = mem_new(struct token_check);
		*c = (struct token_check){ req, go_on };
		backend->authenticate(req->sup, api_token(req), NULL, on_checked, c);
	}
}
