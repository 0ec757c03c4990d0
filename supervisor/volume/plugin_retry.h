/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_retry.h: decides when a call to a CSI plugin is repeated, waits for an instance of the
 * plugin, or fails; plugin_calls.c does it. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_RETRY_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* A call is sent at most twice: the plugin's task may end during the call. */
#define PLUGIN_TRIES_MAX 2
/* How long a call waits for an instance that answers. */
#define PLUGIN_WAIT_USEC 60000000
/* How long a call waits at least, because an instance that has ended may be about to be replaced.
 */
#define PLUGIN_GRACE_USEC 1000000

enum plugin_retry {
	PLUGIN_RETRY_NO,    /* the error ends the call */
	PLUGIN_RETRY_NOW,   /* to the same instance */
	PLUGIN_RETRY_LATER, /* when an instance answers */
};

/* lost: how often the connection was lost during the call, including now. instance: the call is for
 * one instance only. */
enum plugin_retry plugin_retry_lost(unsigned lost, bool instance);

struct plugin_wait_facts {
	unsigned lost;
	uint64_t waited_usec;
	bool wanted; /* an alloc of the plugin runs or will run on this node */
};

/* Returns why a call that waits for an instance fails now; NULL if it goes on waiting. */
const char *plugin_wait_failure(const struct plugin_wait_facts *f);

#endif
