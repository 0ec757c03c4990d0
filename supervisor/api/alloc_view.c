// SPDX-License-Identifier: Apache-2.0
/* alloc_view.c: builds the API's view of an alloc. Runs in: supervisor. */
#include "supervisor/api/alloc_view.h"

#include "common/number.h"
#include "supervisor/http/api_filter.h"

struct sums {
	int64_t cpu, cores, memory_mb, memory_max_mb, disk_mb;
};

static json_t *
print_sums(const struct sums *s)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:n, s:n}", "CPU", (json_int_t)s->cpu,
	    "Cores", (json_int_t)s->cores, "MemoryMB", (json_int_t)s->memory_mb, "MemoryMaxMB",
	    (json_int_t)s->memory_max_mb, "DiskMB", (json_int_t)s->disk_mb, "IOPS", 0, "Networks",
	    "Devices");
}

/* The maximum of a task without memory_max is its reservation. */
static void
add_task(struct sums *all, const struct sums *task)
{
	all->cpu = number_add(all->cpu, task->cpu);
	all->cores += task->cores;
	all->memory_mb = number_add(all->memory_mb, task->memory_mb);
	all->memory_max_mb = number_add(
	    all->memory_max_mb, task->memory_max_mb > 0 ? task->memory_max_mb : task->memory_mb);
}

/* Sums up the resources of the alloc and of each task. Clients of the API dereference Resources,
 * and show no usage for a task without resources of its own. */
static void
fill_sums(struct alloc *view)
{
	const struct alloc_resources *res = view->allocated_resources;
	struct sums shared = { .disk_mb = res->shared.disk_mb }, all = shared;
	json_t *tasks = json_object();

	for (size_t i = 0; i < res->tasks.n; i++) {
		const struct alloc_task_resources *t = &res->tasks.v[i].value;
		struct sums task = { .cpu = t->cpu.cpu_shares,
			.cores = (int64_t)t->cpu.reserved_cores.n,
			.memory_mb = t->memory.memory_mb,
			.memory_max_mb = t->memory.memory_max_mb };

		add_task(&all, &task);
		(void)json_object_set_new(tasks, res->tasks.v[i].key, print_sums(&task));
	}
	view->resources = print_sums(&all);
	view->shared_resources = print_sums(&shared);
	view->task_resources = tasks;
}

void
alloc_view_init(struct alloc *view, const struct sup_alloc *sa)
{
	*view = sa->a;
	view->signed_identities = (struct string_map){ 0 };
	view->job = &sa->job->job;
	json_incref(view->resources);
	json_incref(view->shared_resources);
	json_incref(view->task_resources);
	if (!view->resources && view->allocated_resources)
		fill_sums(view);
}

void
alloc_view_done(struct alloc *view)
{
	json_decref(view->resources);
	json_decref(view->shared_resources);
	json_decref(view->task_resources);
}

struct sup_alloc *
api_alloc(const struct api_req *req)
{
	struct id id;

	return id_from_uuid(api_param(req, 0), &id) ? alloc_find(api_req_sup(req), &id) : NULL;
}

void
api_list_add_alloc(struct api_list *list, struct sup_alloc *sa)
{
	static const struct type *const types[] = { &alloc_stub_type, &alloc_stub_resources_type };
	struct alloc whole, stub;

	alloc_fill_stub(&sa->a, &sa->job->job);
	stub = whole = sa->a; /* the view shares all members but these */
	/* The job is the largest part of an alloc and seldom needed, so it is encoded only on
	 * request. */
	if (list->filter && api_filter_refers_to(list->filter, "Job"))
		whole.job = &sa->job->job;
	whole.signed_identities = (struct string_map){ 0 };
	if (list->no_task_states)
		(void)memset(&stub.task_states, 0, sizeof stub.task_states);
	api_list_add_stub(list, types[list->resources], &stub, &alloc_type, &whole);
}
