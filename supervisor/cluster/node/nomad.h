/* SPDX-License-Identifier: Apache-2.0 */
/* nomad.h: a cluster of Nomad servers as a source of work: shared types and functions. The servers
 * decide; this room stores their decisions about this node's allocs and reports the results. Runs
 * in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_NOMAD_H

#include "common/clock.h"
#include "common/list.h"
#include "supervisor/alloc/client.h"
#include "supervisor/cluster/link/link.h"
#include "supervisor/cluster/rpc/rpc.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/http/api.h"
#include "supervisor/service/service_table.h"
#include "supervisor/source/source_api.h"

struct nomad_alloc;
struct nomad_claiming;
struct nomad_detach;
struct nomad_invalid;
struct nomad_job;
struct nomad_signing;
struct nomad_values;
struct nomad_volume_watch;
struct acl_known;

enum watch_state {
	WATCH_OFF,   /* the node is not registered */
	WATCH_LIST,  /* Node.GetClientAllocs is in progress */
	WATCH_PULL,  /* Alloc.GetAllocs is in progress */
	WATCH_WAIT,  /* waits for a timer */
	WATCH_DOUBT, /* waits for a beat before a suspicious list is confirmed */
};

struct nomad {
	struct link_source src;

	/* nomad_register.c */
	bool registered; /* registered once with this id; durable */
	bool ready;      /* registered since this process started */
	bool denied;     /* the token was refused: the next registration has no token */
	bool unknown;    /* the servers did not know the node, so they may have lost other state */
	char *identity;  /* JWT; NULL: none */
	bool renew_identity;
	enum node_eligibility eligibility; /* as the servers have set it */
	struct dirty node_row;
	struct node sent; /* the node as last registered */
	uint64_t register_call, register_at_ms;
	struct sup_timer register_timer;
	unsigned register_failures;
	/* After each registration. first: of this process. anew: the servers lost older reports. */
	void (*on_registered)(struct nomad *n, bool first, bool anew);

	/* nomad_stall.c: when the servers' patience ends after their last answer, in ns of
	 * CLOCK_BOOTTIME; negative if that was before the boot. Only with client { ephemeral } */
	int64_t due_ns, due_written_ns;
	bool due_known;

	/* nomad_clock.c: the start of this machine, s since 1970 by the servers' clock; 0: unknown
	 */
	int64_t servers_boot_s;

	/* nomad_events.c */
	struct {
		struct dirty row;
		size_t n_unsent; /* of the node's events, the last ones */
		size_t n_added;  /* since the call was made */
		bool failing;
		uint64_t call;
		struct sup_timer timer;
	} events;

	/* nomad_node.c */
	struct text beat; /* the body of the last beat */
	uint64_t beats;   /* number of answered beats */
	uint64_t beat_ms; /* time of the last answered beat */

	/* nomad_watch.c */
	enum watch_state watch;
	uint64_t watch_call, watch_index, watch_asked_ms;
	struct sup_timer watch_timer;
	unsigned watch_failures;
	bool watch_fresh;  /* the next list is requested from the leader, with index 0 */
	bool watch_synced; /* a list was processed since this process started */
	bool watch_doubt;  /* the last list lacked running allocs and must be confirmed */
	uint64_t doubt_beats;
	struct rpc_client_allocs_rep list; /* the list in progress: ids to be pulled */
	unsigned list_number;
	size_t wanted_at, wanted_n; /* ids in the current GetAllocs */

	/* nomad_allocs.c */
	LIST_HEAD(, nomad_job) jobs;
	LIST_HEAD(, nomad_invalid) invalid;
	TAILQ_HEAD(, nomad_alloc) done; /* ended allocs that may be destroyed, oldest first */
	unsigned n_done;

	LIST_HEAD(, nomad_claiming) claims; /* nomad_claims.c */
	LIST_HEAD(, nomad_volume_watch) volume_watches;
	unsigned n_volume_watches;
	struct nomad_values *values;
	LIST_HEAD(, nomad_signing) signings; /* nomad_sign.c */
	LIST_HEAD(, nomad_detach) detaches;  /* nomad_detach.c */
	LIST_HEAD(, task_check) checks;      /* nomad_task.c */
	TAILQ_HEAD(, acl_known) tokens;      /* acl_token.c: the last used first */
	unsigned n_queries;                  /* nomad_api.c: blocking queries at the servers */

	/* nomad_services.c */
	struct service_table services;      /* services of allocs */
	struct service_table services_gone; /* services to be deregistered, or being deregistered */
	uint64_t services_call;             /* Upsert */
	struct deferred services_send;
	struct sup_timer services_timer;
	unsigned services_failures;
	size_t services_sent; /* services in that call */
	bool services_single; /* a batch was refused: services are sent one by one */

	/* nomad_update.c */
	LIST_HEAD(, nomad_alloc) pending; /* allocs that have changed, the last first */
	struct text update_body;          /* of the alloc whose hash is computed */
	uint64_t update_call, update_sent_ms;
	struct sup_timer update_timer;
	uint64_t update_due_ms; /* time of the timer; 0: off */
	unsigned update_failures;

	/* nomad_leave.c. leave is NULL unless the agent ends. */
	void (*leave)(struct sup *sup, int r, const struct err *e);
	bool leave_spares_system;
	struct sup_timer leave_timer;
	leave_cb *departs; /* of deregister() and come_back() */
	uint64_t departs_call;
	char *departs_token; /* NULL: the node's own */
	bool back_eligible;  /* come_back() makes the node eligible */
	bool departed; /* the servers have forgotten the node, which must not register again */
};

static inline struct nomad *
nomad_of(struct source *s)
{
	return container_of(s, struct nomad, src.base);
}

static inline struct nomad *
nomad_of_sup(struct sup *sup)
{
	return nomad_of(sup->source);
}

#endif
