// SPDX-License-Identifier: Apache-2.0
/* fuzz_acl_rules.c: any text as an ACL policy. An invalid policy permits nothing. */
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/acl/acl_rules.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = strndup((const char *)data, size);
	struct acl_rules rules = { 0 };
	struct err e = { 0 };
	bool any = false;
	int r;

	HOLDS(text);
	r = acl_rules_add(&rules, text, "p", &e);
	HOLDS(r == 0 || e.msg[0]);
	for (int need = ACL_MANAGEMENT; need < ACL_NEEDS; need++) {
		if (need == ACL_OPEN || need == ACL_VALID)
			continue;
		any |= acl_rules_permit(&rules, (enum acl_need)need, "default");
		any |= acl_rules_permit(&rules, (enum acl_need)need, "a-b");
	}
	HOLDS(!any || strstr(text, "read") || strstr(text, "write") || strstr(text, "\\") ||
	      strstr(text, "alloc") || strstr(text, "job") || strstr(text, "scale") ||
	      strstr(text, "list") || strstr(text, "keyring") || strstr(text, "volume") ||
	      strstr(text, "plugin") || strstr(text, "sentinel") || strstr(text, "deployment") ||
	      strstr(text, "submit") || strstr(text, "service"));
	HOLDS(!acl_rules_permit(&rules, ACL_MANAGEMENT, "default"));
	HOLDS(!acl_rules_permit(&rules, ACL_READ_JOB, "*"));
	HOLDS(r == 0 || acl_rules_check(text, "p", &e) < 0);
	acl_rules_done(&rules);
	return 0;
}
