/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.h: the embedded one-node server: what it keeps of jobs, evaluations and volumes, and what
 * its files offer each other. Everything durable has a row, written at the end of the turn. Runs
 * in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_LOCAL_H
#define DROVER_SUPERVISOR_SERVER_LOCAL_H

#include "model/eval.h"
#include "model/job.h"
#include "model/volume.h"
#include "supervisor/alloc/client.h"
#include "supervisor/node/cores.h"
#include "supervisor/service/service_table.h"
#include "supervisor/server/local_map.h"
#include "supervisor/server/local_news.h"
#include "supervisor/server/place/local_slot.h"
#include "supervisor/source/source_api.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/server/job/local_marks.h"

#include <sys/queue.h>

struct local_job;
struct local_eval;
struct local_gone;
struct local_deployment;
struct local_ports;
struct node;

/* The jobs that were made of one, which may be gone itself. */
struct local_family {
	struct local_key key; /* "<namespace>/<parent's id>" */
	char *name;
	struct local_job *children; /* newest first */
	size_t n;
};

/* What has an index of its own. */
enum local_kind {
	LOCAL_JOBS,
	LOCAL_ALLOCS,
	LOCAL_EVALS,
	LOCAL_DEPLOYMENTS,
	LOCAL_NODES,
	LOCAL_SERVICES,
	LOCAL_VOLUMES,
	LOCAL_KINDS
};

/* One version of a job and its row. */
struct local_version {
	struct local_version *older;
	struct local_job *job;
	struct job_ref *ref;
	struct dirty row;
	bool gone;      /* the row is deleted, then this is freed */
	bool forgotten; /* too, and the job has none any more */
};

/* What allocs take of the node. */
struct local_room {
	int64_t cpu, memory_mb, cores, disk_mb;
};

/* What a slot was not placed for want of. */
enum local_lack_kind {
	LOCAL_LACKS_OTHER, /* not of room: the node is another, or a volume, before it is there */
	LOCAL_LACKS_ROOM,  /* so much */
	LOCAL_LACKS_PORT,  /* this one of that address, which an alloc has; or, 0 and below, a
			      dynamic one more than so many */
};

struct local_lack {
	enum local_lack_kind kind;
	struct local_room room;
	const struct local_ports *at;
	int64_t port;
};

/* The slots that wait for the same thing, oldest first: whether it is there is looked at once for
 * all of them. */
struct local_want {
	struct local_lack lack;
	const void *kept_by; /* who has it, or what there is too little of, by the last look */
	struct local_slot *first, *last;
	struct local_want *prev, *next;
};

struct local_wants {
	struct local_want *first, *last;
};

/* The place of "job.group[index]". At most one of its allocs is not over; that of a
 * canary is a slot of its own. */
struct local_slot {
	struct local_job *job;
	struct local_group *group;
	int64_t index;
	struct local_alloc *current; /* the newest; NULL: none is known */
	struct local_eval *waits;    /* counts this slot until its current alloc is over, or
					may be rescheduled */
	struct sd_event_source *reschedule;
	bool canary;
	struct local_want *want; /* NULL: it has its place, or wants none */
	uint64_t want_version;   /* which the alloc of that place would be of */
	struct local_slot *prev_wanting, *next_wanting;
	bool marked; /* local_marks.c */
	STAILQ_ENTRY(local_slot) next_marked;
};

/* A group of any version of the job. Stays as long as the job. */
struct local_group {
	char *name;
	struct local_slot **slots, **canaries;
	size_t n_slots, n_canaries;
	struct local_want other; /* of its slots that lack no room */
};

