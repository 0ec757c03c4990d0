// SPDX-License-Identifier: Apache-2.0
/* http_audit.c: makes the entries of the audit log. Their members are those of Nomad's, so that
 * programs that read these understand them; "peer" is drover's own. Runs in: supervisor. */
#include "supervisor/http/http_audit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/walk.h"
#include "supervisor/audit/audit_filter.h"
#include "supervisor/audit/audit_log.h"
#include "supervisor/audit/peer_unit.h"
#include "supervisor/core/journal.h"
#include "supervisor/http/api_backend.h"
#include "supervisor/http/api_origin.h"
#include "supervisor/http/http_req.h"
#include "supervisor/http/tcp_gate.h"

#define ENDPOINT_SIZE 1024 /* bytes; longer paths are cut off */
#define AGENT_SIZE    256
/* Entries of requests that the gate of TCP refuses; more are left out. */
#define REFUSALS_AT_ONCE    20
#define REFUSALS_PER_SECOND 5
#define RECEIVED            "OperationReceived"
#define COMPLETE            "OperationComplete"
#define SIGNAL              "SIGNAL" /* the operation of a signal */
#define CALL                "RPC"    /* of a call by a server */

/* What the entries of one request have in common. */
struct http_audit {
	char endpoint[ENDPOINT_SIZE];
	char error[ERR_MSG_SIZE];
	json_t *payload;
	bool received, completed; /* that entry was written, or is excluded by a filter */
};

/* --- members --- */

static json_t *
text_member(const char *text, size_t max)
{
	char clean[ENDPOINT_SIZE];

	(void)utf8_sanitize(clean, max < sizeof clean ? max : sizeof clean, text, strlen(text));
	return json_string(clean);
}

static json_t *
time_member(int64_t ns)
{
	char text[RFC3339_SIZE];

	time_format(ns, text);
	return json_string(text);
}

static json_t *
id_member(void)
{
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	return json_string(text);
}

/* Who sent it. What is not known of the origin is left out. */
static json_t *
peer_member(const struct api_origin *o)
{
	static const char *const sockets[] = { [API_ORIGIN_SOCKET] = "control",
		[API_ORIGIN_TASK] = "task",
		[API_ORIGIN_TCP] = "tcp" };
	json_t *m = json_pack("{s:s}", "socket", sockets[o->kind]);
	char alloc[ID_UUID_SIZE];

	if (o->pid > 0) {
		struct peer_unit unit = peer_unit_of(o->pid);

		(void)json_object_set_new(m, "uid", json_integer(o->uid));
		(void)json_object_set_new(m, "pid", json_integer(o->pid));
		(void)json_object_set_new(m, "unit", json_string(unit.unit));
		(void)json_object_set_new(m, "session", json_string(unit.session));
	}
	if (o->task) {
		id_to_uuid(&o->task->alloc, alloc);
		(void)json_object_set_new(m, "alloc_id", json_string(alloc));
		(void)json_object_set_new(m, "task", json_string(o->task->name));
	}
	if (o->certificate[0])
		(void)json_object_set_new(m, "certificate", json_string(o->certificate));
	return m;
}

static json_t *
request_member(const struct api_req *req, const char *endpoint)
{
	const char *namespace = api_query(req, "namespace");
	const char *agent = api_header(req, "User-Agent");
	const struct api_origin o = api_origin(req);
	struct utsname host = { 0 };

	(void)uname(&host);
	return json_pack("{s:o, s:o, s:s, s:{s:o}, s:{s:s, s:o}, s:{s:s}, s:o}", "id", id_member(),
	    "operation", text_member(req->method, 32), "endpoint", endpoint, "namespace", "id",
	    text_member(namespace && *namespace ? namespace : "default", AGENT_SIZE),
	    "request_meta", "remote_address", o.address, "user_agent",
	    text_member(agent ?: "", AGENT_SIZE), "node_meta", "name", host.nodename, "peer",
	    peer_member(&o));
}

/* Which token it has, as far as that is known now. */
static void
set_auth(struct api_req *req, json_t *payload)
{
	const struct api_backend *backend = req->sup->api->backend;
	json_t *auth = json_object();

	if (backend->describe)
		backend->describe(req->sup, req, auth);
	(void)json_object_set_new(payload, "auth", auth);
}

