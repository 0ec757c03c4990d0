// SPDX-License-Identifier: Apache-2.0
/*
 * template_limits.c: what the templates of one task, and of all tasks, may ask for and hold in
 * memory. Outputs are held from their rendering until a start or a running task has the files
 * (those of `once` templates longer); a task that waits for one value holds all others. The limit
 * of the node is for tasks that wait. Runs in: supervisor.
 */
#include "common/list.h"
#include "proto/task_spec.h"
#include "supervisor/alloc/task_templates.h"

#define NEEDS_MAX  2048                /* of all templates of a task */
#define NODE_BYTES ((size_t)256 << 20) /* of all outputs that waiting tasks hold */

static LIST_HEAD(, task_templates) holders = LIST_HEAD_INITIALIZER(holders);
static size_t
    held_bytes; /* of them all; each output counts one more, so that an empty one counts */

void
template_hold(struct rendered *one)
{
	if (one->of->held_bytes == 0)
		LIST_INSERT_HEAD(&holders, one->of, holder);
	one->of->held_bytes += one->len + 1;
	held_bytes += one->len + 1;
}

void
template_drop(struct rendered *one)
{
	one->of->held_bytes -= one->len + 1;
	held_bytes -= one->len + 1;
	if (one->of->held_bytes == 0)
		LIST_REMOVE(one->of, holder);
}

const char *
template_over_needs(const struct task_templates *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += json_array_size(all->v[i].needs);
	return n > NEEDS_MAX ? "the templates of this task ask for more than 2048 values" : NULL;
}

const char *
template_over_bytes(const struct task_templates *all)
{
	return all->held_bytes > SPEC_BYTES_MAX ? "the files of this task have more than 32 MiB"
						: NULL;
}

struct rendered *
template_over_node(void)
{
	struct task_templates *all, *largest = NULL;
	size_t i = 0, waiting = 0;

	if (held_bytes <= NODE_BYTES)
		return NULL;
	LIST_FOREACH (all, &holders, holder) {
		if (!all->done || all->failure) /* it has its files, or is about to end */
			continue;
		waiting += all->held_bytes;
		if (!largest || all->held_bytes > largest->held_bytes)
			largest = all;
	}
	if (waiting <= NODE_BYTES)
		return NULL;
	while (largest && !largest->v[i].output)
		i++;
	return largest ? &largest->v[i] : NULL;
}
