/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_runner.h: the life of one alloc on this node: hooks before its tasks, the tasks, hooks
 * after them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_RUNNER_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_RUNNER_H

#include "supervisor/alloc/alloc_health.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/alloc/coordinator.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/source/source.h"

enum alloc_phase {
	ALLOC_PRERUN,  /* hooks, in order */
	ALLOC_RUNNING, /* the tasks' gate is open */
	ALLOC_POSTRUN, /* hooks, in reverse */
	ALLOC_DONE,    /* the directory and the rows are left */
	ALLOC_DESTROYING,
};

/* alloc_kill.c: who is told to end now. */
enum kill_step {
	KILL_NOT,
	KILL_DELAY, /* the group's shutdown_delay */
	KILL_LEADER,
	KILL_OTHERS,
	KILL_SIDECARS,
	KILL_OVER, /* poststop tasks end by themselves */
};

struct alloc_runner {
	struct sup *sup;
	struct sup_alloc *sa;
	enum alloc_phase phase;
	unsigned hook;       /* alloc_hooks.c: the one that runs */
	bool hook_busy;      /* it has not answered yet */
	char *hook_failures; /* of postrun, so far; NULL: none */
	bool restored;       /* it was given before this supervisor started  */
	bool lease_passed;   /* hook_lease.c: restored after its limit: nothing of it starts anew */
	bool failed;         /* a hook failed: its sentence is in every task's event */
	bool lease_over;     /* an executor stopped a task by the lease: nothing starts any more */
	bool stopping;       /* the source wants it stopped, or the node drains */
	bool destroy;        /* and gone */
	bool disk_exceeded;  /* disk_watch.c found too much: it ends */
	bool disk_full;      /* it found as much as there may be, and has said so */
	bool overdue;        /* hook_max_run.c: it has run for too long; it is stopping too */
	struct sd_event_source *max_run; /* when it has */
	enum coordinator_state coordinator;
	enum kill_step kill;
	struct sd_event_source *kill_timer; /* the group's shutdown_delay */
	int64_t kill_after_ns; /* when that is over, by CLOCK_REALTIME; 0: it has not begun */
	struct deferred step;  /* looks at what is next, outside of the callbacks that led there */
	bool news;             /* the source has not been told of the latest */
	uint64_t call;
	struct sd_event_source *retry;
	struct sd_event_source *late; /* hook_csi.c: when to say what it waits for */
	unsigned csi_at;              /* hook_csi.c: the volume it is at */
	unsigned csi_left;            /* hook_csi.c: unmounts under way */
	unsigned csi_looks;           /* hook_csi.c: how often it has looked for the plugin */
	bool csi_waits;               /* hook_csi.c: destroy does, for the last unmount */
	struct alloc_health health;
	bool holds_cores;   /* hook_cores.c: its reserved cores are nobody else's */
	bool services_on;   /* the group's are registered */
	bool services_back; /* they are not, for a restart, and will be with the next start */
	bool checks_on;
	bool checks_news;                    /* what they found is not saved */
	struct check *checks;                /* service/checks.c */
	json_t *checks_kept;                 /* what the last supervisor's found; NULL: nothing */
	struct alloc_identities *identities; /* alloc_identity.c; NULL: none are asked for */
	unsigned n_tasks;
	struct task_runner tasks[]; /* in the group's order */
};

/* hook_max_run.c: has it run for longer than it may? The description and the reason of its end. */
bool alloc_is_overdue(const struct alloc_runner *ar);
#define ALLOC_OVERDUE "allocation exceeded max_run_duration"

/* hook_lease.c: the sentence for what its lease keeps from running. */
void alloc_lease_text(const struct alloc_runner *ar, char *buf, size_t size);

/* restored: the alloc ran when the last supervisor ended. NULL: no memory. */
struct alloc_runner *alloc_runner_new(struct sup *sup, struct sup_alloc *sa, bool restored);
void alloc_runner_free(struct alloc_runner *ar);
/* The source's wish changed. */
void alloc_runner_update(struct alloc_runner *ar);
void alloc_runner_stop(struct alloc_runner *ar);
void alloc_runner_destroy(struct alloc_runner *ar);
/* A task's state changed: recomputes the alloc's, tells the source, looks at the siblings. */
void alloc_runner_task_changed(struct alloc_runner *ar);
/*
 * Its directory is larger than it may be, or (fails: no) just as large: text says how large. With
 * fails all its tasks fail, without delay.
 */
void alloc_runner_disk_exceeded(
    struct alloc_runner *ar, const char *text, int64_t limit_bytes, bool fails);
/* Is shutdown_delay left out? */
bool alloc_skips_delay(const struct alloc_runner *ar);
/* The group's; 0: none. */
int64_t alloc_shutdown_delay_ns(const struct alloc_runner *ar);
/* hook_csi.c: a volume that was left mounted after the tasks is so no more. */
void alloc_csi_volume_gone(struct alloc_runner *ar);
/* A run of this alloc is reaped and its row is deleted. */
void alloc_runner_run_gone(struct sup *sup, const struct id *alloc);

/* alloc_kill.c: ends the tasks, all but poststop ones, step by step: again whenever one changes. */
void alloc_kill(struct alloc_runner *ar);
/* Waits no longer for the group's shutdown_delay. */
void alloc_kill_hurry(struct alloc_runner *ar);
/* Nothing of the alloc is to run any more. */
void alloc_kill_poststop(struct alloc_runner *ar);

/* Has a task of it ever run? */
bool alloc_has_started(const struct alloc *a);

/* What the client keeps beside the alloc (sup_alloc.client_json): written when it changes. */
void alloc_client_save(struct alloc_runner *ar);

#endif
