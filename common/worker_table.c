// SPDX-License-Identifier: Apache-2.0
/* worker_table.c: finds workers by id. Runs in: fetcher, image-fetcher. */
#include "common/worker_table.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

int
worker_table_open(struct worker_table *t, struct err *e)
{
	t->told = mmap(NULL, WORKERS_MAX * t->told_size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return t->told == MAP_FAILED ? err_set(e, -errno, "make the memory for progress") : 0;
}

/* Returns the worker of the entry; NULL: it has ended, or the entry is free. */
static const struct worker *
worker_of(const struct worker_table *t, int i)
{
	for (const struct worker *w = t->workers->v; w < t->workers->v + WORKERS_MAX; w++)
		if (t->v[i].serial && w->pid > 0 && w->serial == t->v[i].serial)
			return w;
	return NULL;
}

int
worker_table_find(const struct worker_table *t, const struct id *id)
{
	for (int i = 0; i < WORKERS_MAX; i++)
		if (id_equal(&t->v[i].id, id) && worker_of(t, i))
			return i;
	return -1;
}

int
worker_table_add(struct worker_table *t, const struct id *id, uint32_t serial)
{
	int i = 0;

	while (i < WORKERS_MAX && worker_of(t, i))
		i++;
	if (i == WORKERS_MAX || id_is_zero(id) || worker_table_find(t, id) >= 0)
		return -1;
	t->v[i].id = *id;
	t->v[i].serial = serial;
	memset(worker_table_told(t, i), 0, t->told_size);
	return i;
}

bool
worker_table_runs(const struct worker_table *t, int i)
{
	return worker_of(t, i) != NULL;
}

void *
worker_table_told(const struct worker_table *t, int i)
{
	return t->told + (size_t)i * t->told_size;
}

/* A worker is the leader of a process group, to which its programs belong. */
void
worker_table_cancel(const struct worker_table *t, const struct id *id)
{
	int i = worker_table_find(t, id);
	const struct worker *w = i >= 0 ? worker_of(t, i) : NULL;

	if (w && kill(-w->pid, SIGKILL) < 0)
		(void)kill(w->pid, SIGKILL);
}
