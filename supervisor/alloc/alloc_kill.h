/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_kill.h: how the tasks of an alloc are ended, step by step. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_KILL_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_KILL_H

#include <stdbool.h>
#include <stdint.h>

struct alloc_runner;
struct sd_event_source;

/* Which tasks are told to end; each step waits for the end of the one before. */
enum kill_step {
	KILL_NOT,
	KILL_DELAY, /* the group's shutdown_delay */
	KILL_LEADER,
	KILL_OTHERS,
	KILL_SIDECARS,
	KILL_OVER, /* poststop tasks end by themselves */
};

/* In an alloc runner; alloc_kill.c writes it. */
struct alloc_kill {
	enum kill_step step;
	struct sd_event_source *timer; /* the group's shutdown_delay */
	int64_t after_ns; /* when that is over, by CLOCK_REALTIME; 0: it has not begun */
};

/* Ends the tasks, all but poststop ones: called again whenever a task changes. */
void alloc_kill(struct alloc_runner *ar);
/* Ends the group's shutdown_delay now. */
void alloc_kill_hurry(struct alloc_runner *ar);
/* Ends the poststop tasks too, also before they start. */
void alloc_kill_poststop(struct alloc_runner *ar);
void alloc_kill_done(struct alloc_runner *ar);

/* An operator or a full disk has asked to leave out shutdown_delay. */
bool alloc_skips_delay(const struct alloc_runner *ar);
/* The group's shutdown_delay; 0: none, or it is left out. */
int64_t alloc_shutdown_delay_ns(const struct alloc_runner *ar);

#endif
