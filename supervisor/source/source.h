/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h: where work comes from, as the node sees it. Two implementations: server/ (a one-node
 * server in this process) and cluster/ (real servers). Only sup_main.c knows which one it is. Runs
 * in: supervisor.
 *
 * What it drives is in alloc/client.h; what that tells it is alloc_updated() and alloc_destroyed().
 * What it adds to the API is in source_api.h.
 */
#ifndef DROVER_SUPERVISOR_SOURCE_SOURCE_H
#define DROVER_SUPERVISOR_SOURCE_SOURCE_H

#include "model/job.h"
#include "model/volume.h"
#include "supervisor/core/sup.h"

struct alloc;
struct causes;
struct service_registration;
struct source;
struct source_api;
struct sup_alloc;

/* In Details of the Killing event of a task that its executor stopped: the limit ("30s"). The
 * source replaces such allocs. */
#define EVENT_DETAIL_LEASE "stop_after_client_disconnect"

/* The answer to a claim: r 0 with the volume (valid in this callback), or negative with *e, the
 * sentence for the event. */
typedef void claim_cb(
    struct sup *sup, void *arg, int r, const struct csi_volume *volume, const struct err *e);

/* A token for a task: task and name are the caller's and outlive the call, the rest is the answer.
 */
struct source_token {
	const char *task, *name; /* of one of its identities */
	const char *jwt;
	int64_t expires_ns; /* CLOCK_REALTIME of who has signed it; 0: never */
};

/* r 0: all of them, valid in this callback. -EKEYREJECTED: there will be none, *e says why;
 * anything else may be asked again. */
typedef void sign_cb(struct sup *sup, void *arg, int r, const struct source_token *tokens, size_t n,
    const struct err *e);

struct source_ops {
	const char *name;
	/* Wants to know of every service alloc whether it is healthy, for drains; else only of
	 * those with a deployment. alloc_updated() tells. */
	bool health_of_all;
	/* Is an alloc of which a task has failed lost instead? NULL: that is for servers to say. */
	bool (*is_lost)(const struct alloc *a);
	/* Reads what it has out of state.db into the alloc table, before the client restores. */
	int (*load)(struct source *s, struct err *e);
	/* The client has restored its allocs: begin to give work. */
	int (*start)(struct source *s, struct err *e);
	/* The client's fields of sa changed: status, task states. Called in the turn of the change.
	 */
	void (*alloc_updated)(struct source *s, struct sup_alloc *sa);
	/* Its row has been written, with what either side changed. NULL: nobody wants to know. */
	void (*alloc_written)(struct source *s, struct sup_alloc *sa);
	/* Nothing of sa is on the node any more (directories, mounts, runs). */
	void (*alloc_destroyed)(struct source *s, struct sup_alloc *sa);
	/* Removes from the node what is left of an alloc that is over; false: it is not. And of the
	 * oldest one; false: there is none. */
	bool (*collect)(struct source *s, struct sup_alloc *sa);
	bool (*collect_oldest)(struct source *s);
	/* Node attributes, drivers, plugins or resources changed. */
	void (*node_updated)(struct source *s);
	/* What of the alloc this node cannot do, asked before anything of it begins: 0 or -EINVAL
	 * with the sentence. NULL: the source places only what can be done. */
	int (*check)(struct source *s, const struct sup_alloc *sa, struct err *e);
	/* Takes the claim that request vr of sa's group needs; the callback may come within the
	 * call. */
	void (*claim)(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
	    claim_cb *cb, void *arg);
	/* Nobody waits for sa's claim any more: the callback comes now, with -ECANCELED. NULL:
	 * claims do not take time. */
	void (*claim_cancel)(struct source *s, struct sup_alloc *sa);
	/* Gives it back: everything of it is unmounted here. Durable in this turn. */
	void (*release)(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
	/*
	 * These are the registered services of a workload of sa now (its group's, or a task's);
	 * others of it are no more. Without a workload: all of sa, and n is 0. v lives until the
	 * return.
	 */
	void (*services_set)(struct source *s, struct sup_alloc *sa, const char *workload,
	    const struct service_registration *v, size_t n);
	/* Has tokens signed for tasks of sa, one call per alloc at a time; the callback does not
	 * come within it. Whoever validates jobs so that none is asked for has neither of these. */
	void (*sign)(struct source *s, struct sup_alloc *sa, const struct source_token *wanted,
	    size_t n, sign_cb *cb, void *arg);
	/* The callback is not called. */
	void (*sign_cancel)(struct source *s, struct sup_alloc *sa);
	/* No new allocs are placed while on; does not stop any by itself. */
	void (*set_drain)(struct source *s, bool on);
	/* Adds what becomes of an alloc that has ended, or is to (alloc_why.h). NULL: only what the
	 * alloc itself says is known. */
	void (*why)(struct source *s, struct sup_alloc *sa, struct causes *c);
	void (*free)(struct source *s);
};

struct source {
	const struct source_ops *ops;
	const struct source_api *api; /* source_api.h */
	struct sup *sup;
};

/* server/local.c */
struct source *source_local_new(struct sup *sup, struct err *e);
/* cluster/node/nomad.c, with servers in the configuration */
struct source *source_nomad_new(struct sup *sup, struct err *e);

#endif
