// SPDX-License-Identifier: Apache-2.0
/* nomad_needs.c: refuses an alloc that needs a feature that this node does not have, before
 * anything of it starts. Servers do not check this when they place it. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_needs.h"

#include <errno.h>
#include <string.h>

#include "model/payload.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/driver/driver.h"
#include "supervisor/node/node_state.h"

struct block {
	const char *what;
	size_t offset; /* of its json_t * in struct task */
};

static const struct block task_blocks[] = {
	{ "Vault tokens", offsetof(struct task, vault) },
	{ "Consul tokens", offsetof(struct task, consul) },
	{ "schedules", offsetof(struct task, schedule) },
	{ "secret blocks", offsetof(struct task, secrets) },
};

static int
refuse_feature(struct err *e, const char *what)
{
	return err_say(e, -EINVAL, "drover does not support %s yet", what);
}

static int
check_driver(struct source *s, const struct task *task, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(task->driver));

	if (!driver)
		return err_say(
		    e, -EINVAL, "driver \"%s\" is not available on this node", str(task->driver));
	return driver_usable(s->sup->config, driver, e);
}

static int
check_resources(struct source *s, const struct resources *res, struct err *e)
{
	for (size_t i = 0; res && i < res->networks.n; i++) {
		int r = network_check(&res->networks.v[i], false, e);

		if (r < 0)
			return r;
	}
	if (res && res->devices.n)
		return refuse_feature(e, "devices");
	if (res && res->cores > 0 &&
	    node_get(s->sup)->node_resources.cpu.reservable_cpu_cores.n == 0)
		return err_say(e, -EINVAL, "cores: this node has no cores to reserve");
	return 0;
}

/* Services of Consul are refused. */
static int
check_services(const struct service *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (!str_eq(v[i].provider, SERVICE_PROVIDER_NOMAD))
			return refuse_feature(e, "services of provider \"consul\"");
	return 0;
}

/* A server validates less of an identity or a template than is needed here, where it becomes a
 * file. */
static int
check_files(const struct task *task, struct err *e)
{
	struct problems p = { 0 };
	int r;

	if (task->identity)
		model_validate(&workload_identity_type, task->identity, &p);
	for (size_t i = 0; i < task->identities.n; i++)
		model_validate(&workload_identity_type, &task->identities.v[i], &p);
	for (size_t i = 0; i < task->templates.n; i++)
		model_validate(&task_template_type, &task->templates.v[i], &p);
	r = problems_err(&p, e);
	problems_done(&p);
	return r;
}

static int
check_task(struct source *s, const struct task *task, struct err *e)
{
	int r = check_driver(s, task, e);

	if (r < 0 || (r = check_files(task, e)) < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(task_blocks); i++)
		if (!json_says_nothing(*(
			json_t *const *)(const void *)((const char *)task + task_blocks[i].offset)))
			return refuse_feature(e, task_blocks[i].what);
	if (*str(task->kind))
		return refuse_feature(e, "Consul Connect proxies");
	if (task->dispatch_payload && *str(task->dispatch_payload->file) &&
	    (r = payload_file_check(task->dispatch_payload->file, e)) < 0)
		return r;
	for (size_t i = 0; i < task->volume_mounts.n; i++) {
		if (task->volume_mounts.v[i].propagation_mode > PROPAGATION_PRIVATE)
			return refuse_feature(e, "volume mounts with propagation");
		if (*str(task->volume_mounts.v[i].selinux_label))
			return refuse_feature(e, "volume mounts with a selinux_label");
	}
	r = check_services(task->services.v, task->services.n, e);
	return r < 0 ? r : check_resources(s, task->resources, e);
}

static int
check_group(const struct task_group *group, struct err *e)
{
	int r = check_services(group->services.v, group->services.n, e);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < group->networks.n; i++)
		r = network_check(&group->networks.v[i], true, e);
	if (r == 0 && group->networks.n > 1 && group_own_network(group))
		return refuse_feature(e, "several networks in a group with a network of its own");
	return r;
}

int
nomad_check(struct source *s, const struct sup_alloc *sa, struct err *e)
{
	const struct task_group *group = sa->group;
	struct err why = { 0 };

	if (check_group(group, &why) < 0)
		return err_say(e, -EINVAL, "group \"%s\": %s", str(group->name), why.msg);
	for (size_t i = 0; i < group->tasks.n; i++) {
		const struct task *task = &group->tasks.v[i];

		if (check_task(s, task, &why) < 0)
			return err_say(e, -EINVAL, "task \"%s\": %s", str(task->name), why.msg);
	}
	return 0;
}
