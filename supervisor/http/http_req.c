// SPDX-License-Identifier: Apache-2.0
/* http_req.c: accessors for a request's path, query, header and body. Runs in: supervisor. */
#include "supervisor/http/http_req.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"

const char *
api_param(const struct api_req *req, unsigned n)
{
	return n < req->target.n_params ? req->target.params[n] : NULL;
}

const char *
api_query(const struct api_req *req, const char *name)
{
	return api_target_query(&req->target, name);
}

const char *
api_query_nth(const struct api_req *req, const char *name, unsigned n)
{
	for (unsigned i = 0; i < req->target.n_query; i++)
		if (strcmp(req->target.query[i].name, name) == 0 && n-- == 0)
			return req->target.query[i].value;
	return NULL;
}

const char *
api_header(const struct api_req *req, const char *name)
{
	return req->conn ? MHD_lookup_connection_value(req->conn, MHD_HEADER_KIND, name) : NULL;
}

const char *
api_token(const struct api_req *req)
{
	const char *token = api_header(req, "X-Nomad-Token");
	const char *bearer = api_header(req, "Authorization");

	return !token && bearer && strncasecmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 : token;
}

const struct api_task *
api_task(const struct api_req *req)
{
	return req->client ? req->client->from : NULL;
}

bool
api_permits(const struct api_req *req, int need, const char *namespace)
{
	const struct api_backend *backend = req->sup->api->backend;

	return !backend->permits || backend->permits(req->sup, req, need, namespace);
}

struct sup *
api_req_sup(const struct api_req *req)
{
	return req->sup;
}

const struct api_route *
api_req_route(const struct api_req *req)
{
	return req->route;
}

void
api_set_meta(struct api_req *req, const struct api_meta *meta)
{
	req->meta = *meta;
}

const struct api_meta *
api_meta(const struct api_req *req)
{
	return &req->meta;
}

int
api_query_bool(const struct api_req *req, const char *name, bool *ret, struct err *e)
{
	static const char *const yes[] = { "1", "t", "T", "true", "TRUE", "True" };
	static const char *const no[] = { "0", "f", "F", "false", "FALSE", "False" };
	const char *text = api_query(req, name);

	if (!text || !*text)
		return 0;
	for (size_t i = 0; i < ELEMENTSOF(yes); i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*ret = strcmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return err_say(e, -EINVAL, "failed to parse %s field to boolean", name);
}

int
api_query_number(const struct api_req *req, const char *name, uint64_t *ret, struct err *e)
{
	const char *text = api_query(req, name);
	uint64_t number;
	char *end;

	if (!text || !*text)
		return 0;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (*end || errno || !isdigit((unsigned char)*text))
		return err_say(e, -EINVAL, "%s: \"%.32s\" is not a number", name, text);
	*ret = number;
	return 1;
}

unsigned
api_req_path(const struct api_req *req)
{
	return (unsigned)(req->route - req->sup->api->routes);
}

const struct api_backend *
api_backend(struct sup *sup)
{
	return sup->api->backend;
}

uint64_t
api_index_now(struct sup *sup)
{
	const struct api_backend *backend = sup->api->backend;

	return backend->index ? backend->index(sup) : 1;
}

json_t *
api_body(struct api_req *req, struct err *e)
{
	json_error_t je;
	const char *near;

	if (req->json)
		return req->json;
	if (req->body_len == 0) {
		(void)err_say(e, -ENODATA, "the request has no body: JSON was expected");
		return NULL;
	}
	req->json = json_loadb(req->body, req->body_len, JSON_REJECT_DUPLICATES, &je);
	if (req->json)
		return req->json;
	near = strstr(je.text, " near '"); /* a part of the body, perhaps of a secret */
	(void)err_say(e, -EINVAL, "the body is not JSON: line %d, column %d: %.*s", je.line,
	    je.column, near ? (int)(near - je.text) : -1, je.text);
	return NULL;
}

json_t *
api_body_object(struct api_req *req, struct err *e)
{
	json_t *body = api_body(req, e);

	if (!body || json_is_object(body))
		return body;
	(void)err_say(e, -EINVAL, "the body is not a JSON object");
	return NULL;
}
