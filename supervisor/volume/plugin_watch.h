/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_watch.h: fingerprints and supervises one instance of a CSI plugin: probes it until it
 * answers, asks what it is and can do, registers it, and then probes it every 30 s. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_WATCH_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_WATCH_H

#include "supervisor/volume/plugins.h"

struct plugin_watch;

/* Never called from within a call below. */
struct plugin_watch_events {
	/* It does not answer yet. Called some seconds after the start, and again when the cause
	 * changes. left_usec is the rest of the health timeout. */
	void (*waits)(void *arg, const char *cause, uint64_t left_usec);
	/* It answers, for the first time or again. */
	void (*healthy)(void *arg);
	/* It was healthy and is not any more. */
	void (*unhealthy)(void *arg, const char *cause);
	/* It has not been healthy before the health timeout. It is still probed, unless this
	 * callback stops that. */
	void (*expired)(void *arg, const char *cause);
};

/* p outlives the result. */
struct plugin_watch *plugin_watch_new(
    struct sup *sup, struct plugin *p, const struct plugin_watch_events *ev, void *arg);
void plugin_watch_free(struct plugin_watch *w); /* ignores NULL */
/* A new process is the instance: begins again. plugin_set_run() comes before. */
void plugin_watch_start(struct plugin_watch *w, uint64_t health_timeout_usec);
void plugin_watch_stop(struct plugin_watch *w);

#endif
