/* SPDX-License-Identifier: Apache-2.0 */
/* list.h: lists and the owners of their elements. A head of LIST or SLIST that is all zeros is an
 * empty list; STAILQ and TAILQ need their _INIT. Runs in: every process. */
#ifndef DROVER_COMMON_LIST_H
#define DROVER_COMMON_LIST_H

#include <stddef.h>
#include <sys/queue.h>

/* As LIST_FOREACH() and so on, for a body that may remove or free var; next holds the element after
 * it. */
#define LIST_FOREACH_SAFE(var, head, field, next)                                                  \
	for ((var) = LIST_FIRST(head); (var) && ((next) = LIST_NEXT(var, field), 1); (var) = (next))
#define STAILQ_FOREACH_SAFE(var, head, field, next)                                                \
	for ((var) = STAILQ_FIRST(head); (var) && ((next) = STAILQ_NEXT(var, field), 1);           \
	     (var) = (next))
#define TAILQ_FOREACH_SAFE(var, head, field, next)                                                 \
	for ((var) = TAILQ_FIRST(head); (var) && ((next) = TAILQ_NEXT(var, field), 1);             \
	     (var) = (next))

/* Returns the struct of this type whose member p points to. */
#define container_of(p, type, member)                                                              \
	({                                                                                         \
		const __typeof__(((type *)0)->member) *_member = (p);                              \
		(type *)(void *)((char *)_member - offsetof(type, member));                        \
	})

#endif
