// SPDX-License-Identifier: Apache-2.0
/* variable.c: field table of variables, and the rules for their paths. Runs in: supervisor. */
#include "model/variable.h"

#include <errno.h>
#include <string.h>

#include "model/engine/table.h"

#define S variable_lock
static const struct field lock_fields[] = {
	F_STRING(id, "ID"),
	F_DURATION(ttl, "TTL", .flags = FIELD_AS_TEXT),
	F_DURATION(delay, "LockDelay", .flags = FIELD_AS_TEXT),
};
MODEL_TYPE(variable_lock, lock_fields, .name = "lock");
#undef S

#define S variable
#define METADATA                                                                                   \
	F_STRING(namespace, "Namespace"), F_STRING(path, "Path"),                                  \
	    F_POINTER(lock, "Lock", variable_lock, .flags = FIELD_OMIT_EMPTY),                     \
	    F_UINT(create_index, "CreateIndex"), F_INT(create_time, "CreateTime"),                 \
	    F_UINT(modify_index, "ModifyIndex"), F_INT(modify_time, "ModifyTime")
static const struct field variable_fields[] = {
	METADATA,
	F_STRING_MAP(items, "Items", .flags = FIELD_OMIT_EMPTY | FIELD_SEALED),
};
MODEL_TYPE(
    variable, variable_fields, .name = "variable", .title = 1 + offsetof(struct variable, path));
const struct type variable_stub_type = {
	.name = "variable",
	.size = sizeof(struct variable),
	.fields = variable_fields,
	.n = ELEMENTSOF(variable_fields) - 1,
	.title = 1 + offsetof(struct variable, path),
};
/* What filters see: the servers know the members only below VariableMetadata. */
static const struct field filter_fields[] = {
	METADATA,
	{ .name = "VariableMetadata",
	    .name_len = strlen("VariableMetadata"),
	    .kind = FIELD_STRUCT,
	    .sub = &variable_stub_type },
};
const struct type variable_filter_type = {
	.name = "variable",
	.size = sizeof(struct variable),
	.fields = filter_fields,
	.n = ELEMENTSOF(filter_fields),
};
#undef S

/* Names below "nomad" are for the agent's own use, except for those of jobs and templates. */
static int
check_reserved(const char *path, struct err *e)
{
	const char *second = path + strlen("nomad/"), *third;
	size_t len = strcspn(second, "/");

	if ((len == strlen("jobs") && memcmp(second, "jobs", len) == 0) ||
	    (len == strlen("sentinel") && memcmp(second, "sentinel", len) == 0))
		return 0;
	if (len != strlen("job-templates") || memcmp(second, "job-templates", len) != 0)
		return err_say(e, -EINVAL,
		    "the path \"%s\" is reserved: below \"nomad/\" variables may have paths at or "
		    "below \"nomad/jobs\", and one level below \"nomad/job-templates\"",
		    path);
	third = second + len;
	if (!*third || strchr(third + 1, '/'))
		return err_say(e, -EINVAL,
		    "the path \"%s\" is reserved: the variable of a job template is exactly one "
		    "level below \"nomad/job-templates\"",
		    path);
	return 0;
}

int
variable_check_path(const char *path, struct err *e)
{
	size_t len = strlen(path);

	if (len == 0 || len > VARIABLE_PATH_MAX ||
	    strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~/") !=
		len)
		return err_say(e, -EINVAL,
		    "invalid path \"%.140s\": it must have 1 to %d characters, letters, digits, "
		    "'-', '_', '~' and '/'",
		    path, VARIABLE_PATH_MAX);
	if (strcmp(path, "nomad") == 0)
		return err_say(e, -EINVAL,
		    "the path \"nomad\" is reserved: variables may have paths at or below "
		    "\"nomad/jobs\", and one level below \"nomad/job-templates\"");
	return strncmp(path, "nomad/", strlen("nomad/")) == 0 ? check_reserved(path, e) : 0;
}

size_t
variable_size(const struct variable *v)
{
	size_t size = 0;

	for (size_t i = 0; i < v->items.n; i++)
		size += strlen(str(v->items.v[i].key)) + strlen(str(v->items.v[i].value));
	return size;
}