/* An error of a request with a body may quote it, so only what its status means is told. */
static json_t *
response_member(const struct api_req *req)
{
	json_t *m = json_pack("{s:i}", "status_code", req->status);
	const char *error = req->audit->error;

	if (!*error || req->body_seen > 0)
		error = MHD_get_reason_phrase_for((unsigned)req->status);
	if (req->status >= 400)
		(void)json_object_set_new(m, "error", text_member(error, ENDPOINT_SIZE));
	return m;
}

/* --- entries --- */

static void
begin(struct api_req *req)
{
	struct http_audit *a = req->audit = mem_new(struct http_audit);

	(void)utf8_sanitize(a->endpoint, sizeof a->endpoint, req->uri, strcspn(req->uri, "?"));
	a->payload = json_pack("{s:o, s:s, s:o, s:i, s:o}", "id", id_member(), "type", "audit",
	    "timestamp", time_member(clock_real_ns()), "version", 1, "request",
	    request_member(req, a->endpoint));
}

/* Returns whether this request may change something, or opens a session: its first entry must not
 * be lost with the machine's power. What is refused at the gate of TCP changes nothing, and its
 * clients must not keep the work loop waiting for the disk. */
static bool
is_change(const struct api_req *req)
{
	bool reads = strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;

	return tcp_gate_permits(req) && (!reads || api_header(req, MHD_HTTP_HEADER_UPGRADE) ||
					    (req->route && req->route->durable));
}

/* Returns whether the entry of a request that the gate of TCP refuses may be written: anybody can
 * send such requests, and fill the disk. */
static bool
may_note_refusal(void)
{
	static uint64_t filled_ms, tokens = REFUSALS_AT_ONCE;
	uint64_t now = clock_ms(), more = (now - filled_ms) * REFUSALS_PER_SECOND / 1000;

	if (more > 0) {
		filled_ms = now;
		tokens = more > REFUSALS_AT_ONCE - tokens ? REFUSALS_AT_ONCE : tokens + more;
	}
	if (tokens == 0)
		return false;
	tokens--;
	return true;
}

/* to_log: an entry that cannot be written goes to the agent's log. */
static int
append(struct sup *sup, json_t *payload, bool sync, bool to_log, struct err *e)
{
	json_t *entry = json_pack("{s:o, s:s, s:O}", "created_at", time_member(clock_real_ns()),
	    "event_type", "audit", "payload", payload);
	char *line = mem_need(json_dumps(entry, JSON_COMPACT));
	int r = audit_log_append(sup->audit, line, strlen(line), sync, e);

	if (r < 0 && to_log)
		journal_warn(JOURNAL_REQUEST, NULL, "missing in the audit log: %s", line);
	json_decref(entry);
	free(line);
	return r;
}

static bool
has_node_leave(const struct api_req *req)
{
	return req->route && req->route->last;
}

/* Returns whether the request goes on without its entry also with "enforced": a node whose disk is
 * full must be able to say so, and to stop its work. */
static bool
is_spared(const struct api_req *req)
{
	return has_node_leave(req) ||
	       (req->route && strcmp(req->route->pattern, "/v1/agent/health") == 0);
}

static int
write_entry(struct api_req *req, const char *stage, struct err *e)
{
	struct http_audit *a = req->audit;
	bool first = strcmp(stage, RECEIVED) == 0;

	if (audit_filter_excludes(&req->sup->config->audit, a->endpoint, stage, req->method))
		return 0;
	set_auth(req, a->payload);
	(void)json_object_set_new(a->payload, "stage", json_string(stage));
	if (!first)
		(void)json_object_set_new(a->payload, "response", response_member(req));
	return append(req->sup, a->payload, first && is_change(req), has_node_leave(req), e);
}

/* Logs that entries cannot be written, once until one can. */
static void
report(struct sup *sup, int r, const struct err *e)
{
	static bool reported;

	if (r < 0 && !reported)
		journal_error(JOURNAL_REQUEST, NULL, "the audit log cannot be written: %s", e->msg);
	else if (r == 0 && reported)
		journal_info(JOURNAL_REQUEST, NULL, "the audit log is written again");
	reported = r < 0;
}

/* Writes an entry. Returns false if the request must not go on without it. */
static bool
add_entry(struct api_req *req, const char *stage)
{
	const struct config_audit *c = &req->sup->config->audit;
	struct err e = { 0 };
	int r = write_entry(req, stage, &e);

	report(req->sup, r, &e);
	if (r == 0 || c->best_effort || is_spared(req))
		return true;
	/* The answer of a change that was made stays. */
	if (strcmp(stage, RECEIVED) == 0 || !is_change(req))
		api_reply_error(req, 500,
		    "refused, because requests are audited and the audit log cannot be written: %s",
		    e.msg);
	return false;
}

