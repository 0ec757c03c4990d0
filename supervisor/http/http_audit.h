/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_audit.h: the entries of requests in the audit log: one before anything is done
 * (OperationReceived), one before the answer is sent (OperationComplete). Entries have no header,
 * no query and no body of a request, and no body of an answer, so no secret. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HTTP_HTTP_AUDIT_H
#define DROVER_SUPERVISOR_HTTP_HTTP_AUDIT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct api_req;
struct sup;

/* Writes the first entry of a request whose route was found. Returns false if it could not be
 * written and the configuration says "enforced": then the request was answered, and nothing may be
 * done. Requests for the node's health, and those that have it land or retire, go on; of the latter
 * the agent's log has the entry. */
bool http_audit_receive(struct api_req *req);
/* Writes the last entry of a request whose answer is in req, and the first if there is none yet. If
 * they cannot be written, "enforced" replaces the answer, unless the request has changed something:
 * then its client must get to know. */
void http_audit_complete(struct api_req *req);
/* The request ends. If its client left before the answer, the last entry says so. */
void http_audit_end(struct api_req *req);
/* Remembers the text of an error for the last entry. */
void http_audit_note_error(struct api_req *req, const char *text);
/* Writes the only entry of a signal that has the node land or retire, with the sender that the
 * kernel names; to the agent's log if it cannot be written. */
void http_audit_signal(struct sup *sup, const char *name, uid_t uid, pid_t pid);

/* A call by a server, for one of its users. */
struct audit_call {
	const char *method, *namespace;
	const char *alloc_id; /* NULL: it is not about an alloc */
	const char *token;    /* never written */
	void (*describe)(struct sup *sup, const char *token, json_t *auth); /* NULL: not known */
};
/* Writes the only entry of the call. Returns false if it could not be written and the configuration
 * says "enforced": then the call is refused. */
bool http_audit_call(struct sup *sup, const struct audit_call *call);

#endif
