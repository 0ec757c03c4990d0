// SPDX-License-Identifier: Apache-2.0
/* nomad_stall.c: finds out that the servers have not heard this node for too long, across restarts
 * and reboots. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_stall.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/alloc/departure.h"
#include "supervisor/cluster/node/nomad_watch.h"

#define GRACE_NS       (10 * NS_PER_S) /* that servers add to the TTL of a heartbeat */
#define WRITE_LEAST_NS NS_PER_S        /* between two writes of the row */

static const struct agent_config *
config_of(const struct nomad *n)
{
	return n->src.base.sup->config;
}

static int64_t
limit_ns(const struct nomad *n)
{
	return (int64_t)config_of(n)->ephemeral_limit_ms * NS_PER_MS;
}

/* The row is written each quarter of the limit, so that a crash makes the node seem to have stalled
 * by this much longer at most. */
void
nomad_stall_heard(struct nomad *n, int64_t ttl_ns)
{
	int64_t now = (int64_t)clock_boot_ns(), rest = limit_ns(n) / 4;

	if (!config_of(n)->ephemeral)
		return;
	n->due_ns = now + ttl_ns + GRACE_NS;
	if (n->due_known &&
	    now - n->due_written_ns < (rest > WRITE_LEAST_NS ? rest : WRITE_LEAST_NS))
		return;
	n->due_known = true;
	n->due_written_ns = now;
	turn_write(n->src.base.sup, &n->node_row);
}

static bool
is_over(const struct nomad *n)
{
	return config_of(n)->ephemeral && n->due_known &&
	       (int64_t)clock_boot_ns() - n->due_ns > limit_ns(n);
}

static bool
renew(struct nomad *n)
{
	struct err e = { 0 };

	if (departure_request(n->src.base.sup, DEPARTURE_FORGOTTEN, 0, NULL, &e) < 0)
		return false; /* it lands or retires, which ends what it has, too */
	nomad_watch_stop(n);
	return true;
}

bool
nomad_stall_stops(struct nomad *n)
{
	struct sup *sup = n->src.base.sup;

	if (departure_is_renewing(sup))
		return true;
	if (departure_state(sup) != DEPARTURE_NONE || !is_over(n))
		return false;
	return !*link_server(sup) || renew(n);
}

bool
nomad_stall_forgotten(struct nomad *n)
{
	if (departure_is_renewing(n->src.base.sup))
		return true;
	return config_of(n)->ephemeral && departure_state(n->src.base.sup) == DEPARTURE_NONE &&
	       renew(n);
}

/* --- the row --- */

void
nomad_stall_format(const struct nomad *n, char ret[NOMAD_STALL_TEXT_SIZE])
{
	int64_t left = n->due_ns - (int64_t)clock_boot_ns();

	ret[0] = '\0';
	if (n->due_known)
		(void)snprintf(ret, NOMAD_STALL_TEXT_SIZE, "%s %lld %lld", n->src.base.sup->boot_id,
		    (long long)n->due_ns, (long long)(clock_real_ns() + left));
}

/* After a reboot only the date says how long the node was away. */
void
nomad_stall_parse(struct nomad *n, const char *text)
{
	char boot[BOOT_ID_SIZE];
	long long due, due_real;

	_Static_assert(BOOT_ID_SIZE == 37, "the width in the format");
	if (sscanf(text, "%36s %lld %lld", boot, &due, &due_real) != 3)
		return;
	n->due_known = true;
	n->due_ns = due;
	if (strcmp(boot, n->src.base.sup->boot_id) != 0)
		n->due_ns = (int64_t)clock_boot_ns() + due_real - clock_real_ns();
}