/* Writes the only entry of what is no request of the API. Takes over auth and peer. to_log: as for
 * append(). Returns false if it could not be written and the configuration says "enforced". */
static bool
add_only_entry(struct sup *sup, const char *operation, const char *endpoint, const char *namespace,
    json_t *auth, json_t *peer, bool to_log)
{
	const struct config_audit *c = &sup->config->audit;
	struct utsname host = { 0 };
	struct err e = { 0 };
	json_t *payload;
	int r;

	(void)uname(&host);
	payload = json_pack("{s:o, s:s, s:o, s:i, s:o, s:s, s:{s:o, s:s, s:s, s:{s:s}, s:o}}", "id",
	    id_member(), "type", "audit", "timestamp", time_member(clock_real_ns()), "version", 1,
	    "auth", auth, "stage", RECEIVED, "request", "id", id_member(), "operation", operation,
	    "endpoint", endpoint, "node_meta", "name", host.nodename, "peer", peer);
	if (namespace)
		(void)json_object_set_new(json_object_get(payload, "request"), "namespace",
		    json_pack("{s:o}", "id", text_member(namespace, AGENT_SIZE)));
	r = append(sup, payload, true, to_log, &e);
	json_decref(payload);
	report(sup, r, &e);
	return r == 0 || c->best_effort;
}

static bool
is_wanted(const struct sup *sup, const char *operation, const char *endpoint)
{
	return sup->audit &&
	       !audit_filter_excludes(&sup->config->audit, endpoint, RECEIVED, operation);
}

/* --- exported --- */

void
http_audit_signal(struct sup *sup, const char *name, uid_t uid, pid_t pid)
{
	/* A signal has an origin only as far as the kernel says who sent it. */
	const struct api_origin o = { .uid = uid, .pid = pid, .address = "", .certificate = "" };
	json_t *peer;

	if (!is_wanted(sup, SIGNAL, name))
		return;
	peer = peer_member(&o);
	(void)json_object_set_new(peer, "socket", json_string("signal"));
	(void)add_only_entry(sup, SIGNAL, name, NULL, json_object(), peer, true);
}

bool
http_audit_call(struct sup *sup, const struct audit_call *call)
{
	json_t *auth, *peer;

	if (!is_wanted(sup, CALL, call->method))
		return true;
	auth = json_object();
	if (call->describe)
		call->describe(sup, call->token, auth);
	peer = json_pack("{s:s}", "socket", "server");
	if (*str(call->alloc_id))
		(void)json_object_set_new(
		    peer, "alloc_id", text_member(call->alloc_id, ID_UUID_SIZE));
	return add_only_entry(sup, CALL, call->method, call->namespace, auth, peer, false);
}

/* The listener asks once for all clients of health { address }, who cannot change anything. */
static bool
is_audited(const struct api_req *req)
{
	return req->sup->audit && req->client && api_origin(req).kind != API_ORIGIN_HEALTH &&
	       (req->audit || tcp_gate_permits(req) || may_note_refusal());
}

bool
http_audit_receive(struct api_req *req)
{
	if (!is_audited(req) || (req->audit && req->audit->received))
		return true;
	if (!req->audit)
		begin(req);
	req->audit->received = true;
	req->audit->completed = !add_entry(req, RECEIVED); /* it has no last entry either */
	return !req->audit->completed;
}

void
http_audit_complete(struct api_req *req)
{
	if (!is_audited(req) || !http_audit_receive(req) || req->audit->completed)
		return;
	req->audit->completed = true;
	(void)add_entry(req, COMPLETE);
}

void
http_audit_end(struct api_req *req)
{
	struct http_audit *a = req->audit;

	if (!a)
		return;
	if (a->received && !a->completed && req->sup->audit) {
		req->status = 499;
		(void)strcpy(a->error, "the client left before the answer");
		a->completed = true;
		(void)add_entry(req, COMPLETE);
	}
	json_decref(a->payload);
	free(a);
	req->audit = NULL;
}

void
http_audit_note_error(struct api_req *req, const char *text)
{
	if (!is_audited(req))
		return;
	if (!req->audit)
		begin(req);
	(void)utf8_sanitize(req->audit->error, sizeof req->audit->error, text, strlen(text));
}
