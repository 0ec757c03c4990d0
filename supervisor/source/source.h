/* SPDX-License-Identifier: Apache-2.0 */
/* source.h: the source of work, as the node sees it. There are two implementations: server/ (a
 * one-node server in this process) and cluster/ (real servers). Only sup_main.c knows which one is
 * used. Runs in: supervisor. A source drives the node through alloc/client.h, which reports by
 * alloc_updated() and alloc_destroyed(). The source's part of the API is in source_api.h. */
#ifndef DROVER_SUPERVISOR_SOURCE_SOURCE_H
#define DROVER_SUPERVISOR_SOURCE_SOURCE_H

#include <jansson.h>

#include "model/job.h"
#include "model/volume.h"
#include "supervisor/core/sup.h"

struct alloc;
struct causes;
struct drain_strategy;
struct node_event;
struct service_registration;
struct source;
struct source_api;
struct sup_alloc;

/* Key in the details of the Killing event of a task that its executor stopped; the value is the
 * limit ("30s"). The source replaces such allocs. */
#define EVENT_DETAIL_LEASE "stop_after_client_disconnect"

/* The result of a claim: r is 0 with the volume (valid in this callback), or negative with *e, the
 * sentence for the event. -EINPROGRESS: the claim is refused for now, and another callback follows;
 * *e also says how often it was tried and when it is tried next. */
typedef void claim_cb(
    struct sup *sup, void *arg, int r, const struct csi_volume *volume, const struct err *e);

/* A token for a task. The caller sets task and name, which must live until the callback or the
 * cancellation; the rest is the answer. */
struct source_token {
	const char *task, *name; /* name of one of its identities */
	const char *jwt;
	int64_t expires_ns; /* CLOCK_REALTIME of the signer; 0: never */
};

/* r is 0 with all tokens, valid in this callback; -EKEYREJECTED if they are refused for good, with
 * the reason in *e; other errors may be retried. */
typedef void sign_cb(struct sup *sup, void *arg, int r, const struct source_token *tokens, size_t n,
    const struct err *e);

/* A variable, a service, or a list of them that a task's template uses (proto/template_need.h).
 * watch() copies the texts. */
enum source_query_kind { SOURCE_VARIABLE, SOURCE_VARIABLES, SOURCE_SERVICE, SOURCE_SERVICES };
struct source_query {
	enum source_query_kind kind;
	const char *name; /* path, prefix or service; "" for SOURCE_SERVICES */
	const char *ns,
	    *region;     /* "": the alloc's namespace, the own region; ns "*" in lists: all */
	const char *key; /* SOURCE_SERVICE: choose `count` of them by this key; or NULL */
	int64_t count;
};
struct source_watch;

/* r is 0 with the value in the form that template-renderer takes (JSON's null: there is none), or
 * negative with *e, a sentence: it is not known now, and the source goes on trying. Called once
 * soon, never within watch(), and again whenever the value has changed. */
typedef void source_value_cb(struct sup *sup, void *arg, int r, json_t *value, const struct err *e);

typedef void leave_cb(struct sup *sup, int r, const struct err *e);

struct source_ops {
	const char *name;
	/* The source needs the health of every service alloc, for drains; otherwise only of allocs
	 * with a deployment. alloc_updated() reports it. */
	bool health_of_all;
	/* Returns true if an alloc with a failed task counts as lost. NULL: servers decide that. */
	bool (*is_lost)(const struct alloc *a);
	/* Loads the source's rows from state.db into the alloc table, before the client restores
	 * its allocs. */
	int (*load)(struct source *s, struct err *e);
	/* The client has restored its allocs: the source may start to assign work. */
	int (*start)(struct source *s, struct err *e);
	/* The client's fields of sa changed: status, task states. Called in the turn of the change.
	 */
	void (*alloc_updated)(struct source *s, struct sup_alloc *sa);
	/* The row of sa was written, with changes of either side. NULL: not needed. */
	void (*alloc_written)(struct source *s, struct sup_alloc *sa);
	/* Everything of sa was removed from the node (directories, mounts, runs). */
	void (*alloc_destroyed)(struct source *s, struct sup_alloc *sa);
	/* Removes an ended alloc from the node; false if it has not ended. collect_oldest removes
	 * the oldest ended alloc; false if no alloc has ended. */
	bool (*collect)(struct source *s, struct sup_alloc *sa);
	bool (*collect_oldest)(struct source *s);
	/* Node attributes, drivers, plugins or resources changed. */
	void (*node_updated)(struct source *s);
	/* The node has a new event, which is the last one of node_get(). */
	void (*node_event)(struct source *s, const struct node_event *ev);
	/* Checks whether this node supports the alloc, before anything of it starts. Returns 0, or
	 * -EINVAL with a sentence. NULL: the source places only supported allocs. */
	int (*check)(struct source *s, const struct sup_alloc *sa, struct err *e);
	/* Claims the volume of request vr of sa's group; the callback may be called within the
	 * call. */
	void (*claim)(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
	    claim_cb *cb, void *arg);
	/* Cancels sa's pending claim: the callback is called now, with -ECANCELED. NULL: claims are
	 * immediate. */
	void (*claim_cancel)(struct source *s, struct sup_alloc *sa);
	/* Releases the claim; the volume is unmounted on this node. Durable in this turn. */
	void (*release)(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
	/* Sets the registered services of a workload of sa (its group or a task); the workload's
	 * other services are deregistered. Without a workload, n is 0 and all services of sa are
	 * deregistered. v is valid during the call. */
	void (*services_set)(struct source *s, struct sup_alloc *sa, const char *workload,
	    const struct service_registration *v, size_t n);
	/* Has tokens signed for tasks of sa, one call per alloc at a time; the callback is not
	 * called within the call. */
	void (*sign)(struct source *s, struct sup_alloc *sa, const struct source_token *wanted,
	    size_t n, sign_cb *cb, void *arg);
	/* Cancels the signing; the callback is not called. */
	void (*sign_cancel)(struct source *s, struct sup_alloc *sa);
	/* Follows a value for a task of sa, with the rights of that task. unwatch ignores NULL. */
	struct source_watch *(*watch)(struct source *s, struct sup_alloc *sa, const char *task,
	    const struct source_query *q, source_value_cb *cb, void *arg);
	void (*unwatch)(struct source *s, struct source_watch *w);
	/* Has the servers drain this node, because the agent ends. cb is called once, not within
	 * the call: r is 0 when all allocs that the drain concerns have ended and the servers know
	 * it, or negative with *e if the servers cannot be asked. NULL: there are no servers. */
	void (*leave)(struct source *s, const struct drain_strategy *drain, const char *message,
	    leave_cb *cb);
	/* Has the servers forget this node, with this token, or the node's own (NULL). cb as above;
	 * while no server answers, the call goes on. NULL: there are no servers. */
	void (*deregister)(struct source *s, const char *token, leave_cb *cb);
	/* Ends the drain of leave(); may make the node eligible. cb as above. NULL: as above. */
	void (*come_back)(struct source *s, bool eligible, leave_cb *cb);
	/* Places no new allocs while on; does not stop any. */
	void (*set_drain)(struct source *s, bool on);
	/* Adds what will happen to an alloc that has ended or is to end (alloc_why.h). NULL:
	 * nothing to add. */
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