struct local_job {
	struct local_key key; /* "<namespace>/<id>" */
	struct local *l;
	char *name;
	struct local_version *versions; /* newest first: the first is what is wanted */
	bool purge;     /* forgotten when its last alloc is gone; nobody sees it any more */
	uint64_t index; /* of the last change of it, its allocs and its evaluations */
	struct local_news news;
	struct local_group **groups;
	size_t n_groups;
	struct local_alloc *allocs;           /* newest first */
	struct local_deployment *deployments; /* newest first */
	struct local_eval *last_eval;         /* newest first */
	struct local_eval *blocked;           /* while slots are unplaced */
	size_t n_unplaced;
	struct local_family *family; /* of a child */
	struct local_job *prev_sibling, *next_sibling;
	struct local_job *prev_dead, *next_dead; /* of children whose work is over */
	int64_t dead_s;                          /* since then; 0: it is in no list of those */
	struct local_job *prev_timed, *next_timed;
	bool timed;       /* its times make children: local_periodic.c */
	int64_t next_s;   /* the next of them, -1: there is none any more */
	int64_t looked_s; /* all until then are done */
	struct dirty looked_row;
	struct {
		STAILQ_ENTRY(local_job) next;
		STAILQ_HEAD(, local_slot) slots;
		bool queued, deployment;
	} marks; /* local_marks.c */
};

/* sup_alloc.source_data */
struct local_alloc {
	struct sup_alloc *sa;
	struct local_job *job;
	struct local_slot *slot;
	struct local_alloc *prev, *next; /* of the job */
	struct local_alloc *prev_done, *next_done;
	struct job_ref *runs_by; /* the version whose tasks its runner holds: an update in place
				    does not free them */
	struct local_room room;  /* what it takes until it is over */
	unsigned n_claims;
	bool over;      /* its resources are given back */
	bool done;      /* in the list of those that may be destroyed */
	bool destroyed; /* client_alloc_destroy() was called */
	bool collected; /* too, but it stands for its slot still */
	uint64_t held;  /* bit per request of the group that has not been released */
	struct local_news news;
};

struct local_eval {
	struct local_key key;
	struct eval ev;
	struct dirty row;
	struct local_job *job; /* NULL: the job is forgotten */
	struct local_eval *newer_of_job, *older_of_job;
	struct local_eval *prev, *next; /* all, oldest first */
	struct local_eval *prev_closed, *next_closed;
	bool closed; /* in the list of those that are trimmed */
	unsigned n_waiting;
	bool gone;
	bool used; /* local_evals_forget(): an alloc that is known was placed by it */
	struct local_news news;
};

struct local_volume {
	struct local_key key; /* "<namespace>/<id>" */
	char *name;
	struct csi_volume vol; /* no external_id: its creation has not been seen to end */
	struct dirty row;
	const char *busy; /* "created", "deleted": a call to the plugin is on its way. NULL: none */
	bool gone;
};

struct local {
	struct source base;
	struct local_map jobs, evals, volumes, families, deployments;
	uint64_t index;
	struct dirty index_row;
	uint64_t last_change[LOCAL_KINDS];
	uint64_t loaded_index; /* whatever was here before counts as changed then */
	struct local_news_list news_list;
	struct local_news news;                    /* of the node */
	struct local_gone *first_gone, *last_gone; /* in the order in which they were kept */
	unsigned n_gone;
	size_t gone_bytes;
	struct deferred wake;
	struct local_eval *first_eval, *last_eval;
	struct local_eval *first_closed, *last_closed; /* oldest first */
	unsigned n_closed;
	struct local_wants room_wants, other_wants; /* of room and ports; of anything else */
	struct local_want *looked_at;               /* stays while it is */
	struct local_job *first_dead, *last_dead;   /* oldest first */
	unsigned n_dead;
	struct local_job *first_timed;
	int timer_fd; /* the next launch, and whatever else has its time by the clock */
	struct sd_event_source *timer;
	struct local_alloc *first_done, *last_done; /* oldest first */
	unsigned n_done;
	struct local_room used;
	struct core_set cores_used;
	struct service_table services;
	struct local_ports *ports; /* local_ports.c */
	unsigned next_port;
	struct sd_event_source *age;
	struct {
		STAILQ_HEAD(, local_job) jobs;
		bool capacity, node, timer;
		struct deferred pass;
	} marks;         /* local_marks.c */
	bool ineligible; /* as an operator says: nothing is placed */
	struct dirty drain_row;
	struct sd_event_source *drain_timer; /* its deadline */
};

static inline struct local *
local_of(struct source *s)
{
	return (struct local *)(void *)s;
}

static inline struct local *
local_of_sup(struct sup *sup)
{
	return local_of(sup->source);
}

int64_t local_now_ns(void);
/* A new index for something that changes in this turn. */
uint64_t local_index_next(struct local *l);

