// SPDX-License-Identifier: Apache-2.0
/* plugin_counts.c: counts the tries of calls to CSI plugins. Runs in: supervisor. */
#include "supervisor/volume/plugin_counts.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/volume/csi_error.h"
#include "supervisor/volume/plugin_inst.h"

#define COUNTS_MAX 1000

static struct plugin_count *
find_count(const struct plugins *ps, const char *plugin, const char *method, const char *code)
{
	for (size_t i = 0; i < ps->n_counts; i++) {
		struct plugin_count *c = ps->counts[i];

		if (strcmp(c->plugin, plugin) == 0 && strcmp(c->method, method) == 0 &&
		    strcmp(c->code, code) == 0)
			return c;
	}
	return NULL;
}

void
plugin_count_add(struct sup *sup, const char *plugin, CsiCallReq__CallCase call,
    const CsiCallRep *rep, uint64_t usec)
{
	const char *const method = csi_call_name(call);
	const char *const code = !rep               ? "NoAnswer"
				 : rep->grpc_status ? csi_outcome(call, rep->grpc_status).name
						    : "OK";
	struct plugins *ps = sup->plugins;
	struct plugin_count *c = find_count(ps, plugin, method, code);

	if (!c && ps->n_counts == COUNTS_MAX)
		return;
	if (!c) {
		c = mem_new(struct plugin_count);
		*c = (struct plugin_count){
			.plugin = mem_strdup(plugin), .method = method, .code = code
		};
		ps->counts = mem_resize(ps->counts, ps->n_counts + 1, sizeof *ps->counts);
		ps->counts[ps->n_counts++] = c;
	}
	c->n++;
	c->usec += usec;
}

const struct plugin_count *
plugin_count_at(const struct sup *sup, size_t i)
{
	return sup->plugins && i < sup->plugins->n_counts ? sup->plugins->counts[i] : NULL;
}

void
plugin_counts_free(struct sup *sup)
{
	for (size_t i = 0; i < sup->plugins->n_counts; i++) {
		free(sup->plugins->counts[i]->plugin);
		free(sup->plugins->counts[i]);
	}
	free_p(&sup->plugins->counts);
	sup->plugins->n_counts = 0;
}
