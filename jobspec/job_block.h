/* SPDX-License-Identifier: Apache-2.0 */
/* job_block.h: the table of a job file's blocks, and the state of reading one. Runs in: cli,
 * job-parser. */
#ifndef DROVER_JOBSPEC_JOB_BLOCK_H
#define DROVER_JOBSPEC_JOB_BLOCK_H

#include <jansson.h>

#include "common/list.h"
#include "hcl/hcl_eval.h"
#include "jobspec/jobspec.h"

/* OPT_: null if it is not set; the others have Go's zero value then. */
enum job_kind {
	JOB_STRING,
	JOB_OPT_STRING,
	JOB_INT,
	JOB_OPT_INT,
	JOB_UINT,
	JOB_OPT_UINT,
	JOB_UINT8,
	JOB_UINT16,
	JOB_OPT_INT8,
	JOB_WRAPPED_INT8, /* as OPT_INT8, but a larger number is cut to 8 bits, as Nomad does */
	JOB_OPT_UINT32,
	JOB_BOOL,
	JOB_OPT_BOOL,
	JOB_DURATION, /* nanoseconds, or a text such as "1h30m" */
	JOB_OPT_DURATION,
	JOB_STRINGS,
	JOB_UINT16S,
	JOB_STRING_MAP,
	JOB_LISTS_MAP, /* of lists of strings */
	JOB_ANY_MAP,
	JOB_ONE,
	JOB_ONE_OMIT, /* as ONE, but not in the JSON at all if it is not set */
	JOB_MANY,
	JOB_BY_LABEL,
	JOB_LABEL_TEXT,
	JOB_NULL,
	JOB_FALSE,
	JOB_EMPTY,
	JOB_ZERO,
};

struct job_block;

struct job_field {
	const char *name; /* in the file; NULL: a label, or a member that is not in the file */
	const char *json;
	enum job_kind kind;
	bool required;
	bool is_map;  /* a block whose attributes have names of the user's choice */
	bool or_attr; /* such a block that may be written as an attribute too */
	const struct job_block *block; /* of ONE, MANY, BY_LABEL */
};

struct job_block {
	const struct job_field *fields;
	size_t n;
};

extern const struct job_block job_block_job, job_block_task_group, job_block_constraint,
    job_block_affinity;

/* Returns the name that this block has in a job file. */
const char *job_block_name(const struct job_block *block);

/* Reads a body by the table. Problems are added to h; the result is then not complete. label: the
 * block's label, or NULL. */
json_t *job_read_block(struct hcl *h, const struct job_block *block, const struct hcl_body *body,
    const struct hcl_scope *scope, const char *label, struct hcl_range at);

/* Reads an attribute's value, or the attributes and blocks of a map. NULL: a problem was added. */
json_t *job_read_value(
    struct hcl *h, enum job_kind kind, const struct hcl_expr *e, const struct hcl_scope *scope);
json_t *job_read_map(
    struct hcl *h, enum job_kind kind, const struct hcl_body *body, const struct hcl_scope *scope);
/* The value of a field that is not set. */
json_t *job_unset_value(enum job_kind kind);

/* A value as JSON of the API. NULL after adding a problem, for one that has none. */
json_t *job_json(struct hcl *h, const struct hcl_value *v, struct hcl_range at);

/* The text of a variable's value that was given by -var or the environment. */
struct job_given {
	const char *name, *text;
	bool is_expression; /* of HCL; else the text itself is the value */
	struct job_given *next;
};

/* Variables and locals: the values of "var" and "local". Leaves with hcl_fail() or hcl_leave(). */
struct job_names {
	struct hcl_value *var, *local;
	const struct job_given *given; /* in the order of their declarations */
};
/* scope: the outermost, without names, for locals. */
void job_read_names(struct hcl *h, const struct job_input *in, const struct hcl_body *body,
    const struct hcl_scope *scope, struct job_names *ret);

/* Moves the shorthands of a constraint or an affinity, wherever it is, to their places. Other
 * blocks are left as they are. */
void job_finish_rule(const struct job_block *block, json_t *rule);
/* Locals: adds those of a block; evaluates all, and returns the value of "local". scope: the
 * outermost, without names. */
struct job_locals {
	STAILQ_HEAD(, job_local) list;
	size_t n;
};
void job_locals_add(struct hcl *h, struct job_locals *locals, const struct hcl_block *b);
struct hcl_value *job_locals_evaluate(
    struct hcl *h, struct job_locals *locals, const struct hcl_scope *scope, struct hcl_value *var);

/* The values of variables as text of HCL: the files, then those that are expressions. */
const char *job_source_variables(
    struct hcl *h, const struct job_input *in, const struct job_given *given);
/* The source of a job as a register request's Submission, a new reference. */
json_t *job_source(
    const struct job_input *in, const struct job_given *given, const char *variables);

/* What Nomad's parser does after reading: moves shorthands to their places and sets its defaults.
 * name is the job block's label. */
void job_finish(struct hcl *h, json_t *job, const char *name);

#endif