/* local_changes.c: something is as it is since this index, or has no more to tell. Whoever waits
 * for it, or follows the events, is told after the commit. */
void local_alloc_changed(struct local *l, struct local_alloc *la); /* if its index has */
void local_eval_told(struct local *l, struct local_eval *ev);
void local_deployment_told(struct local *l, struct local_deployment *dep);
void local_job_changed(struct local *l, struct local_job *j, uint64_t index);
void local_node_changed(struct local *l);
void local_service_changed(struct local *l, struct source_service *s);
void local_volumes_changed(struct local *l, uint64_t index);
void local_alloc_gone(struct local *l, struct local_alloc *la);
void local_job_gone(struct local *l, struct local_job *j);
void local_service_gone(struct local *l, struct source_service *s);
void local_changes_init(struct local *l);

/* local_index.c */
api_index *local_index_of(struct sup *sup, const struct api_route *route);

/* local_api_system.c: why the path of a request's target, which Nomad has, is not here; NULL: it
 * has none either. */
const char *local_elsewhere(const char *target);

/* local_drain.c */
void local_drain_init(struct local *l);
/* Before the allocs are restored, and after. */
int local_drain_load(struct local *l, struct err *e);
void local_drain_start(struct local *l);
void local_drain_free(struct local *l);
void local_set_drain(struct source *s, bool on);

/* local_why.c */
void local_why(struct source *s, struct sup_alloc *sa, struct causes *c);

/* local_jobs.c */
struct local_job *local_job_find(
    struct local *l, const char *namespace, const char *id); /* NULL for a purged one too */
static inline const struct job *
local_job_wanted(const struct local_job *j)
{
	return &j->versions->ref->job;
}
struct local_job *local_job_find_any(struct local *l, const char *namespace, const char *id);
/*
 * Makes *job (completed, valid; emptied) what is wanted. A job equal to the current version makes
 * no new one. *ret_changed says whether it did. NULL: no memory.
 */
struct local_job *local_job_put(struct local *l, struct job *job, bool *ret_changed);
/* Drops old versions that nothing needs; forgets the job when it is purged and empty. */
void local_job_trim(struct local *l, struct local_job *j);
enum job_status local_job_status(const struct local_job *j);
/*
 * Makes *job (completed, checked; emptied) what is wanted, and acts: under *ret_ev, which stays
 * NULL for a job of which others are made. 0 or -ENOMEM.
 */
int local_job_register(struct local *l, struct job *job, const char *trigger,
    struct local_job **ret, struct local_eval **ret_ev);
int local_jobs_load(struct local *l, struct err *e);
struct job_ref *local_jobs_ref(
    struct sup *sup, const char *namespace, const char *id, uint64_t version);
/* Made if new; NULL: no memory. */
struct local_slot *local_slot_get(struct local_job *j, const char *group, int64_t index);
struct local_slot *local_canary_get(struct local_job *j, const char *group, int64_t index);
struct local_group *local_group_find(const struct local_job *j, const char *name); /* NULL */
void local_job_free(struct local *l, struct local_job *j);

/* local_family.c */
/* j is one of its parent's children from now on. 0 or -ENOMEM. */
int local_family_join(struct local *l, struct local_job *j);
void local_family_leave(struct local *l, struct local_job *j);
/* What was made of the job; NULL: nothing. */
struct local_family *local_family_of(struct local *l, const struct job *parent);
/* May it have one child more? 0 or -EAGAIN with the sentence. */
int local_family_check(struct local *l, const struct job *parent, struct err *e);
void local_family_count(struct local *l, const struct job *parent, struct job_children *ret);
/* A child whose work is over is kept for a while, and forgotten then. True: when the next one is
 * forgotten has changed. */
bool local_family_examine(struct local *l, struct local_job *j);
/* Forgets those whose time is over; and when the next one's will be, 0: there is none. */
void local_family_collect(struct local *l, int64_t now_s);
int64_t local_family_collect_at(const struct local *l);

/* local_periodic.c */
/* What is wanted of j has changed: its times may have. */
void local_periodic_look(struct local *l, struct local_job *j);
void local_periodic_forget(struct local *l, struct local_job *j);
/* The child of this time, made or there already, and the evaluation. 0 or -errno with *e. */
int local_periodic_launch(struct local *l, struct local_job *j, int64_t time_s,
    struct local_eval **ret_ev, struct err *e);
