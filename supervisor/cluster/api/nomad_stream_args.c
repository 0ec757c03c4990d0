// SPDX-License-Identifier: Apache-2.0
/* nomad_stream_args.c: converts requests of the API to arguments of the servers' streaming methods,
 * and shows file lists of other nodes. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "supervisor/api/api_fs.h"
#include "supervisor/cluster/api/nomad_mapped.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/rpc/rpc_serve.h"

static void
put_text(json_t *args, const char *key, const char *value)
{
	(void)json_object_set_new(args, key, json_string(str(value)));
}

static int
put_bool(
    struct api_req *req, const char *name, bool value, json_t *args, const char *key, struct err *e)
{
	int r = api_query_bool(req, name, &value, e);

	(void)json_object_set_new(args, key, json_boolean(value));
	return r;
}

/* Reads a number; 0 if it is missing. */
static int
put_number(struct api_req *req, const char *name, json_t *args, const char *key, struct err *e)
{
	const char *text = str(api_query(req, name));
	long long n;
	char *end;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (*end || errno || (*text && (*text < '0' || *text > '9')))
		return err_say(e, -EINVAL, "error parsing %s: a number was expected", name);
	(void)json_object_set_new(args, key, json_integer(n));
	return 0;
}

/* Files and logs. */

int
path_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *path = api_query(req, "path");

	put_text(args, "Path", path && *path ? path : "/");
	return 0;
}

static int
one_file(struct api_req *req, json_t *args, struct err *e)
{
	const char *path = str(api_query(req, "path"));

	put_text(args, "Path", path);
	put_text(args, "Origin", "start");
	return *path ? 0 : err_say(e, -EINVAL, "must provide a file name");
}

static int
take_origin(struct api_req *req, json_t *args, struct err *e)
{
	const char *origin = str(api_query(req, "origin"));

	if (*origin && strcmp(origin, "start") != 0 && strcmp(origin, "end") != 0)
		return err_say(e, -EINVAL, "origin must be start or end");
	put_text(args, "Origin", *origin ? origin : "start");
	return 0;
}

int
cat_args(struct api_req *req, json_t *args, struct err *e)
{
	(void)json_object_set_new(args, "PlainText", json_true());
	return one_file(req, args, e);
}

int
read_at_args(struct api_req *req, json_t *args, struct err *e)
{
	if (!*str(api_query(req, "offset")))
		return err_say(e, -EINVAL, "error parsing offset: a number was expected");
	if (put_number(req, "offset", args, "Offset", e) < 0 ||
	    put_number(req, "limit", args, "Limit", e) < 0)
		return -EINVAL;
	return cat_args(req, args, e);
}

int
file_args(struct api_req *req, json_t *args, struct err *e)
{
	if (one_file(req, args, e) < 0 || take_origin(req, args, e) < 0 ||
	    put_number(req, "offset", args, "Offset", e) < 0)
		return -EINVAL;
	return put_bool(req, "follow", true, args, "Follow", e);
}

int
logs_args(struct api_req *req, json_t *args, struct err *e)
{
	put_text(args, "Task", api_query(req, "task"));
	put_text(args, "LogType", api_query(req, "type"));
	if (take_origin(req, args, e) < 0 || put_number(req, "offset", args, "Offset", e) < 0 ||
	    put_bool(req, "follow", false, args, "Follow", e) < 0)
		return -EINVAL;
	return put_bool(req, "plain", false, args, "PlainText", e);
}

void
reply_files(struct api_req *req, const void *body, size_t len)
{
	cleanup_done(rpc_fs_list_rep) struct rpc_fs_list_rep rep;
	struct err e = { 0 };

	rpc_fs_list_rep_init(&rep);
	if (model_from_msgpack(&rpc_fs_list_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &e) < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else
		api_reply_files(req, &rep);
}

void
reply_file(struct api_req *req, const void *body, size_t len)
{
	cleanup_done(rpc_fs_stat_rep) struct rpc_fs_stat_rep rep;
	struct err e = { 0 };

	rpc_fs_stat_rep_init(&rep);
	if (model_from_msgpack(&rpc_fs_stat_rep_type, body, len, &rep, WIRE_MEMORY_MAX, &e) < 0)
		api_reply_error(req, 502, "%s", e.msg);
	else if (!rep.info)
		api_reply_error(req, 404, "the node returned no entry for that file");
	else
		api_reply_model(req, &rpc_file_type, rep.info);
}

/* Logs of agents. */

int
monitor_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *level = api_query(req, "log_level");

	put_text(args, "LogLevel", level && *level ? level : "INFO");
	if (agent_args(req, args, e) < 0 ||
	    put_bool(req, "log_json", false, args, "LogJSON", e) < 0 ||
	    put_bool(req, "log_include_location", false, args, "LogIncludeLocation", e) < 0)
		return -EINVAL;
	return put_bool(req, "plain", false, args, "PlainText", e);
}

int
export_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *since = api_query(req, "logs_since");

	put_text(args, "LogsSince", since && *since ? since : "72h");
	put_text(args, "ServiceName", api_query(req, "service_name"));
	if (agent_args(req, args, e) < 0 ||
	    put_bool(req, "on_disk", false, args, "OnDisk", e) < 0 ||
	    put_bool(req, "follow", false, args, "Follow", e) < 0)
		return -EINVAL;
	return put_bool(req, "plain", false, args, "PlainText", e);
}

/* Events. */

/* "Topic" selects all its events, "Topic:key" those of one key. */
static int
add_topic(json_t *topics, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	cleanup_free char *topic = mem_strndup(text, strcspn(text, ":"));
	json_t *keys;

	if (colon && strchr(colon + 1, ':'))
		return err_say(e, -EINVAL,
		    "Invalid topic query: error parsing topics: Invalid key value pair for topic, "
		    "topic: %.100s",
		    text);
	keys = json_object_get(topics, topic);
	if (!keys) {
		keys = json_array();
		(void)json_object_set_new(topics, topic, keys);
	}
	(void)json_array_append_new(keys, json_string(colon ? colon + 1 : "*"));
	return 0;
}

int
event_args(struct api_req *req, json_t *args, struct err *e)
{
	json_t *topics = json_object();
	const char *topic;

	(void)json_object_set_new(args, "Topics", topics);
	for (unsigned i = 0; (topic = api_query_nth(req, "topic", i)); i++)
		if (add_topic(topics, topic, e) < 0)
			return -EINVAL;
	if (json_object_size(topics) == 0)
		(void)add_topic(topics, "*", e);
	return put_number(req, "index", args, "Index", e);
}

/* Commands. */

int
exec_args(struct api_req *req, json_t *args, struct err *e)
{
	const char *text = api_query(req, "command");
	json_t *words = json_loads(text && *text ? text : "[]", 0, NULL);

	put_text(args, "Task", api_query(req, "task"));
	if (!json_is_array(words)) {
		json_decref(words);
		return err_say(e, -EINVAL, "command is not a JSON list of strings");
	}
	(void)json_object_set_new(args, "Cmd", words);
	return put_bool(req, "tty", false, args, "Tty", e);
}

int
action_args(struct api_req *req, json_t *args, struct err *e)
{
	put_text(args, "Task", api_query(req, "task"));
	put_text(args, "Action", api_query(req, "action"));
	put_text(args, "AllocID", api_query(req, "allocID"));
	return put_bool(req, "tty", false, args, "Tty", e);
}
