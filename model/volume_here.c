// SPDX-License-Identifier: Apache-2.0
/* volume_here.c: field tables of what a node knows about a volume. Runs in: supervisor, cli. */
#include "model/volume_here.h"

#include "model/engine/table.h"

#define PERCENT_MAX 999

const char *const volume_condition_names[] = {
	[CONDITION_UNKNOWN] = "",
	[CONDITION_NORMAL] = "normal",
	[CONDITION_ABNORMAL] = "abnormal",
};

#define S volume_amount
static const struct field volume_amount_fields[] = {
	F_INT(used, "Used"),
	F_INT(available, "Available"),
	F_INT(total, "Total"),
	F_INT(percent, "Percent"),
};
MODEL_TYPE(volume_amount, volume_amount_fields, .name = "amount");
#undef S

#define S volume_here_mount
static const struct field volume_here_mount_fields[] = {
	F_STRING(alloc_id, "AllocID"),
	F_STRING(name, "Name"),
	F_STRING(path, "Path"),
	F_STRING(state, "State"),
	F_BOOL(read_only, "ReadOnly"),
	F_STRING(waits_for, "WaitsFor"),
	F_STRING(error, "Error"),
	F_INT(tries, "Tries"),
	F_INT(since, "Since"),
	F_INT(next_try, "NextTry"),
};
MODEL_TYPE(volume_here_mount, volume_here_mount_fields, .name = "mount");
#undef S

#define S volume_here
static const struct field volume_here_fields[] = {
	F_STRING(node_id, "NodeID"),
	F_POINTER(bytes, "Bytes", volume_amount),
	F_POINTER(inodes, "Inodes", volume_amount),
	F_ENUM(condition, "Condition", volume_condition_names),
	F_STRING(condition_message, "ConditionMessage"),
	F_INT(reported, "Reported"),
	F_STRING(error, "Error"),
	F_LIST(mounts, "Mounts", volume_here_mount, .flags = FIELD_NOT_NIL),
};
MODEL_TYPE(volume_here, volume_here_fields, .name = "volume");
#undef S

#define S volume_at_controller
static const struct field volume_at_controller_fields[] = {
	F_STRINGS(nodes, "PublishedExternalNodeIDs", .flags = FIELD_NOT_NIL),
	F_ENUM(condition, "Condition", volume_condition_names),
	F_STRING(condition_message, "ConditionMessage"),
	F_STRING(error, "Error"),
};
MODEL_TYPE(volume_at_controller, volume_at_controller_fields, .name = "volume");
#undef S

void
volume_amount_rate(struct volume_amount *amount)
{
	double used = (double)amount->used, all = amount->available > 0
						      ? used + (double)amount->available
						      : (double)amount->total;
	double percent = all > 0 ? used * 100 / all + 0.999 : 0;

	/* A plugin can report that far more is used than there is. */
	amount->percent = percent < PERCENT_MAX ? (int64_t)percent : PERCENT_MAX;
}
