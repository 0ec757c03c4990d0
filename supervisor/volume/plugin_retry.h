/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_retry.h: when a call to a CSI plugin is repeated, waits for an instance of the plugin, or
 * fails: the decision, without its effects. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_RETRY_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_RETRY_H

#include <stdbool.h>
#include <stdint.h>

/* How often a call is sent at most: its plugin's task may end while it is on its way. */
#define PLUGIN_TRIES_MAX 2
/* How long a call waits for an instance that answers. */
#define PLUGIN_WAIT_USEC 60000000
/* An instance that ends may just be replaced: a call does not fail before that. */
#define PLUGIN_GRACE_USEC 1000000

enum plugin_retry {
	PLUGIN_RETRY_NO,    /* the answer is the call's end */
	PLUGIN_RETRY_NOW,   /* the call is for this instance alone */
	PLUGIN_RETRY_LATER, /* when an instance answers */
};

/* lost: how often the connection has been lost during the call, this time included. */
enum plugin_retry plugin_retry_lost(unsigned lost, bool instance);

struct plugin_wait_facts {
	unsigned lost;
	uint64_t waited_usec;
	bool wanted; /* an alloc of the plugin runs on this node, or is to */
};

/* Why a call that waits for an instance need not wait any longer. NULL: it goes on waiting. */
const char *plugin_retry_give_up(const struct plugin_wait_facts *f);

#endif
