// SPDX-License-Identifier: Apache-2.0
/* audit_filter.c: the filters of the audit log. Runs in: supervisor. */
#include "supervisor/audit/audit_filter.h"

#include "common/glob.h"

static bool
matches(const struct config_audit_filter *f, const char *const texts[AUDIT_MEMBERS])
{
	bool found[AUDIT_MEMBERS] = { false };

	for (uint32_t i = 0; i < f->n_patterns; i++) {
		const struct config_audit_pattern *p = &f->patterns[i];

		found[p->member] = found[p->member] || glob_fits(p->text, texts[p->member]);
	}
	return found[AUDIT_ENDPOINT] && found[AUDIT_STAGE] && found[AUDIT_OPERATION];
}

bool
audit_filter_excludes(
    const struct config_audit *c, const char *endpoint, const char *stage, const char *operation)
{
	const char *const texts[AUDIT_MEMBERS] = {
		[AUDIT_ENDPOINT] = endpoint, [AUDIT_STAGE] = stage, [AUDIT_OPERATION] = operation
	};

	for (uint32_t i = 0; i < c->n_filters; i++)
		if (matches(&c->filters[i], texts))
			return true;
	return false;
}
