/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_facts.h: what this machine and the plugins say about volumes, for `drover volume doctor`:
 * mountinfo, the directories below csi/, and the plugins' lists of volumes. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_FACTS_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_FACTS_H

#include "common/err.h"
#include "model/node_answers.h"
#include "proto/ipc_records.h"
#include "supervisor/core/sup.h"

struct volume_facts;

/* Collects the facts; plugins are the ids of those that are asked for their volumes. Gives *f to
 * the callback, which may come within the call and frees it. */
typedef void volume_facts_cb(struct sup *sup, void *arg, struct volume_facts *f);
void volume_facts_collect(
    struct sup *sup, const struct strings *plugins, volume_facts_cb *cb, void *arg);
void volume_facts_free(struct volume_facts *f);

/* A volume's directory below csi/. */
struct volume_path {
	const char *path; /* relative to the data directory */
	struct volume_place place;
	bool staging;
	bool mounted;
	char device[24]; /* of a mount: "8:1" */
	size_t order;    /* of its line in mountinfo, or in which file-helper has found it */
};
/* Returns how many mounts are at this path, relative to the data directory; *ret_device is that of
 * the uppermost, unchanged if there is none. */
unsigned volume_facts_count(
    const struct volume_facts *f, const char *path, const char **ret_device);
/* Returns the i-th mount or directory that no row explains, in the order of their volumes; NULL
 * after the last. */
const struct volume_path *volume_facts_unexplained(const struct volume_facts *f, size_t i);
/* Returns the number of the first one of a volume with this name in paths, if there is one. */
size_t volume_facts_unexplained_from(const struct volume_facts *f, const char *volume);
/* Returns why mounts or directories are not known; NULL if they are. */
const char *volume_facts_error(const struct volume_facts *f);

/* Returns the plugin's list of volumes; NULL with *ret_why if there is none. */
const struct rpc_csi_rep *volume_facts_listing(
    const struct volume_facts *f, const char *plugin, const char **ret_why);

#endif
