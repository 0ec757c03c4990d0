// SPDX-License-Identifier: Apache-2.0
/* nomad_operator.c: paths of the API whose arguments or answers need conversion: dispatched jobs,
 * operator settings, the token of the request. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/cluster/api/nomad_json.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"

/* Jobs. */

/* The payload is base64 in JSON and bytes for servers. */
int
dispatch_args(struct api_req *req, json_t *args, struct err *e)
{
	static const char *const members[] = { "Meta", "IdPrefixTemplate", "Priority" };
	json_t *body = api_body_object(req, e);
	const char *payload = json_string_value(json_object_get(body, "Payload"));
	cleanup_free char *bytes = payload ? mem_alloc(strlen(payload) + 1) : NULL;
	size_t len = 0;

	if (!body)
		return -EINVAL;
	if (bytes && base64_decode(payload, bytes, &len) < 0)
		return err_say(e, -EINVAL, "the Payload is not valid base64");
	if (bytes)
		(void)json_object_set_new(args, "Payload", json_stringn_nocheck(bytes, len));
	for (size_t i = 0; i < ELEMENTSOF(members); i++)
		if (json_object_get(body, members[i]))
			(void)json_object_set(args, members[i], json_object_get(body, members[i]));
	return 0;
}

void
reply_enterprise(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 501, "Nomad Enterprise only endpoint");
}

/* Secrets of tokens do not pass through nodes. */
void
reply_at_servers(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 501,
	    "the servers have the ACL tokens and roles: use the nomad command at a server for "
	    "this");
}

/* Settings. */

static const char *const autopilot_times[] = { "LastContactThreshold", "ServerStabilizationTime" };

/* A duration is a string in the API and nanoseconds for servers. */
static int
times_to_ns(json_t *object, struct err *e)
{
	for (size_t i = 0; i < ELEMENTSOF(autopilot_times); i++) {
		const char *text = json_string_value(json_object_get(object, autopilot_times[i]));
		int64_t ns;

		if (!text)
			continue;
		if (duration_parse(text, &ns, NULL) < 0)
			return err_say(e, -EINVAL, "%s: \"%.32s\" is not a duration",
			    autopilot_times[i], text);
		(void)json_object_set_new(object, autopilot_times[i], json_integer(ns));
	}
	return 0;
}

static void
time_to_text(json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);
	char text[DURATION_SIZE];

	if (!json_is_integer(value))
		return;
	duration_format(json_integer_value(value), text);
	(void)json_object_set_new(object, name, json_string(text));
}

/* Builds {Config: the body, CAS}. */
static int
config_args(struct api_req *req, json_t *args, bool times, struct err *e)
{
	json_t *config = json_copy(api_body_object(req, e));
	uint64_t index = 0;
	int cas = config ? api_query_number(req, "cas", &index, e) : -EINVAL;

	if (cas >= 0 && times && times_to_ns(config, e) < 0)
		cas = -EINVAL;
	if (cas > 0)
		(void)json_object_set_new(config, "ModifyIndex", json_integer((json_int_t)index));
	(void)json_object_set_new(args, "CAS", json_boolean(cas > 0));
	if (config)
		(void)json_object_set_new(args, "Config", config);
	return cas < 0 ? cas : 0;
}

int
autopilot_args(struct api_req *req, json_t *args, struct err *e)
{
	return config_args(req, args, true, e);
}

int
scheduler_args(struct api_req *req, json_t *args, struct err *e)
{
	return config_args(req, args, false, e);
}

int
rotate_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *algorithm = api_query(req, "algo");

	if (algorithm && *algorithm)
		(void)json_object_set_new(args, "Algorithm", json_string(algorithm));
	(void)json_object_set_new(args, "Full", json_boolean(api_query(req, "full") != NULL));
	return 0;
}

json_t *
nomad_take_object(struct api_req *req, const void *body, size_t len)
{
	struct text json = { 0 };
	struct api_meta meta = { 0 };
	struct err e = { 0 };
	json_t *object = NULL;

	if (nomad_to_json(body, len, NULL, &json, &meta, &e) >= 0)
		object = json_loadb(json.text, json.len, 0, NULL);
	text_done(&json);
	api_set_meta(req, &meta);
	if (!object)
		api_reply_error(
		    req, 502, "%s", e.msg[0] ? e.msg : "cannot decode the server's answer");
	return object;
}

void
reply_autopilot(struct api_req *req, const void *body, size_t len)
{
	json_t *config = nomad_take_object(req, body, len);

	for (size_t i = 0; i < ELEMENTSOF(autopilot_times); i++)
		time_to_text(config, autopilot_times[i]);
	if (config)
		api_reply_json(req, config);
}

/* An unhealthy cluster is status 429. */
void
reply_health(struct api_req *req, const void *body, size_t len)
{
	static const char *const states[] = { "none", "alive", "leaving", "left", "failed" };
	json_t *health = nomad_take_object(req, body, len), *server;
	cleanup_free char *text = NULL;
	size_t i;

	json_array_foreach (json_object_get(health, "Servers"), i, server) {
		json_int_t state = json_integer_value(json_object_get(server, "SerfStatus"));

		time_to_text(server, "LastContact");
		if (json_is_integer(json_object_get(server, "SerfStatus")) && state >= 0 &&
		    (size_t)state < ELEMENTSOF(states))
			(void)json_object_set_new(server, "SerfStatus", json_string(states[state]));
	}
	if (!health)
		return;
	if (json_is_true(json_object_get(health, "Healthy"))) {
		api_reply_json(req, health);
		return;
	}
	text = mem_need(json_dumps(health, JSON_COMPACT));
	json_decref(health);
	api_reply_text(req, 429, "application/json", text, strlen(text));
}

/* The client has this token, so its secret may be shown to the client. */
void
reply_token(struct api_req *req, const void *body, size_t len)
{
	json_t *answer = nomad_take_object(req, body, len), *token;

	if (!answer)
		return;
	token = json_incref(json_object_get(answer, "Token"));
	json_decref(answer);
	if (json_is_object(token)) {
		(void)json_object_set_new(token, "SecretID", json_string(api_token(req)));
		api_reply_json(req, token);
		return;
	}
	json_decref(token);
	api_reply_error(req, 404, "ACL token not found");
}
