/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nomad_mapped.h: one path of the API that is one method of the servers: nomad_paths.c's table, and
 * what others have for it. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_API_NOMAD_MAPPED_H
#define DROVER_SUPERVISOR_CLUSTER_API_NOMAD_MAPPED_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "supervisor/http/api.h"

/* Adds what the method needs to its arguments. 0, or negative with *e: the request is refused. */
typedef int mapped_args(struct api_req *req, json_t *args, struct err *e);

/* Of arguments that are no plain JSON to servers: the message. 0, or negative with *e. */
typedef int mapped_encode(struct api_req *req, json_t *args, struct text *ret, struct err *e);

struct mapped {
	const char *http, *pattern;
	const char *method;
	const char *param;     /* the argument that the path's parameter is; NULL: it has none */
	const char *member;    /* of the answer; NULL: all of it */
	const char *missing;   /* when that is nil: 404 with this; NULL: null is the answer */
	mapped_args *args;     /* NULL: none */
	api_handler *fallback; /* without a server; NULL: there is none */
	const char *body;      /* members of the body that are arguments, apart by spaces */
	/* Of the body, or of a deletion's path parameter, which is the only one in the list of this
	 * name. */
	const char *in_list;
	/* NULL: they go as they are. */
	mapped_encode *encode;
	void (*reply)(struct api_req *req, const void *body, size_t len); /* shows it otherwise */
	/* Of a streaming method: takes over the request. NULL: it is a call. */
	void (*pass)(struct sup *sup, struct api_req *req, const struct mapped *m,
	    const json_t *args, const struct text *body);
	const char *type; /* content type of its frames, unless they are plain text */
	/* Does this agent answer it itself, by here? NULL: no. */
	bool (*is_here)(struct sup *sup, const struct api_req *req);
	api_handler *here;
};

/* nomad_paths.c: what the request's path is mapped to. */
const struct mapped *mapped_of(const struct api_req *req);

/* nomad_api.c: the handler of all. */
api_handler serve_mapped;
/* An error of the servers, as the API tells it. */
void reply_remote(struct api_req *req, const char *text);
/* nomad_streams.c, nomad_far_exec.c: mapped.pass. */
void pass_stream(struct sup *sup, struct api_req *req, const struct mapped *m, const json_t *args,
    const struct text *body);
void pass_exec(struct sup *sup, struct api_req *req, const struct mapped *m, const json_t *args,
    const struct text *body);
void reply_volume(struct api_req *req, const void *body, size_t len);

/* nomad_args.c */
struct nomad;
/* All of the arguments; *ret_blocks_ms: how long a server may wait. 0, or -EINVAL with *e. */
int mapped_get_args(struct nomad *n, struct api_req *req, const struct mapped *m, json_t *args,
    int64_t *ret_blocks_ms, struct err *e);
mapped_args meta_args, self_args, job_args, volumes_args, deregister_args, stop_args, drain_args,
    eligibility_args, submission_args, purge_args, all_args, task_args, node_args, node_fields_args,
    token_args, alloc_fields_args, plan_args, csi_list_args, csi_secrets_args, snapshots_args,
    snapshot_args, delete_args, service_args, agent_args;

/* nomad_stream_args.c */
mapped_args logs_args, file_args, cat_args, read_at_args, path_args, monitor_args, export_args,
    event_args, exec_args, action_args;
void reply_files(struct api_req *req, const void *body, size_t len);
void reply_file(struct api_req *req, const void *body, size_t len);

/* nomad_encode.c */
mapped_encode encode_plain, encode_job, encode_plan, encode_volumes;

/* nomad_operator.c: variables, dispatched jobs, the operator's settings, his token. */
mapped_args variable_args, dispatch_args, autopilot_args, scheduler_args, rotate_args;
void reply_variable(struct api_req *req, const void *body, size_t len);
void reply_autopilot(struct api_req *req, const void *body, size_t len);
void reply_health(struct api_req *req, const void *body, size_t len);
void reply_token(struct api_req *req, const void *body, size_t len);
/* What a community version answers, and what the agent would have to do by itself. */
api_handler reply_enterprise, reply_no_parser;

#endif