/* Launches what is due, forgets what is due to be, and sets the timer anew. */
void local_periodic_run(struct local *l);
/* Sets the timer anew. */
void local_periodic_arm(struct local *l);
int local_periodic_load(struct local *l, struct err *e);
/* What should have been launched while the agent was away is, once. */
int local_periodic_start(struct local *l, struct err *e);
void local_periodic_free(struct local *l);
/* Of its row. */
#define LOCAL_LAUNCH_KEY_SIZE 600
void local_launch_key(const struct job *job, char ret[LOCAL_LAUNCH_KEY_SIZE]);

/* local_evals.c. NULL: no memory. */
struct local_eval *local_eval_new(struct local *l, struct local_job *j, const char *trigger);
void local_eval_changed(struct local *l, struct local_eval *ev);
void local_eval_close(
    struct local *l, struct local_eval *ev, enum eval_status status, const char *description);
void local_evals_forget_job(struct local *l, struct local_job *j);
int local_evals_load(struct local *l, struct err *e);
/* Those that were closed before that time, and placed nothing that is still known. */
void local_evals_forget(struct local *l, int64_t before_ns);

/* local_age.c: what is over is forgotten from now on. */
int local_age_start(struct local *l, struct err *e);

/* local_reconcile.c */
/*
 * Compares what is wanted of the job with its allocs and acts: under ev, which is open and ends,
 * now or when the last alloc that must end first has. NULL: one is made if there is something to
 * do. again: allocs that ended by themselves are replaced too.
 */
void local_reconcile_job(struct local *l, struct local_job *j, struct local_eval *ev, bool again);
/* The same for one slot, whose alloc has changed; without an evaluation it finds or makes one if
 * there is something to do. */
void local_reconcile_slot(struct local *l, struct local_slot *slot, struct local_eval *ev);
/* Places the slot's next alloc. False: it does not fit, and the blocked evaluation, which follows
 * ev, says why. */
bool local_reconcile_place(struct local *l, struct local_slot *slot, struct local_eval *ev);
/* What is known of a slot for the decision, if that version of its job were wanted. again: an
 * operator asks. */
struct local_slot_facts local_slot_look(
    const struct local_slot *slot, const struct job *wanted, bool again);
/* When may a successor take the place of this alloc, which is over? In ns since 1970. */
int64_t local_reschedule_at(const struct local_alloc *la);
/* The alloc of the canary is the slot's from now on; the one that was is stopped. */
void local_slot_take(struct local *l, struct local_slot *slot, struct local_slot *canary);
void local_reconcile_start(struct local *l);

/* local_retry.c */
/* Places what waits for resources or a port that are there now. all: also what waits for anything
 * else. */
void local_retry_run(struct local *l, bool all);

/* drive/local_pass.c: decides about everything that is marked. */
void local_pass_run(struct local *l);
void local_pass_init(struct local *l);

/* local_ports.c: canaries that will find their port taken: better known before. */
void local_ports_warn(const struct job *job, struct problems *p);
/* The alloc has its ports, or no longer. */
void local_ports_take(struct local *l, struct local_alloc *la);
void local_ports_give_back(struct local *l, struct local_alloc *la);
void local_ports_free(struct local *l);
/* Ports for a group, which nobody has yet. 0; -ENOENT: the node has no such host network;
 * -EADDRINUSE: somebody has one of them, or no dynamic one is left: which, in *lack (or NULL);
 * -ENOMEM. */
int local_ports_fill(struct local *l, struct alloc_shared_resources *shared,
    const struct task_group *group, struct local_lack *lack, struct err *e);
/* Who has the port. NULL: nobody, or perhaps one of them is free. */
const struct local_alloc *local_port_holder(const struct local_lack *lack);

/* local_cores.c */
int64_t local_core_mhz(const struct node *n);
/* The alloc's reserved cores are in l->cores_used, or out of it. */
void local_cores_mark(struct local *l, const struct alloc *a, bool used);
/* Gives n that are not in *used, which gets them too. 0, -ENOMEM or -ENOSPC. */
int local_cores_fill(struct local *l, int64_t n, struct core_set *used, struct alloc_cpu *ret);

