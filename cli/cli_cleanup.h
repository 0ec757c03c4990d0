/* SPDX-License-Identifier: Apache-2.0 */
/* cli_cleanup.h: what drover cleanup finds and removes. Runs in: cli, as root. */
#ifndef DROVER_CLI_CLI_CLEANUP_H
#define DROVER_CLI_CLI_CLEANUP_H

#include <limits.h>

#include "cli/cli.h"
#include "common/list.h"
#include "model/engine/field.h"

/* The cgroups of one agent. */
struct cleanup_group {
	SLIST_ENTRY(cleanup_group) link;
	char *parent;   /* "/drover-1a2b3c4d", below the root of each hierarchy */
	char id[9];     /* the instance: the last 8 characters of parent */
	bool in_use;    /* by an agent that runs */
	bool populated; /* executors or tasks run */
	bool is_gone;   /* populated, and the data directory of its executors does not exist */
	int lock_fd;    /* keeps agents from starting in it until the command ends; -1: none */
	char *data; /* populated: the data directory of its executors, or NULL if it is unknown */
};

struct cleanup {
	struct cli *cli;
	bool dry_run, kills, all, users;
	struct strings data_dirs; /* -data-dir */
	SLIST_HEAD(, cleanup_group) groups;
	json_t *results; /* what the command prints */
	bool runs;       /* an agent or a task is left running, so what it uses is kept */
	bool failed;
};

/* Adds a line to the answer. result: "removed" (with -dry-run shown as "would be removed"), "kept",
 * or "failed", which makes the command fail. */
void cleanup_say(struct cleanup *c, const char *kind, const char *name, const char *result,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* For an operation that returned r with *e; with -dry-run it was not done and r is 0. */
void cleanup_did(struct cleanup *c, const char *kind, const char *name, int r, const struct err *e);

/* Appends where file systems are mounted whose type begins with `type`, in the order of mounting.
 */
int cleanup_mounts(const char *type, struct strings *ret, struct err *e);

/* cli_cleanup_groups.c: finds the cgroups of all agents; removes those that nothing uses, of agents
 * that do not run. */
int cleanup_groups_find(struct cleanup *c, struct err *e);
struct cleanup_group *cleanup_group_of(struct cleanup *c, const char *id); /* or NULL */
void cleanup_groups_remove(struct cleanup *c);
void cleanup_groups_done(struct cleanup *c);

/* cli_cleanup_networks.c: removes the networks that an agent with this runtime directory left, by
 * their plugins. Returns false if some are left: then the directory, which has what the plugins
 * need, must stay. */
bool cleanup_networks(struct cleanup *c, const char *runtime_dir);

/* cli_cleanup_dirs.c: mounts and runtime directories of agents that do not run. An installed agent
 * may only be stopped, so what belongs to it is kept without -all. */
int cleanup_data_dirs(struct cleanup *c, struct err *e);
void cleanup_runtime_dirs(struct cleanup *c);

#endif
