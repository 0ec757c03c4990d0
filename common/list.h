/* SPDX-License-Identifier: Apache-2.0 */
/* list.h: lists and the owners of their elements. Runs in: every process. */
#ifndef DROVER_COMMON_LIST_H
#define DROVER_COMMON_LIST_H

#include <stddef.h>
#include <sys/queue.h>

/* Returns the struct of this type whose member p points to. */
#define container_of(p, type, member)                                                              \
	({                                                                                         \
		const __typeof__(((type *)0)->member) *_member = (p);                              \
		(type *)(void *)((char *)_member - offsetof(type, member));                        \
	})

#endif
