/* SPDX-License-Identifier: Apache-2.0 */
/* job_volumes_validate.c: finds faults of a group's volumes and their mounts. Runs in: supervisor.
 */
#include <string.h>

#include "common/id.h"
#include "model/engine/table.h"
#include "supervisor/server/job/job_validate.h"

/* Returns true if a volume with this mode can be used by only one alloc at a time. */
static bool
is_for_one(const struct volume_request *v)
{
	return v->access_mode == CSI_SINGLE_NODE_READER ||
	       v->access_mode == CSI_SINGLE_NODE_WRITER ||
	       (v->access_mode == CSI_MULTI_NODE_SINGLE_WRITER && !v->read_only);
}

static void
validate_csi_request(
    const struct volume_request *v, const struct task_group *group, struct problems *p)
{
	if (v->access_mode == CSI_ACCESS_NONE)
		model_problem(p, "access_mode is missing");
	if (v->attachment_mode == CSI_ATTACHMENT_NONE)
		model_problem(p, "attachment_mode is missing");
	if (v->access_mode > CSI_MULTI_NODE_MULTI_WRITER)
		model_problem(
		    p, "access_mode %s is only for host volumes", csi_access_names[v->access_mode]);
	if (v->attachment_mode == CSI_BLOCK_DEVICE && v->mount_options)
		model_problem(p, "block devices cannot have mount_options");
	if (is_for_one(v) && group->count > 1 && !v->per_alloc)
		model_problem(p,
		    "access_mode %s serves one alloc, but the group's count is %lld: use per_alloc",
		    csi_access_names[v->access_mode], (long long)group->count);
	if (*str(v->source) && !name_is_component(v->source))
		model_problem(p, "source \"%.140s\" cannot be the id of a volume", v->source);
}

/* A host volume is a directory that any number of allocations may use at once. */
static void
validate_host_request(const struct volume_request *v, struct problems *p)
{
	if (v->mount_options)
		model_problem(p, "host volumes cannot have mount_options");
	if (v->attachment_mode == CSI_BLOCK_DEVICE)
		model_problem(
		    p, "a host volume is a directory: attachment_mode must be \"file-system\"");
	if (v->access_mode >= CSI_MULTI_NODE_READER &&
	    v->access_mode <= CSI_MULTI_NODE_MULTI_WRITER)
		model_problem(
		    p, "access_mode %s is only for csi volumes", csi_access_names[v->access_mode]);
}

void
volume_request_validate(const struct volume_request *v, const struct task_group *group,
    const struct job *job, struct problems *p)
{
	bool everywhere = job->type == JOB_SYSTEM || job->type == JOB_SYSBATCH;

	if (!*str(v->source))
		model_problem(p, "source is missing");
	if (v->type == VOLUME_NONE)
		model_problem(p, "type must be \"host\" or \"csi\"");
	if (v->type == VOLUME_HOST)
		validate_host_request(v, p);
	if (v->type == VOLUME_CSI)
		validate_csi_request(v, group, p);
	if ((v->access_mode == CSI_SINGLE_NODE_READER || v->access_mode == CSI_MULTI_NODE_READER) &&
	    !v->read_only)
		model_problem(
		    p, "access_mode %s needs read_only = true", csi_access_names[v->access_mode]);
	if (v->per_alloc && everywhere)
		model_problem(p, "per_alloc cannot be used in a %s job", job_kind_names[job->type]);
	if (v->per_alloc && group->update && group->update->canary > 0)
		model_problem(p, "per_alloc cannot be used with canaries");
}

void
volume_mount_validate_local(const struct volume_mount *m, struct problems *p)
{
	if (m->propagation_mode > PROPAGATION_PRIVATE)
		model_problem(p, "volume_mount: propagation_mode must be \"private\": mounts that "
				 "are made below a "
				 "volume later stay where they are made");
	if (*str(m->selinux_label))
		model_problem(
		    p, "volume_mount: selinux_label must be empty: drover labels no files");
}

void
volumes_warn_local(const struct task_group *group, struct problems *p)
{
	for (size_t i = 0; i < group->volumes.n; i++)
		if (group->volumes.v[i].value.access_mode == HOST_SINGLE_WRITER)
			model_problem(p,
			    "volume \"%.80s\": access_mode single-node-single-writer is not "
			    "enforced "
			    "for host volumes of the configuration",
			    group->volumes.v[i].key);
}
