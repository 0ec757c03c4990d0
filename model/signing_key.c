// SPDX-License-Identifier: Apache-2.0
/* signing_key.c: field table of key pairs. Runs in: supervisor. */
#include "model/signing_key.h"

#include "model/engine/table.h"

static const char *const state_names[] = { "", "active", "inactive" };

#define S signing_key
static const struct field signing_key_fields[] = {
	F_STRING(id, "KeyID"),
	F_STRING(algorithm, "Algorithm"),
	F_ENUM(state, "State", state_names),
	F_INT(create_time, "CreateTime"),
	F_INT(inactive_time, "InactiveTime"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
};
MODEL_TYPE(
    signing_key, signing_key_fields, .name = "key", .title = 1 + offsetof(struct signing_key, id));
#undef S
