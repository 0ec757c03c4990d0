// SPDX-License-Identifier: Apache-2.0
/* local_rules.c: the rules of a deployment, as functions of facts. Runs in: supervisor. */
#include "supervisor/server/deploy/local_rules.h"

enum local_gate
local_rule_gate(enum deployment_state status, bool canaries)
{
	switch (status) {
	case DEPLOYMENT_RUNNING:
		return canaries ? LOCAL_GATE_WAITING : LOCAL_GATE_ROLLING;
	case DEPLOYMENT_PAUSED:
		return LOCAL_GATE_WAITING;
	case DEPLOYMENT_FAILED:
		return LOCAL_GATE_SHUT;
	case DEPLOYMENT_NONE:
	case DEPLOYMENT_SUCCESSFUL:
	case DEPLOYMENT_CANCELLED:
		break;
	}
	return LOCAL_GATE_OPEN;
}

int64_t
local_rule_budget(const struct local_budget_facts *f)
{
	switch (f->gate) {
	case LOCAL_GATE_OPEN:
		return INT64_MAX;
	case LOCAL_GATE_ROLLING:
		break;
	case LOCAL_GATE_SHUT:
	case LOCAL_GATE_WAITING:
		return 0;
	}
	return f->unhealthy || f->turning >= f->max_parallel ? 0 : f->max_parallel - f->turning;
}

enum local_standing
local_rule_standing(const struct local_standing_facts *f)
{
	if (!f->exists || f->stopped)
		return LOCAL_STANDING_TURNING;
	if (!f->deployed)
		return LOCAL_STANDING_OLD;
	if (f->ended)
		return f->is_replaced ? LOCAL_STANDING_TURNING : LOCAL_STANDING_HOPELESS;
	if (f->healthy == OPT_TRUE)
		return LOCAL_STANDING_HEALTHY;
	return f->healthy == OPT_UNSET || f->a_task_failed ? LOCAL_STANDING_TURNING
							   : LOCAL_STANDING_HOPELESS;
}

void
local_rule_add_group(struct local_outlook *o, const struct local_group_facts *f, int64_t now_ns)
{
	bool canaries = f->desired_canaries > 0;
	/* Waiting for an operator to promote takes no time from the deadline. */
	bool waits = canaries && f->healthy_canaries >= f->desired_canaries;
	bool timed = f->has_deadline && !waits, late = timed && f->deadline_ns <= now_ns;

	o->canaries |= canaries;
	o->promotable &= !canaries || (waits && f->auto_promote);
	if (!canaries && f->healthy >= f->desired)
		return;
	o->complete = false;
	if (timed && f->deadline_ns < o->deadline_ns)
		o->deadline_ns = f->deadline_ns;
	o->hopeless |= f->hopeless;
	o->late |= late;
	o->revert |= (f->hopeless || late) && f->auto_revert;
}

enum local_step
local_rule_step(const struct local_outlook *o)
{
	if (o->complete)
		return LOCAL_STEP_SUCCEED;
	if (o->hopeless)
		return LOCAL_STEP_FAIL_UNHEALTHY;
	if (o->late)
		return LOCAL_STEP_FAIL_LATE;
	return o->canaries && o->promotable ? LOCAL_STEP_PROMOTE : LOCAL_STEP_REPLACE;
}
