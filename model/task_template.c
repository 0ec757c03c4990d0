// SPDX-License-Identifier: Apache-2.0
/* task_template.c: field tables of templates. Runs in: supervisor, cli. */
#include "model/task_template.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "common/id.h"
#include "model/engine/table.h"
#include "model/task.h"

#define TIMEOUT_DEFAULT (5 * NS_PER_S)
#define SPLAY_DEFAULT   (5 * NS_PER_S)
#define PERMS_DEFAULT   "0644"
#define OWNER_MAX       (UINT32_MAX - 1) /* (uid_t)-1 is none */

const char *const template_change_names[] = { "", "noop", "restart", "signal", "script" };

#define S template_script
static const struct field template_script_fields[] = {
	F_STRING(command, "Command"),
	F_STRINGS(args, "Args"),
	F_DURATION_DEFAULT(timeout, "Timeout", TIMEOUT_DEFAULT),
	F_BOOL(fail_on_error, "FailOnError"),
	F_BOOL(run_on_first_render, "RunOnFirstRender"),
};
MODEL_TYPE(template_script, template_script_fields, .name = "change_script");
#undef S

#define S template_wait
static const struct field template_wait_fields[] = {
	F_OPT_DURATION(min, "Min"),
	F_OPT_DURATION(max, "Max"),
};

static void
validate_wait(const void *obj, struct problems *p)
{
	const struct template_wait *w = obj;

	if ((w->min != MODEL_UNSET && w->min < 0) || (w->max != MODEL_UNSET && w->max < 0))
		model_problem(p, "wait: min and max must not be negative");
	if (w->min != MODEL_UNSET && w->max != MODEL_UNSET && w->max < w->min)
		model_problem(p, "wait: max must not be less than min");
}
MODEL_TYPE(template_wait, template_wait_fields, .name = "wait", .validate = validate_wait);
#undef S

int
task_template_mode(const struct task_template *t)
{
	const char *perms = str(t->perms)[strspn(str(t->perms), "0")] ? t->perms : PERMS_DEFAULT;
	size_t len = strlen(perms);
	long mode = strtol(perms, NULL, 8);

	return len > 6 || strspn(perms, "01234567") != len || mode > 0777 ? -EINVAL : (int)mode;
}

#define S task_template
static const struct field task_template_fields[] = {
	F_STRING(source_path, "SourcePath"),
	F_STRING(dest_path, "DestPath"),
	F_STRING(embedded, "EmbeddedTmpl", .flags = FIELD_LONG),
	F_ENUM(change_mode, "ChangeMode", template_change_names, .flags = FIELD_HAS_DEFAULT,
	    .number = TEMPLATE_RESTART),
	F_STRING(change_signal, "ChangeSignal"),
	F_POINTER(change_script, "ChangeScript", template_script),
	F_BOOL(once, "Once"),
	F_DURATION_DEFAULT(splay, "Splay", SPLAY_DEFAULT),
	F_STRING_DEFAULT(perms, "Perms", PERMS_DEFAULT),
	F_OPT_INT(uid, "Uid"),
	F_OPT_INT(gid, "Gid"),
	F_STRING_DEFAULT(left_delim, "LeftDelim", "{{"),
	F_STRING_DEFAULT(right_delim, "RightDelim", "}}"),
	F_BOOL(env, "Envvars"),
	F_DURATION(vault_grace, "VaultGrace"),
	F_POINTER(wait, "Wait", template_wait),
	F_BOOL(error_on_missing_key, "ErrMissingKey"),
};

/* A script that no change_mode runs may be anything. */
static void
validate_script(const struct template_script *s, struct problems *p)
{
	if (!s)
		model_problem(p, "change_mode \"script\" needs a change_script block");
	else if (!*str(s->command))
		model_problem(p, "change_script: command is missing");
	if (s && s->timeout < 0)
		model_problem(p, "change_script: timeout must not be negative");
}

static void
validate_change(const struct task_template *t, struct problems *p)
{
	if (t->change_mode == TEMPLATE_SIGNAL && t->env)
		model_problem(p,
		    "env = true and change_mode \"signal\" exclude each other: a running task "
		    "cannot get other environment variables");
	if (t->change_mode == TEMPLATE_SIGNAL && !is_signal_name(str(t->change_signal)))
		model_problem(p,
		    "change_mode \"signal\" needs a change_signal, and \"%.40s\" is not one",
		    str(t->change_signal));
	if (t->change_mode == TEMPLATE_SCRIPT)
		validate_script(t->change_script, p);
}

static bool
is_owner(int64_t id)
{
	return id == MODEL_UNSET || (id >= -1 && id <= OWNER_MAX);
}

static void
validate_template(const void *obj, struct problems *p)
{
	const struct task_template *t = obj;

	if (!*str(t->source_path) && !*str(t->embedded))
		model_problem(p, "it needs source or data");
	if (*str(t->source_path) && *str(t->embedded))
		model_problem(p, "source and data exclude each other");
	if (!*str(t->dest_path))
		model_problem(p, "destination is missing");
	if (path_leaves(str(t->dest_path), 1))
		model_problem(
		    p, "destination \"%.200s\" leads out of the allocation", t->dest_path);
	validate_change(t, p);
	if (t->splay < 0)
		model_problem(p, "splay must not be negative");
	if (task_template_mode(t) < 0)
		model_problem(
		    p, "perms must be an octal number of up to 0777, not \"%.20s\"", str(t->perms));
	if (!is_owner(t->uid) || !is_owner(t->gid))
		model_problem(
		    p, "uid and gid must be between 0 and %u, or -1: the task's", OWNER_MAX);
}
MODEL_TYPE(task_template, task_template_fields, .name = "template", .validate = validate_template,
    .title = 1 + offsetof(struct task_template, dest_path));
#undef S

void
task_template_complete(struct task_template *t)
{
	if (!*str(t->change_signal) && t->change_mode == TEMPLATE_SIGNAL)
		str_set(&t->change_signal, "SIGHUP");
	for (char *c = t->change_signal; c && *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

void
task_templates_validate(const struct task *task, struct problems *p)
{
	for (size_t i = 0; i < task->templates.n; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(
				task->templates.v[i].dest_path, task->templates.v[k].dest_path)) {
				model_problem(p, "two templates have the destination \"%.200s\"",
				    str(task->templates.v[i].dest_path));
				break;
			}
}

void
task_templates_warn(const struct task *task, struct problems *p)
{
	for (size_t i = 0; i < task->templates.n; i++) {
		const struct task_template *t = &task->templates.v[i];

		if (t->vault_grace != 0)
			model_problem(p,
			    "template \"%.200s\": vault_grace has no effect, as with Nomad since "
			    "0.11",
			    str(t->dest_path));
	}
}
