// SPDX-License-Identifier: Apache-2.0
/* job_block.c: the table of a job file's blocks. Runs in: cli, job-parser. */
#include "jobspec/job_block.h"

#define yes true
#define no  false

/* First the names of all blocks, then their rows. */
#define JOB_LABEL(json)
#define JOB_ATTR(name, json, kind, required)
#define JOB_MAP(name, json, kind, attr)
#define JOB_BLOCK(name, json, kind, block)
#define JOB_CONST(json, value)
#define JOB_BLOCK_BEGIN(block) extern const struct job_block job_block_##block;
#define JOB_BLOCK_END(block)
#include "jobspec/job_blocks.def"

#define JOB_LABEL(j)         { .json = #j, .kind = JOB_LABEL_TEXT },
#define JOB_ATTR(n, j, k, r) { .name = n, .json = #j, .kind = JOB_##k, .required = r },
#define JOB_MAP(n, j, k, a)                                                                        \
	{ .name = n, .json = #j, .kind = JOB_##k, .is_map = true, .or_attr = a },
#define JOB_BLOCK(n, j, k, b)  { .name = n, .json = #j, .kind = JOB_##k, .block = &job_block_##b },
#define JOB_CONST(j, value)    { .json = #j, .kind = JOB_##value },
#define JOB_BLOCK_BEGIN(block) static const struct job_field block##_fields[] = {
#define JOB_BLOCK_END(block)                                                                       \
	}                                                                                          \
	;                                                                                          \
	const struct job_block job_block_##block = {                                               \
		.fields = block##_fields,                                                          \
		.n = sizeof block##_fields / sizeof(struct job_field),                             \
	};
#include "jobspec/job_blocks.def"

#define JOB_LABEL(json)
#define JOB_ATTR(name, json, kind, required)
#define JOB_MAP(name, json, kind, attr)
#define JOB_BLOCK(n, json, kind, b) { n, &job_block_##b },
#define JOB_CONST(json, value)
#define JOB_BLOCK_BEGIN(block)
#define JOB_BLOCK_END(block)
static const struct {
	const char *name;
	const struct job_block *block;
} names[] = {
#include "jobspec/job_blocks.def"
};

const char *
job_block_name(const struct job_block *block)
{
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].block == block)
			return names[i].name;
	return "job";
}
