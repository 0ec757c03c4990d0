/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_inst.h: an instance of a CSI plugin and its channel, as plugins.c (the registry) and
 * plugin_calls.c (the calls) share them; nobody else includes it. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_INST_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_INST_H

#include "common/list.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/volume/plugins.h"

struct plugin_channel;

struct plugin {
	LIST_ENTRY(plugin) link; /* all instances, newest first */
	struct sup *sup;
	char *id, *socket, *container_root;
	enum csi_plugin_kind kind;
	struct id alloc, run;
	bool runs, registered, healthy;
	bool answered; /* its fingerprint is complete since the start of its task */
	struct csi_info *controller, *node;
	struct plugin_caps caps;
	int64_t health_since_ns;
	struct plugin_channel *channel; /* for new calls; NULL: none is open */
	uint64_t opening;               /* the request of the next one; 0: none */
	uint64_t opening_no;            /* the number of that channel */
	uint64_t channel_opened;        /* the number of the last one that was opened */
};

struct plugins {
	LIST_HEAD(, plugin) instances;
	LIST_HEAD(, plugin_call) calls;
	LIST_HEAD(, plugin_hold) holds;
	struct sup_timer check;       /* set while calls wait for an instance */
	uint64_t check_usec;          /* when it fires */
	uint64_t channel_no;          /* of the last channel */
	struct plugin_count **counts; /* plugin_counts.h */
	size_t n_counts;
};

/* plugin_calls.c: */
/* p's task has ended: cancels the calls that are for p only, lets the others wait for the next
 * instance, and closes the channel. */
void plugin_calls_abandon(struct plugin *p);
/* Looks soon for calls that wait for an instance: one has answered. */
void plugin_calls_check(struct sup *sup);

#endif
