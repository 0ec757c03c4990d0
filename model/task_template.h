/* SPDX-License-Identifier: Apache-2.0 */
/* task_template.h: a template of a task. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_TASK_TEMPLATE_H
#define DROVER_MODEL_TASK_TEMPLATE_H

#include "model/engine/field.h"

enum template_change_mode {
	TEMPLATE_CHANGE_NONE,
	TEMPLATE_NOOP,
	TEMPLATE_RESTART,
	TEMPLATE_SIGNAL,
	TEMPLATE_SCRIPT
};

/* The command that is run inside the task after a template's output has changed. */
struct template_script {
	char *command;
	struct strings args;
	int64_t timeout;
	bool fail_on_error;       /* the task fails with the script */
	bool run_on_first_render; /* also when the task has started */
};

/* A change is shown when nothing has changed for `min`, but at the latest after `max`. */
struct template_wait {
	int64_t min, max; /* MODEL_UNSET: 0, and four times min */
};

struct task_template {
	char *source_path; /* a file of the task, instead of: */
	char *embedded;
	char *dest_path;
	enum template_change_mode change_mode;
	char *change_signal;
	struct template_script *change_script; /* with TEMPLATE_SCRIPT */
	int64_t splay;                         /* the longest random delay before change_mode */
	char *perms;                           /* octal */
	int64_t uid, gid;                      /* MODEL_UNSET: the task's user */
	char *left_delim, *right_delim;
	bool env; /* the output is also added to the environment */
	bool error_on_missing_key;
	bool once;           /* it is not rendered again */
	int64_t vault_grace; /* has no meaning any more */
	struct template_wait *wait;
};

MODEL_DECLARE(template_script);
MODEL_DECLARE(template_wait);
MODEL_DECLARE(task_template);

extern const char *const template_change_names[TEMPLATE_SCRIPT + 1];

struct task;

/* Sets what Nomad's API sets: the signal of change_mode "signal" if there is none, and signals in
 * capital letters. */
void task_template_complete(struct task_template *t);
/* Adds a sentence for each destination that two templates of the task have. */
void task_templates_validate(const struct task *task, struct problems *p);
/* Adds a warning for each attribute that has no effect. */
void task_templates_warn(const struct task *task, struct problems *p);
/* Returns the mode of the file, the default one for 0; -EINVAL if perms is no octal number of up to
 * 0777. */
int task_template_mode(const struct task_template *t);

#endif