/* local_services.c */
void local_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n);
void local_services_free(struct local *l);

/* local_place.c */
/* An alloc of this group takes that too. */
void local_room_add(struct local_room *room, const struct task_group *group);
/* Does the alloc job.group[index] fit on the node beside what takes *used of it? Fills *m
 * (initialised) with what was seen, and *ret_lack (or NULL) with what it lacks. */
bool local_place_fits(struct local *l, const struct local_room *used, const struct job *job,
    const char *group, int64_t index, struct alloc_metric *m, struct local_lack *ret_lack);
/* Is there so much room? NULL, or the dimension that is exhausted. */
const char *local_room_exhausted(
    struct local *l, const struct local_room *used, const struct local_room *more);
/* Makes and starts it, of this version of the job; takes over *m. -ENOMEM. */
int local_place(struct local *l, struct local_slot *slot, struct job_ref *ref,
    struct local_eval *ev, struct alloc_metric *m);
/* What keeps any node from running this job, for its registration: datacenter, constraints that are
 * not understood. */
void local_place_validate(const struct job *job, struct problems *p);

/* local_allocs.c */
struct local_alloc *local_alloc_new(struct local *l, struct sup_alloc *sa, struct local_job *j);
static inline struct local_alloc *
local_alloc_of(struct sup_alloc *sa)
{
	return sa->source_data;
}
void local_alloc_stop(struct local *l, struct local_alloc *la, const char *why);
/* Those that nobody needs and whose tasks ended before that time. */
void local_allocs_forget(struct local *l, int64_t before_ns);
/* Another comes in its place: stops it, if that is not done. */
void local_alloc_succeeded(struct local *l, struct local_alloc *la);
/* Whoever stops it, or has, does not want to wait for shutdown_delay. */
void local_alloc_hurry(struct local *l, struct local_alloc *la);
bool local_alloc_stopped_by_lease(const struct alloc *a);
void local_alloc_updated(struct source *s, struct sup_alloc *sa);
void local_alloc_written(struct source *s, struct sup_alloc *sa);
void local_alloc_destroyed(struct source *s, struct sup_alloc *sa);
bool local_alloc_collect(struct source *s, struct sup_alloc *sa);
bool local_alloc_collect_oldest(struct source *s);
/* It is over and its slot has no more use for it: kept until gc_max_allocs newer ones are too. */
void local_alloc_done(struct local *l, struct local_alloc *la);
int local_allocs_load(struct local *l, struct err *e);
void local_alloc_free(struct local *l, struct local_alloc *la);

/* local_volumes.c */
struct local_volume *local_volume_find(struct local *l, const char *namespace, const char *id);
struct local_volume *local_volume_new(
    struct local *l, struct csi_volume *vol); /* takes over *vol */
void local_volume_changed(struct local *l, struct local_volume *lv);
void local_volume_forget(struct local *l, struct local_volume *lv);
/* Sets what follows from the plugin: schedulable, provider, counts. */
void local_volume_refresh(struct local *l, struct csi_volume *vol);
/* The plugin as the API shows it, without allocations. False: no instance of it is known. */
bool local_plugin_get(struct local *l, const char *id, struct csi_plugin *ret);
/* Gives back the claims of allocs that are over, though something of them may be mounted still, and
 * forgets the volume. False, and nothing is done: one that is not over has a claim. */
bool local_volume_abandon(struct local *l, struct local_volume *lv);
int local_volumes_load(struct local *l, struct err *e);
/* Could an alloc of this index claim it now? 0 or -errno with the sentence. */
int local_volume_check(struct local *l, const char *namespace, int64_t index,
    const struct volume_request *vr, struct err *e);
/* Takes the claims of an alloc that is being placed, so that no other is placed for the same slot
 * of a volume. */
void local_volume_reserve(struct local *l, struct sup_alloc *sa);
void local_volume_claim(struct source *s, struct sup_alloc *sa, const struct volume_request *vr,
    claim_cb *cb, void *arg);
void local_volume_release(struct source *s, struct sup_alloc *sa, const struct volume_request *vr);
/* Gives back what a destroyed alloc still holds. */
void local_volume_release_all(struct local *l, struct local_alloc *la);

#endif
