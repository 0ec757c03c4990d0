// SPDX-License-Identifier: Apache-2.0
/* template_env.c: the variables with which a task was started, as its templates with env = true
 * made them. Runs in: supervisor. */
#include "supervisor/alloc/template_env.h"

#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/seal_texts.h"

static char *
name_column(const struct task_runner *tr)
{
	return mem_printf("template variables of %s/%s", tr->ar->sa->a.id, tr->task->name);
}

void
template_env_forget(struct template_env *env)
{
	string_map_done(&env->vars);
	free(env->sealed);
	*env = (struct template_env){ 0 };
}

/* The empty text at the end: no variables have a sealed value too. */
static void
put_vars(struct seal_texts *texts, const void *vars)
{
	seal_put_map(texts, vars);
	seal_put_text(texts, "");
}

static void
take_vars(void *vars, const char *at, size_t left)
{
	seal_take_map(&at, &left, vars);
}

static void
seal_vars(const struct task_runner *tr, struct template_env *env)
{
	cleanup_free char *about = name_column(tr);
	struct sealed sealed = { 0 };
	struct err e = { 0 };

	if (seal_close_texts(tr->ar->sup->seal, about, put_vars, &env->vars, &sealed, &e) < 0) {
		journal_warn(JOURNAL_TASK, ABOUT_TASK(tr->ar->sa, tr->task->name),
		    "allocation %.8s task %s: after a restart of the agent its services are "
		    "registered late: the variables of its templates cannot be encrypted: %s",
		    tr->ar->sa->a.id, tr->task->name, e.msg);
		return;
	}
	env->sealed = mem_alloc(BASE64_SIZE(sealed.len));
	(void)base64_encode(sealed.bytes, sealed.len, env->sealed);
	sealed_done(&sealed);
}

void
template_env_set(struct template_env *env, const struct task_runner *tr, struct string_map *vars)
{
	template_env_forget(env);
	env->known = true;
	env->vars = *vars;
	*vars = (struct string_map){ 0 };
	seal_vars(tr, env);
}

void
template_env_save(
    const struct template_env *env, const struct task_runner *tr, struct alloc_record *rec)
{
	struct template_env_record *one;

	if (!env->sealed)
		return;
	one = list_add(template_env_record, &rec->template_envs);
	str_set(&one->task, tr->task->name);
	str_set(&one->sealed, env->sealed);
}

void
template_env_restore(
    struct template_env *env, const struct task_runner *tr, const struct alloc_record *kept)
{
	cleanup_free char *about = name_column(tr);

	for (size_t i = 0; !env->known && i < kept->template_envs.n; i++) {
		const struct template_env_record *one = &kept->template_envs.v[i];
		cleanup_free uint8_t *bytes = NULL;
		size_t len = strlen(str(one->sealed));

		if (!str_eq(one->task, tr->task->name))
			continue;
		bytes = mem_alloc(len + 1);
		env->known =
		    base64_decode(str(one->sealed), bytes, &len) >= 0 &&
		    seal_open_texts(tr->ar->sup->seal, about, bytes, len, take_vars, &env->vars);
		if (env->known)
			str_set(&env->sealed, one->sealed);
	}
}
