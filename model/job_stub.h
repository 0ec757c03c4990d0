/* SPDX-License-Identifier: Apache-2.0 */
/* job_stub.h: a job as lists show it, with counts of its allocs. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_JOB_STUB_H
#define DROVER_MODEL_JOB_STUB_H

#include "model/job.h"

/* An element of a list of jobs: Nomad's JobListStub. summary: counts by group name. */
struct group_summary {
	int64_t queued, complete, failed, running, starting, lost, unknown;
};

struct job_children {
	int64_t pending, running, dead;
};

struct job_summary {
	char *job_id, *namespace;
	MODEL_MAP(struct group_summary) summary;
	struct job_children children;
	uint64_t create_index, modify_index;
};

struct job_stub {
	char *id, *parent_id, *name, *namespace;
	struct strings datacenters;
	char *node_pool;
	enum job_kind type;
	int64_t priority;
	bool periodic, parameterized, stop;
	enum job_status status;
	char *status_description;
	struct job_summary job_summary;
	uint64_t create_index, modify_index, job_modify_index;
	int64_t submit_time;
	uint64_t version;
};

MODEL_DECLARE(group_summary);
MODEL_DECLARE(job_summary);
MODEL_DECLARE(job_stub);

/* Fills all of the stub but its summary. */
void job_stub_fill(struct job_stub *stub, const struct job *job);

#endif
