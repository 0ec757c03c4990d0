/* SPDX-License-Identifier: Apache-2.0 */
/* nomad.h: a cluster of Nomad servers as a source of work: shared types and functions. The servers
 * decide; this room stores their decisions about this node's allocs and reports the results. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_H

#include "common/clock.h"
#include "supervisor/alloc/client.h"
#include "supervisor/cluster/link/link.h"
#include "supervisor/cluster/rpc/rpc.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/http/api.h"
#include "supervisor/service/service_table.h"
#include "supervisor/source/source_api.h"

struct nomad;
struct nomad_signing;
struct nomad_wait;
struct acl_known;
struct sd_event_source;

/* A job that came with an alloc, and its row. It exists while an alloc refers to it. */
struct nomad_job {
	struct nomad_job *next;
	struct job_ref *ref;
	unsigned n_allocs;
	struct dirty row;
	bool gone;
};

/* sup_alloc.source_data */
struct nomad_alloc {
	struct sup_alloc *sa;
	struct nomad_job *job;
	struct job_ref *runs_by;  /* the job version that its runner uses */
	struct nomad_alloc *next; /* link in the list of pending updates */
	bool pending;             /* it is in the list of pending updates */
	bool sending;             /* it is part of the call in progress */
	bool acked;               /* an update was sent to the servers ... */
	uint64_t acked_digest;    /* ... with this hash */
	uint64_t sending_digest;
	enum client_status acked_status, sending_status;
	unsigned seen;  /* number of the last list that contained it */
	bool removed;   /* the servers have removed it: it is being destroyed */
	bool claimed;   /* one of its volumes may be claimed */
	bool destroyed; /* client_alloc_destroy() was called for it */
	struct nomad_alloc *prev_done, *next_done;
	bool done; /* link in the list of allocs that may be destroyed */
};

/* An alloc that could not be accepted. It is reported to the servers and not requested again. */
struct nomad_invalid {
	struct nomad_invalid *next;
	struct alloc update;
	uint64_t alloc_modify_index;
	bool told, sending;
	unsigned seen; /* number of the last list that contained it */
};

enum watch_state {
	WATCH_OFF,   /* the node is not registered */
	WATCH_LIST,  /* Node.GetClientAllocs is in progress */
	WATCH_PULL,  /* Alloc.GetAllocs is in progress */
	WATCH_WAIT,  /* waits for a timer */
	WATCH_DOUBT, /* waits for a beat before a suspicious list is confirmed */
};

struct nomad {
	struct source base;

	/* nomad_node.c */
	bool registered; /* registered once with this id; durable */
	bool ready;      /* registered since this process started */
	bool denied;     /* the token was refused: the next registration has no token */
	bool unknown;    /* the servers did not know the node, so they may have lost other state */
	char *identity;  /* JWT; NULL: none */
	bool renew_identity;
	struct dirty node_row;
	struct node sent; /* the node as last registered */
	uint64_t register_call, register_at_ms;
	struct sd_event_source *register_timer;
	unsigned register_failures;
	struct text beat;
	uint64_t beats; /* a beat was answered */
	uint64_t beat_ms;
	enum node_eligibility eligibility;
	MODEL_LIST(struct node_event) events;
	uint64_t events_call;
	struct sd_event_source *events_timer;

	/* nomad_watch.c */
	enum watch_state watch;
	uint64_t watch_call, watch_index, watch_asked_ms;
	struct sd_event_source *watch_timer;
	unsigned watch_failures;
	bool watch_fresh;  /* the next list is requested from the leader, with index 0 */
	bool watch_synced; /* a list was processed since this process started */
	bool watch_doubt;  /* the last list lacked running allocs and must be confirmed */
	uint64_t doubt_beats;
	struct rpc_client_allocs_rep list; /* the list in progress: ids to be pulled */
	unsigned list_number;
	size_t wanted_at, wanted_n; /* ids in the current GetAllocs */

	/* nomad_allocs.c */
	struct nomad_job *jobs;
	struct nomad_invalid *invalid;
	struct nomad_alloc *first_done, *last_done;
	unsigned n_done;

	struct nomad_wait *claims;      /* nomad_claims.c */
	struct acl_known *tokens;       /* acl_token.c */
	struct nomad_signing *signings; /* nomad_sign.c */

	/* nomad_services.c */
	struct service_table services;      /* services of allocs */
	struct service_table services_gone; /* services to be deregistered, or being deregistered */
	uint64_t services_call;             /* Upsert */
	struct deferred services_tell;
	struct sd_event_source *services_timer;
	unsigned services_failures;
	size_t services_sent; /* services in that call */
	bool services_single; /* a batch was refused: services are sent one by one */

	/* nomad_update.c */
	struct nomad_alloc *pending;
	uint64_t update_call, update_sent_ms;
	struct sd_event_source *update_timer;
	uint64_t update_due_ms; /* time of the timer; 0: off */
	unsigned update_failures;
};

static inline struct nomad *
nomad_of(struct source *s)
{
	return (struct nomad *)(void *)s;
}

static inline struct nomad *
nomad_of_sup(struct sup *sup)
{
	return nomad_of(sup->source);
}

static inline struct nomad_alloc *
nomad_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}

