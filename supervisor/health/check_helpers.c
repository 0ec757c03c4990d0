// SPDX-License-Identifier: Apache-2.0
/* check_helpers.c: a round trip through the queue of each process of drover that runs. Runs in:
 * supervisor. */
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/mem.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/health/check_memory.h"

#define ANSWER_MS 10000

struct helper_check {
	struct check c;
	uint64_t call;
};

/* The others are started by their first work. */
static const enum ipc_peer always[] = { IPC_EXEC_HELPER, IPC_MOUNT_HELPER, IPC_HEARTBEAT };
static const enum ipc_peer sometimes[] = { IPC_CSI_HELPER, IPC_CHECK_HELPER, IPC_JOB_PARSER,
	IPC_FETCHER, IPC_TEMPLATE_RENDERER, IPC_LISTENER, IPC_IMAGE_FETCHER, IPC_IMAGE_UNPACKER,
	IPC_NETWORK_HELPER };

static void
on_late(struct check *c)
{
	struct helper_check *h = container_of(c, struct helper_check, c);

	child_call_cancel(c->sup, h->call);
	free(h);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct helper_check *h = arg;

	check_end(
	    &h->c, r < 0 ? HEALTH_FAILED : HEALTH_OK, r < 0 ? "%s" : NULL, r < 0 ? e->msg : "");
	free(h);
}

static void
check_helper(struct sup *sup, enum ipc_peer peer)
{
	struct helper_check *h = mem_new(struct helper_check);
	char name[64];

	(void)snprintf(name, sizeof name, "helper/%s", ipc_peer_name(peer));
	if (turn_is_stuck(sup, NULL) || !check_is_well(sup, "state")) {
		check_report(sup, name, HEALTH_UNKNOWN,
		    "not checked: nothing is sent while state.db cannot be written");
		free(h);
		return;
	}
	check_begin(&h->c, sup, name, on_late);
	check_step(&h->c, "wait for its answer", ANSWER_MS);
	h->call = child_ping(sup, peer, on_answer, h);
}

/* The check of the disk needs it, and all others need the disk. */
void
check_file_helper(struct sup *sup)
{
	check_helper(sup, IPC_FILE_HELPER);
}

void
check_helpers(struct sup *sup)
{
	for (size_t i = 0; i < ELEMENTSOF(always); i++)
		check_helper(sup, always[i]);
	for (size_t i = 0; i < ELEMENTSOF(sometimes); i++)
		if (child_pid(sup, sometimes[i]))
			check_helper(sup, sometimes[i]);
}
