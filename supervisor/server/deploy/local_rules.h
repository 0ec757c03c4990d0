/* SPDX-License-Identifier: Apache-2.0 */
/* local_rules.h: the rules of a deployment: what follows from the facts, without any effect. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_RULES_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/deployment.h"

/* --- what may happen to the allocs of a group --- */

enum local_gate {
	LOCAL_GATE_OPEN,    /* anything */
	LOCAL_GATE_ROLLING, /* max_parallel at a time are replaced */
	LOCAL_GATE_SHUT,    /* it has failed: what runs stays of its version */
	LOCAL_GATE_WAITING, /* paused, or waits for its canaries: also, nothing is placed where
			       nothing was */
};

/* canaries: the group waits for its canaries to be promoted. */
enum local_gate local_rule_gate(enum deployment_state status, bool canaries);

struct local_budget_facts {
	enum local_gate gate;
	int64_t max_parallel;
	int64_t turning; /* allocs that are being replaced */
	bool unhealthy;  /* one of the new allocs is */
};

/* How many more running allocs of the group may be replaced now. */
int64_t local_rule_budget(const struct local_budget_facts *f);

/* --- how far a slot is --- */

enum local_standing {
	LOCAL_STANDING_OLD,      /* its alloc is not of the deployment */
	LOCAL_STANDING_TURNING,  /* it is to have a healthy alloc of it */
	LOCAL_STANDING_HEALTHY,  /* it has one */
	LOCAL_STANDING_HOPELESS, /* it will not have one: nothing replaces its alloc by itself */
};

/* The slot's newest alloc. */
struct local_standing_facts {
	bool exists;        /* the rest is about it */
	bool told_to_stop;  /* DesiredStatus stop or evict */
	bool deployed;      /* it is of the deployment */
	bool ended;         /* ClientStatus is terminal */
	bool is_replaced;   /* of one that ended: a successor follows by itself */
	bool a_task_failed; /* of one that has not: whether there is another try is known later */
	enum opt_bool healthy;
};

enum local_standing local_rule_standing(const struct local_standing_facts *f);

/* --- the next step of a deployment that runs --- */

enum local_step {
	LOCAL_STEP_SUCCEED,
	LOCAL_STEP_FAIL_UNHEALTHY,
	LOCAL_STEP_FAIL_LATE,
	LOCAL_STEP_PROMOTE,
	LOCAL_STEP_REPLACE, /* as many allocs as the budget permits, perhaps none */
};

/* One group. */
struct local_group_facts {
	int64_t desired, desired_canaries; /* desired_canaries 0: it waits for no canaries */
	int64_t healthy, healthy_canaries; /* slots with a healthy alloc of the deployment */
	bool hopeless;                     /* one slot will never have one */
	bool auto_promote, auto_revert;
	bool has_deadline;
	int64_t deadline_ns;
};

/* All groups together: begin with LOCAL_OUTLOOK, add each. */
struct local_outlook {
	bool complete, hopeless, late;
	bool revert;         /* when it fails: one of those that let it fail asks for it */
	bool canaries;       /* some want to be promoted */
	bool promotable;     /* all of them are healthy, and no operator has to promote them */
	int64_t deadline_ns; /* the next one; INT64_MAX: none */
};

#define LOCAL_OUTLOOK                                                                              \
	((struct local_outlook){ .complete = true, .promotable = true, .deadline_ns = INT64_MAX })

void local_rule_add_group(
    struct local_outlook *o, const struct local_group_facts *f, int64_t now_ns);
enum local_step local_rule_step(const struct local_outlook *o);

#endif