/* nomad.c */
int64_t nomad_now_ns(void);
/* Returns a delay between base and twice base, doubled for each failure up to max. */
uint64_t nomad_retry_ms(unsigned *failures, uint64_t base_ms, uint64_t max_ms);
/* Calls fn(nomad) once, ms from now. *timer belongs to the caller; an existing timer is moved. */
void nomad_after(struct nomad *n, struct sd_event_source **timer, uint64_t ms,
    int (*fn)(struct sd_event_source *s, uint64_t usec, void *nomad));
const char *nomad_region(const struct nomad *n);
const char *nomad_token(const struct nomad *n);
/* Fills in region and token. If memory is short, they stay empty and the servers refuse the call.
 */
void nomad_query(struct nomad *n, struct rpc_query *q);
void nomad_write(struct nomad *n, struct rpc_write *w);
/* Encodes req and calls link_call(). */
uint64_t nomad_call(struct nomad *n, const char *method, const struct type *type, const void *req,
    unsigned deadline_ms, unsigned flags, link_cb *cb, void *arg);

/* nomad_node.c */
int nomad_node_load(struct nomad *n, struct err *e);
void nomad_node_start(struct nomad *n);
void nomad_node_free(struct nomad *n);
/* Returns true if a server's error says that it does not know this node; then the node is
 * registered again. */
bool nomad_node_check_unknown(struct nomad *n, int r, const struct err *e);
/* Registers the node soon, also if it is unchanged; the index of the answer shows how far the
 * servers' state is. */
void nomad_node_register_again(struct nomad *n);
/* Registers the node again soon, because it has changed. */
void nomad_node_changed(struct nomad *n);
void nomad_node_event(struct nomad *n, const char *subsystem, const char *message, const char *key,
    const char *value);
extern const struct link_events nomad_link_events;

/* nomad_watch.c */
void nomad_watch_start(struct nomad *n);
/* Restarts the lists from index 0, after a node that was unknown to the servers was registered
 * again. */
void nomad_watch_restart(struct nomad *n);
/* Retries delayed lists now, because a call was answered. */
void nomad_watch_wake(struct nomad *n);
void nomad_watch_free(struct nomad *n);

/* nomad_allocs.c */
int nomad_allocs_load(struct nomad *n, struct err *e);
/* To be called after the restore: reports allocs that had ended before this supervisor started,
 * because they have no runner and their last update may not have been sent. */
void nomad_allocs_start(struct nomad *n);
/* Handles one entry of a new list. Returns true if the alloc must be pulled. */
void nomad_allocs_begin_list(struct nomad *n);
bool nomad_alloc_is_news(struct nomad *n, const char *id, uint64_t alloc_modify_index);
/* Returns how many allocs that are wanted here are missing in the list. */
unsigned nomad_allocs_lacking(const struct nomad *n);
/* Adds a new alloc or a newer version; takes over the contents of *a. */
void nomad_alloc_put(struct nomad *n, struct alloc *a);
void nomad_alloc_put_invalid(struct nomad *n, struct alloc *a, const struct err *e);
/* Handles the end of a list: allocs that are not in it were removed by the servers. */
void nomad_allocs_remove_others(struct nomad *n);
void nomad_alloc_updated(struct source *s, struct sup_alloc *sa);
void nomad_alloc_destroyed(struct source *s, struct sup_alloc *sa);
/* Removes the alloc from the node; false if it has not ended or nothing is left. */
bool nomad_alloc_collect(struct source *s, struct sup_alloc *sa);
bool nomad_alloc_collect_oldest(struct source *s);
void nomad_allocs_free(struct nomad *n);

/* nomad_update.c */
void nomad_update_look(struct nomad *n, struct nomad_alloc *na);
void nomad_update_forget(struct nomad *n, struct nomad_alloc *na);
/* Reports all allocs that have not ended again. */
void nomad_update_all(struct nomad *n);
void nomad_update_soon(struct nomad *n);
void nomad_update_free(struct nomad *n);

/* nomad_needs.c: checks whether this node supports the alloc's group. Returns 0, or -EINVAL with a
 * sentence. */
int nomad_check(struct source *s, const struct sup_alloc *sa, struct err *e);

/* nomad_claims.c */
void nomad_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg);
void nomad_claim_cancel(struct source *s, struct sup_alloc *sa);
void nomad_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
/* Sends the claims that waited for the first answered beat. */
void nomad_claims_begin(struct nomad *n);
void nomad_claims_free(struct nomad *n);

/* nomad_services.c */
int nomad_services_load(struct nomad *n, struct err *e);
/* To be called when the client has restored its allocs. */
void nomad_services_start(struct nomad *n);
void nomad_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n);
/* Registers services that the servers do not have, in this turn. */
void nomad_services_soon(struct nomad *n);
/* Registers all services again, after the node was registered or reconnected. */
void nomad_services_all(struct nomad *n);
void nomad_services_free(struct nomad *n);

/* nomad_sign.c */
void nomad_sign(struct source *s, struct sup_alloc *sa, const struct source_token *wanted, size_t n,
    sign_cb *cb, void *arg);
void nomad_sign_cancel(struct source *s, struct sup_alloc *sa);
void nomad_sign_free(struct nomad *n);

/* nomad_paths.c */
const struct api_route *nomad_api_routes(void);

/* nomad_api.c */
/* Returns true if the servers answer the path, unless this node can. */
bool nomad_api_is_mapped(const struct api_req *req);
/* Returns the request's token; NULL: none. */
const char *nomad_api_token(const struct api_req *req);

/* nomad_requests.c */
extern const struct link_method nomad_methods[];

#endif
