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

enum channel { CHANNEL_CLOSED, CHANNEL_OPENING, CHANNEL_OPEN };

struct plugin {
	LIST_ENTRY(plugin) link; /* all instances, newest first */
	struct sup *sup;
	char *id, *container_root;
	enum csi_plugin_kind kind;
	struct id alloc, run;
	bool runs, registered, healthy;
	bool answered; /* its fingerprint is complete since the start of its task */
	struct csi_info *controller, *node;
	enum channel channel;
	uint64_t channel_no;
	uint32_t helper; /* the generation of the csi-helper that has the channel */
	uint64_t opening;
};

struct plugins {
	LIST_HEAD(, plugin) instances;
	LIST_HEAD(, plugin_call) calls;
	struct sup_timer check; /* set while calls wait for an instance */
	uint64_t check_usec;    /* when it fires */
	uint64_t channel_no;
};

/* plugin_calls.c: */
/* Cancels the calls that are for p only; the other ones on p wait for the next instance. */
void plugin_calls_abandon(struct plugin *p);
void plugin_channel_close(struct plugin *p);
/* Looks soon for calls that wait for an instance: one has answered. */
void plugin_calls_check(struct sup *sup);

#endif
