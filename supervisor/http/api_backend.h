/* SPDX-License-Identifier: Apache-2.0 */
/* api_backend.h: what the API needs from a source of work: permissions and indexes. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_BACKEND_H
#define DROVER_SUPERVISOR_HTTP_API_BACKEND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/id.h"

struct api_req;
struct sup;

/* Returns the index at which the answer of a request last changed. */
typedef uint64_t api_index(struct sup *sup, const struct api_req *req);

/* The task through whose socket a request came. */
struct api_task {
	struct id alloc;
	const char *name;
};
/* NULL: it came through the control socket. */
const struct api_task *api_task(const struct api_req *req);
/* r is 0 if the token is valid; -EACCES if it is not; -EBADMSG if it is none;
 * -ECANCELED if the agent is ending; otherwise that could not be found out. */
typedef void api_authenticate_cb(struct sup *sup, void *arg, int r, const struct err *e);

/* Callbacks of the engine. Each may be NULL. */
struct api_backend {
	/* The index of the last change, for X-Nomad-Index. NULL: 1. */
	uint64_t (*index)(struct sup *sup);
	/* The index function of a path, for blocking queries (api_wait.h). NULL, or a NULL result:
	 * the path has none. */
	api_index *(*index_of)(struct sup *sup, unsigned path);
	/* Checks the permission: calls api_serve() or answers, now or later. NULL: every client of
	 * the control socket has full access. */
	void (*admit)(struct sup *sup, struct api_req *req);
	/* Checks whether a token is valid at the socket of a task, before admit(): its own
	 * identity, or an ACL token. With task NULL, over TCP: only an ACL token. Calls cb once,
	 * now or later. NULL: neither tasks nor clients over TCP have access. */
	void (*authenticate)(struct sup *sup, const char *token, const struct api_task *task,
	    api_authenticate_cb *cb, void *arg);
	/* For api_permits(). NULL: everything is permitted. */
	bool (*permits)(struct sup *sup, const struct api_req *req, int need, const char *ns);
	/* Adds members to *auth that say whose token the request has, for the audit log: as far as
	 * that is known without asking. Never the token. NULL: nothing is known. */
	void (*describe)(struct sup *sup, const struct api_req *req, json_t *auth);
	/* Returns the sentence of a 501 for a path that is in no table. NULL, or a NULL result: the
	 * answer is 404. */
	const char *(*elsewhere)(const char *target);
};

/* For describe(). */
static inline void
api_describe_token(json_t *auth, const char *accessor, const char *name, const char *type)
{
	(void)json_object_set_new(auth, "accessor_id", json_string(accessor));
	(void)json_object_set_new(auth, "name", json_string(name));
	if (*type)
		(void)json_object_set_new(auth, "type", json_string(type));
}

/* The identity of a task. */
static inline void
api_describe_task(json_t *auth, const char *alloc_id, const char *task)
{
	(void)json_object_set_new(auth, "alloc_id", json_string(alloc_id));
	(void)json_object_set_new(auth, "task", json_string(task));
}

#endif
