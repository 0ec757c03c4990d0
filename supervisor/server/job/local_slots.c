// SPDX-License-Identifier: Apache-2.0
/* local_slots.c: the groups of a job and the slots of its allocs. Runs in: supervisor. */
#include "supervisor/server/job/local_slots.h"

#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/mem.h"

struct local_group *
local_group_find(const struct local_job *j, const char *name)
{
	for (size_t i = 0; i < j->n_groups; i++) {
		if (strcmp(j->groups[i]->name, name) == 0)
			return j->groups[i];
	}
	return NULL;
}

static struct local_group *
get_group(struct local_job *j, const char *name)
{
	struct local_group *g = local_group_find(j, name);

	if (g)
		return g;
	g = mem_new(struct local_group);
	g->name = mem_strdup(name);
	TAILQ_INIT(&g->other.slots);
	j->groups = mem_resize(j->groups, j->n_groups + 1, sizeof(struct local_group *));
	j->groups[j->n_groups++] = g;
	return g;
}

static struct local_slot *
new_slot(struct local_job *j, struct local_group *g, size_t index, bool canary)
{
	struct local_slot *slot = mem_new(struct local_slot);

	slot->job = j;
	slot->group = g;
	slot->index = (int64_t)index;
	slot->canary = canary;
	return slot;
}

static struct local_slot *
get_slot(struct local_job *j, const char *group, int64_t index, bool canary)
{
	struct local_group *g = index < 0 ? NULL : get_group(j, group);
	struct local_slot ***list;
	size_t *n;

	if (!g)
		return NULL;
	list = canary ? &g->canaries : &g->slots;
	n = canary ? &g->n_canaries : &g->n_slots;
	if ((size_t)index >= *n)
		*list = mem_resize(*list, (size_t)index + 1, sizeof(struct local_slot *));
	for (; (size_t)index >= *n; ++*n)
		(*list)[*n] = new_slot(j, g, *n, canary);
	return (*list)[index];
}

struct local_slot *
local_slot_get(struct local_job *j, const char *group, int64_t index)
{
	return get_slot(j, group, index, false);
}

struct local_slot *
local_canary_get(struct local_job *j, const char *group, int64_t index)
{
	return get_slot(j, group, index, true);
}

static void
free_slots(struct local_slot **slots, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sup_timer_cancel(&slots[i]->reschedule);
		free(slots[i]);
	}
	free(slots);
}

void
local_slots_free(struct local_job *j)
{
	for (size_t i = 0; i < j->n_groups; i++) {
		free_slots(j->groups[i]->slots, j->groups[i]->n_slots);
		free_slots(j->groups[i]->canaries, j->groups[i]->n_canaries);
		free(j->groups[i]->name);
		free(j->groups[i]);
	}
	free(j->groups);
}
