/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_mapped.h: maps paths of the API to methods of the servers: RPC() in api_paths.def. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_API_NOMAD_MAPPED_H
#define DROVER_SUPERVISOR_CLUSTER_API_NOMAD_MAPPED_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "supervisor/http/api.h"

/* Adds arguments of the method. Returns 0, or negative with *e to refuse the request. */
typedef int mapped_args(struct api_req *req, json_t *args, struct err *e);

/* Encodes arguments that are not plain JSON for servers. Returns 0, or negative with *e. */
typedef int mapped_encode(struct api_req *req, json_t *args, struct text *ret, struct err *e);

struct mapped {
	const char *method;
	const char *param;   /* name of the argument for the path's parameter; NULL: no parameter */
	const char *member;  /* member of the answer that is shown; NULL: the whole answer */
	const char *missing; /* text of a 404 if that member is nil; NULL: null is the answer */
	mapped_args *args;   /* NULL: none */
	api_handler *fallback; /* handler if no server can be reached; NULL: none */
	api_handler *absent;   /* handler if the servers do not have the method; NULL: an error */
	const char *body;      /* members of the body that become arguments, separated by spaces */
	/* The argument is a list of this name with one element: the body, or a deletion's path
	 * parameter. */
	const char *in_list;
	/* NULL: the arguments are encoded as they are. */
	mapped_encode *encode;
	void (*reply)(struct api_req *req, const void *body,
	    size_t len); /* shows the answer in another way */
	/* For a streaming method: takes over the request. NULL: a plain call. */
	void (*pass)(struct sup *sup, struct api_req *req, const struct mapped *m,
	    const json_t *args, const struct text *body);
	const char *type; /* content type of the frames; NULL: plain text */
	/* The query parameter with the alloc's id. NULL: it is the path's parameter. */
	const char *alloc_query;
	/* Returns true if this agent answers the request itself, by `here`. NULL: never. */
	bool (*is_here)(struct sup *sup, const struct api_req *req);
	api_handler *here;
	/* The mapping of requests for which is_other() returns true. NULL: there is none. */
	const struct mapped *other;
	bool (*is_other)(const struct api_req *req);
};

/* nomad_paths.c: serve_mapped() for the lines of api_paths.def with RPC() or HERE(), else NULL. */
api_handler *nomad_api_handler(unsigned path);
/* nomad_paths.c: the sentence of a 501 for a path that neither this node nor the servers answer. */
const char *nomad_elsewhere(const char *target);
/* nomad_paths.c: the mapping of the request's path. */
const struct mapped *mapped_of(const struct api_req *req);

/* nomad_api.c: the handler of all mapped paths. */
api_handler serve_mapped;
/* Returns true if the servers answer the path, unless this node can. */
bool nomad_api_is_mapped(const struct api_req *req);
/* Answers with an error of the servers, as the API reports it. */
void reply_remote(struct api_req *req, const char *text);
/* nomad_streams.c, nomad_far_exec.c: mapped.pass. */
void pass_stream(struct sup *sup, struct api_req *req, const struct mapped *m, const json_t *args,
    const struct text *body);
void pass_exec(struct sup *sup, struct api_req *req, const struct mapped *m, const json_t *args,
    const struct text *body);
void reply_volume(struct api_req *req, const void *body, size_t len);

/* nomad_args.c */
struct nomad;
/* Builds all arguments; *ret_blocks_ms is the time of a blocking query. Returns 0, or -EINVAL with
 * *e. */
int mapped_get_args(struct nomad *n, struct api_req *req, const struct mapped *m, json_t *args,
    int64_t *ret_blocks_ms, struct err *e);
mapped_args meta_args, self_args, job_args, volumes_args, deregister_args, detach_args, stop_args,
    drain_args, eligibility_args, submission_args, purge_args, all_args, task_args, node_args,
    node_fields_args, token_args, alloc_fields_args, plan_args, csi_list_args, host_list_args,
    csi_secrets_args, snapshots_args, snapshot_args, delete_args, service_args, agent_args,
    versions_args, tag_args, untag_args;

/* nomad_stream_args.c */
mapped_args logs_args, file_args, cat_args, read_at_args, path_args, monitor_args, export_args,
    event_args, exec_args, action_args;
void reply_files(struct api_req *req, const void *body, size_t len);
void reply_file(struct api_req *req, const void *body, size_t len);

/* nomad_encode.c */
mapped_encode encode_plain, encode_job, encode_plan, encode_volumes;

/* nomad_source.c */
/* Returns a register request's Submission as servers have it, a new reference. */
json_t *nomad_source_encode(const json_t *submission);
void reply_submission(struct api_req *req, const void *body, size_t len);

/* nomad_variables.c */
mapped_args variable_args, renew_args;
bool renews_lock(const struct api_req *req);
void reply_variable(struct api_req *req, const void *body, size_t len);
void reply_variables(struct api_req *req, const void *body, size_t len);
void reply_renewal(struct api_req *req, const void *body, size_t len);

/* nomad_keys.c */
void reply_keys(struct api_req *req, const void *body, size_t len);
void reply_discovery(struct api_req *req, const void *body, size_t len);

/* nomad_operator.c: dispatched jobs, operator settings, the token of the request. */
mapped_args dispatch_args, autopilot_args, scheduler_args, rotate_args;
void reply_autopilot(struct api_req *req, const void *body, size_t len);
void reply_health(struct api_req *req, const void *body, size_t len);
void reply_token(struct api_req *req, const void *body, size_t len);
/* Answers for Enterprise paths, and for parsing HCL, which this agent does not do. */
api_handler reply_enterprise, reply_at_servers;

#endif
