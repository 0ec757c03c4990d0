/* SPDX-License-Identifier: Apache-2.0 */
/* go_merge.c: merges maps. Runs in: template-renderer. */
#include "template/go_merge.h"

bool
go_is_empty(struct go_value v)
{
	return go_kind(v) != GO_STRUCT && !go_is_true(v);
}

static void
merge_member(struct arena *a, struct go_value to, struct go_member from, bool overwrite)
{
	struct go_value *there = go_map_find(to.map, from.key);

	arena_step(a, 1);
	if (!from.value.type) {
		if (overwrite)
			go_map_set(a, to, from.key, from.value);
		return;
	}
	if (there && go_kind(*there) == GO_MAP && go_kind(from.value) == GO_MAP &&
	    !go_is_empty(*there)) {
		go_merge(a, there, from.value, overwrite);
		return;
	}
	if (!there || go_is_empty(*there) || overwrite)
		go_map_set(a, to, from.key, from.value);
}

void
go_merge(struct arena *a, struct go_value *to, struct go_value from, bool overwrite)
{
	if (!to->map && from.map)
		*to = go_map(a, to->type);
	arena_enter(a);
	for (size_t i = 0; i < go_map_len(from); i++)
		merge_member(a, *to, from.map->v[i], overwrite);
	arena_exit(a);
}
