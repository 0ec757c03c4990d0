// SPDX-License-Identifier: Apache-2.0
/* local_base.c: the index of the one-node server. Runs in: supervisor. */
#include "supervisor/server/base/local.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "supervisor/core/store.h"

/* Changes by the client raise the index without writing it. There are fewer of them than this
 * between two writes. */
#define INDEX_GAP 100000

uint64_t
local_index_next(struct local *l)
{
	turn_write(l->base.sup, &l->index_row);
	return ++l->index;
}

static int
write_index(struct sup *sup, struct dirty *d, struct err *e)
{
	char text[24];

	(void)snprintf(text, sizeof text, "%" PRIu64, local_of_sup(sup)->index);
	return store_meta_put(sup->store, "local_index", text, e);
}

void
local_index_init(struct local *l)
{
	l->index = 1;
	l->index_row.write = write_index;
	l->index_row.point = CRASH_ROW_INDEX;
}

int
local_index_load(struct local *l, struct err *e)
{
	cleanup_free char *index = NULL;
	int r = store_meta_get(l->base.sup->store, "local_index", &index, e);

	if (r >= 0)
		l->index = strtoull(index, NULL, 10) + INDEX_GAP;
	return r == -ENOENT ? 0 : r;
}

void
local_index_free(struct local *l)
{
	turn_forget_write(l->base.sup, &l->index_row);
}
