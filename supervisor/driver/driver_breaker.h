/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_breaker.h: stops starts with a driver that does not work on this node. After some starts
 * in a row that failed through no fault of their tasks, a probe finds out whether the driver works
 * (health/probe.h). If not, it is unhealthy: new starts wait, and the source places nothing for it.
 * Probes go on, and the first good one ends that. Tasks that run are not touched. A driver that
 * lacks what it needs on this machine (driver_check_needs()) is unhealthy from the start. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_DRIVER_BREAKER_H
#define DROVER_SUPERVISOR_DRIVER_DRIVER_BREAKER_H

#include <stdbool.h>
#include <sys/queue.h>

#include "supervisor/core/sup.h"

struct driver_breaker;

/* A start that waits. Starts as zeros, with ready set. */
struct driver_wait {
	TAILQ_ENTRY(driver_wait) link;
	struct driver_breaker *of; /* NULL: it does not wait */
	void (*ready)(struct driver_wait *w);
};

void driver_breakers_new(struct sup *sup);
void driver_breakers_free(struct sup *sup);
/* After drivers_fingerprint(): drivers that did not work before a restart, or cannot work on this
 * machine, are unhealthy until a probe finds that they work. */
void driver_breakers_load(struct sup *sup);
/* How a probe is begun, whose results come by driver_probed(). Without it no driver is stopped. */
void driver_breakers_use_probe(struct sup *sup, void (*probe)(struct sup *sup));

/* A start has failed because of this node, or has worked. */
void driver_start_failed(struct sup *sup, const char *driver);
void driver_start_worked(struct sup *sup, const char *driver);
/* Looks again whether the driver has what it needs on this machine; if not, returns true, and the
 * driver is unhealthy. */
bool driver_lacks_need(struct sup *sup, const char *driver);
/* Returns whether the driver does not work, or its last starts have failed because of this node. */
bool driver_is_suspect(struct sup *sup, const char *driver);
/* The result of a probe; why: NULL if the driver works. It counts only if a breaker asked for it.
 */
void driver_probed(struct sup *sup, const char *driver, const char *why);
/* A probe has ended without a result for the driver: it stays what it was. */
void driver_not_probed(struct sup *sup, const char *driver);

/* Returns whether a task with this driver may start. If not, w->ready() is called when it may, and
 * it asks again. */
bool driver_admits(struct sup *sup, const char *driver, struct driver_wait *w);
/* Ignores one that does not wait. */
void driver_wait_cancel(struct driver_wait *w);
/* Returns why starts with this driver wait; NULL: they do not, or only until its first test. */
const char *driver_stopped_why(struct sup *sup, const char *driver);

#endif
