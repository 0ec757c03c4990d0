/* SPDX-License-Identifier: Apache-2.0 */
/* local_rules.h: the rules of a deployment, as decisions from facts without effects. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_RULES_H
#define DROVER_SUPERVISOR_SERVER_DEPLOY_LOCAL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/deployment.h"

/* What a deployment permits for the allocs of a group. */
enum local_gate {
	LOCAL_GATE_OPEN,    /* all changes */
	LOCAL_GATE_ROLLING, /* max_parallel allocs are replaced at a time */
	LOCAL_GATE_SHUT,    /* it has failed: running allocs keep their version */
	LOCAL_GATE_WAITING, /* paused, or waits for its canaries: as SHUT, and new slots stay
			       empty */
};

/* canaries: the group waits for its canaries to be promoted. */
enum local_gate local_rule_gate(enum deployment_state status, bool canaries);

struct local_budget_facts {
	enum local_gate gate;
	int64_t max_parallel;
	int64_t turning; /* allocs that are being replaced */
	bool unhealthy;  /* one of the new allocs is unhealthy */
};

/* Returns how many more running allocs of the group may be replaced now. */
int64_t local_rule_budget(const struct local_budget_facts *f);

/* The progress of a slot. */
enum local_standing {
	LOCAL_STANDING_OLD,      /* its alloc is not of the deployment */
	LOCAL_STANDING_TURNING,  /* it is to get a healthy alloc of the deployment */
	LOCAL_STANDING_HEALTHY,  /* it has one */
	LOCAL_STANDING_HOPELESS, /* it will not get one: its alloc is not replaced by itself */
};

/* Facts about the slot's newest alloc. */
struct local_standing_facts {
	bool exists;
	bool stopped;       /* DesiredStatus stop or evict */
	bool deployed;      /* it belongs to the deployment */
	bool ended;         /* ClientStatus is terminal */
	bool is_replaced;   /* if ended: it will be replaced by itself */
	bool a_task_failed; /* if not ended: it is about to fail, and may be replaced then */
	enum opt_bool healthy;
};

enum local_standing local_rule_standing(const struct local_standing_facts *f);

/* The next step of a running deployment. */
enum local_step {
	LOCAL_STEP_SUCCEED,
	LOCAL_STEP_FAIL_UNHEALTHY,
	LOCAL_STEP_FAIL_LATE,
	LOCAL_STEP_PROMOTE,
	LOCAL_STEP_REPLACE, /* as many allocs as the budget permits, which may be 0 */
};

/* Facts about one group. */
struct local_group_facts {
	int64_t desired, desired_canaries; /* desired_canaries is 0 if it waits for none */
	int64_t healthy, healthy_canaries; /* slots with a healthy alloc of the deployment */
	bool hopeless;                     /* one slot will never get one */
	bool auto_promote, auto_revert;
	bool has_deadline;
	int64_t deadline_ns;
};

/* Facts about all groups together: start with LOCAL_OUTLOOK and add each group. */
struct local_outlook {
	bool complete, hopeless, late;
	bool revert;         /* a group that makes it fail has auto_revert */
	bool canaries;       /* a group waits for the promotion of its canaries */
	bool promotable;     /* all canaries are healthy and have auto_promote */
	int64_t deadline_ns; /* the next deadline of a group; INT64_MAX: none */
};

#define LOCAL_OUTLOOK                                                                              \
	((struct local_outlook){ .complete = true, .promotable = true, .deadline_ns = INT64_MAX })

void local_rule_add_group(
    struct local_outlook *o, const struct local_group_facts *f, int64_t now_ns);
enum local_step local_rule_step(const struct local_outlook *o);

#endif
