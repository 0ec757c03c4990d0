/* SPDX-License-Identifier: Apache-2.0 */
/* alloc.h: an allocation. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ALLOC_H
#define DROVER_MODEL_ALLOC_H

#include "model/alloc_resources.h"
#include "model/engine/field.h"
#include "model/job.h"
#include "model/task_state.h"

enum desired_status { DESIRED_NONE, DESIRED_RUN, DESIRED_STOP, DESIRED_EVICT };
enum client_status {
	CLIENT_NONE,
	CLIENT_PENDING,
	CLIENT_RUNNING,
	CLIENT_COMPLETE,
	CLIENT_FAILED,
	CLIENT_LOST,
	CLIENT_UNKNOWN
};

struct node_score {
	char *node_id;
	json_t *scores;
	double norm_score;
};

/* Never null in an alloc. An evaluation's FailedTGAllocs has them too. */
struct alloc_metric {
	int64_t nodes_evaluated, nodes_filtered, nodes_in_pool;
	char *node_pool;
	struct int_map nodes_available, class_filtered, constraint_filtered;
	int64_t nodes_exhausted;
	struct int_map class_exhausted, dimension_exhausted;
	struct strings quota_exhausted;
	json_t *resources_exhausted, *scores;
	int64_t allocation_time; /* ns */
	int64_t coalesced_failures;
	MODEL_LIST(struct node_score) score_meta_data;
};

struct desired_transition {
	enum opt_bool migrate, reschedule, force_reschedule, no_shutdown_delay,
	    migrate_disable_placement;
};

struct alloc_state_change {
	int64_t field; /* 0: ClientStatus */
	char *value;
	int64_t time;
};

struct deployment_status {
	enum opt_bool healthy;
	int64_t timestamp;
	bool canary;
	uint64_t modify_index;
};

struct alloc_network_status {
	char *interface_name, *address, *address_ipv6;
	struct dns_config *dns;
};

struct reschedule_event {
	int64_t reschedule_time; /* ns */
	char *prev_alloc_id, *prev_node_id;
	int64_t delay;
};

struct reschedule_tracker {
	MODEL_LIST(struct reschedule_event) events;
	char *last_reschedule;
};

struct alloc {
	char *id, *namespace, *eval_id, *name, *node_id, *node_name, *job_id;
	struct job *job; /* NULL where the job is stored separately; see alloc_bare_type */
	char *task_group;
	json_t *resources, *shared_resources, *task_resources; /* legacy: null in our own */
	struct alloc_resources *allocated_resources;
	struct alloc_metric metrics;
	enum desired_status desired_status;
	char *desired_description;
	struct desired_transition desired_transition;
	enum client_status client_status;
	char *client_description;
	MODEL_MAP(struct task_state) task_states;
	MODEL_LIST(struct alloc_state_change) alloc_states;
	char *deployment_id;
	struct deployment_status *deployment_status;
	char *followup_eval_id, *previous_allocation, *next_allocation;
	struct reschedule_tracker *reschedule_tracker;
	struct alloc_network_status *network_status;
	struct strings preempted_allocations;
	char *preempted_by_allocation;
	struct string_map signed_identities;
	char *signing_key_id;
	uint64_t create_index, modify_index, alloc_modify_index;
	int64_t create_time, modify_time; /* ns */
	/* In stubs: copied from the job by alloc_fill_stub(). */
	enum job_kind job_kind;
	uint64_t job_version;
};

MODEL_DECLARE(node_score);
MODEL_DECLARE(alloc_metric);
MODEL_DECLARE(alloc_state_change);
MODEL_DECLARE(deployment_status);
MODEL_DECLARE(alloc_network_status);
MODEL_DECLARE(reschedule_event);
MODEL_DECLARE(reschedule_tracker);
MODEL_DECLARE(alloc);
/* Other tables of struct alloc: without its job, for state.db; and as lists show it. */
extern const struct type alloc_bare_type;
extern const struct type alloc_stub_type;
extern const struct type alloc_stub_resources_type; /* for ?resources=true */
/* A node's update for the servers, which replace all of these fields each time. */
extern const struct type alloc_update_type;
/* Only the identity and the desired status, for an alloc whose job cannot be decoded. */
extern const struct type alloc_head_type;

extern const char *const desired_status_names[DESIRED_EVICT + 1];
extern const char *const client_status_names[CLIENT_UNKNOWN + 1];

/* Sets job_kind and job_version from job, for a stub. */
void alloc_fill_stub(struct alloc *a, const struct job *job);
/* Returns the number in "job.group[3]", or -1. */
int64_t alloc_name_index(const char *name);
const struct task_group *alloc_group(const struct alloc *a);
/* Returns the CPU resources that the source allocated for the task, or NULL if there are none. */
const struct alloc_cpu *alloc_task_cpu(const struct alloc *a, const char *task);
/* Returns the memory that the source allocated for the task, else the job's request. */
struct alloc_memory alloc_task_memory(const struct alloc *a, const struct task *task);

bool client_status_is_terminal(enum client_status s);
bool alloc_client_terminal(const struct alloc *a);
bool alloc_server_terminal(const struct alloc *a);
bool alloc_terminal(const struct alloc *a); /* desired or client status is terminal */
/*
 * Returns the client status that follows from the states of all the group's tasks; *ret_description
 * is constant text. A task without a state counts as pending.
 */
enum client_status alloc_client_status(
    const struct alloc *a, const struct task_group *group, const char **ret_description);

#endif
