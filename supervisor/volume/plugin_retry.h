/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_retry.h: decides when a call to a CSI plugin is repeated, waits for an instance of the
 * plugin, or fails; plugin_calls.c does it. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_RETRY_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/volume/csi_error.h"

/* How often a call is sent at most, a pending one aside. */
#define PLUGIN_TRIES_MAX 3
/* A call of a fingerprint is repeated once, because the plugin may have closed the connection. */
#define PLUGIN_TRIES_ONCE 2
/* The first wait before a call is repeated, which doubles with each try; and the longest. */
#define PLUGIN_BACKOFF_USEC     100000
#define PLUGIN_BACKOFF_MAX_USEC 5000000
/* A pending call is repeated for so many of its timeouts: the plugin still works on an earlier one,
 * and has as long for that. */
#define PLUGIN_PENDING_TIMEOUTS 2
/* How long a call waits for an instance that answers. */
#define PLUGIN_WAIT_USEC 60000000
/* How long a call waits at least, because an instance that has ended may be about to be replaced.
 */
#define PLUGIN_GRACE_USEC 1000000

struct plugin_try_facts {
	enum csi_verdict verdict; /* of the last try; a lost connection is CSI_RETRY */
	bool once;                /* csi_call_is_once() */
	unsigned failed;          /* tries that ended so, including the last */
	unsigned pending;         /* tries that were answered with CSI_PENDING */
	uint64_t pending_usec;    /* since the first of them */
	uint64_t timeout_usec;
};

/* Returns after how long the call is sent again; 0 if it has ended. */
uint64_t plugin_retry_usec(const struct plugin_try_facts *f);

struct plugin_wait_facts {
	unsigned lost;
	uint64_t waited_usec;
	bool wanted; /* an alloc of the plugin runs or will run on this node */
};

/* Returns why a call that waits for an instance fails now; NULL if it goes on waiting. */
const char *plugin_wait_failure(const struct plugin_wait_facts *f);

#endif
