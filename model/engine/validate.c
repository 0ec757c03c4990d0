/* SPDX-License-Identifier: Apache-2.0 */
/* validate.c: walks over a struct by its field table and collects problems. Runs in: supervisor,
 * cli. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/utf8.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

/* A user will not read more, and an error shows fewer. */
#define PROBLEMS_MAX 100
#define MORE_SIZE    24 /* of "; 99 more" and a ';' */

/* Writes `group "web": task "t": ` from the structs that have a title. The sentence itself names a
 * block without one. */
static void
append_context(struct text *t, const struct place *at)
{
	if (!at)
		return;
	append_context(t, at->up);
	if (at->name)
		text_printf(t, "%s: ", at->name);
}

void
model_problem(struct problems *p, const char *fmt, ...)
{
	cleanup_free char *said = NULL, *line = NULL;
	struct text t = { 0 };
	va_list args;

	if (p->list.n == PROBLEMS_MAX)
		return;
	va_start(args, fmt);
	said = mem_vprintf(fmt, args);
	va_end(args);
	append_context(&t, p->place);
	text_append(&t, said, strlen(said));
	line = mem_alloc(t.len + 1);
	(void)utf8_sanitize(line, t.len + 1, t.text, t.len);
	strings_add(&p->list, line);
	text_done(&t);
}

char *
problems_text(const struct problems *p)
{
	struct text t = { 0 };

	text_append(&t, "", 0);
	for (size_t i = 0; i < p->list.n; i++)
		text_printf(&t, "%s%s", i ? "\n" : "", p->list.v[i]);
	return t.text;
}

int
problems_err(const struct problems *p, struct err *e)
{
	struct text t = { 0 };
	size_t i;

	if (p->list.n == 0)
		return 0;
	for (i = 0; i < p->list.n; i++) {
		if (i && t.len + strlen(p->list.v[i]) + MORE_SIZE > ERR_MSG_SIZE)
			break;
		text_printf(&t, "%s%s", i ? "; " : "", p->list.v[i]);
	}
	if (i < p->list.n)
		text_printf(&t, "; %zu more", p->list.n - i);
	(void)err_say(e, -EINVAL, "%s", str(t.text));
	text_done(&t);
	return -EINVAL;
}

void
problems_done(struct problems *p)
{
	strings_done(&p->list);
}

static void
validate_elements(
    const struct any_list *l, const struct type *item, size_t key_size, struct problems *p)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		model_validate(item, l->v + i * (key_size + item->size) + key_size, p);
}

static void
validate_field(const struct field *f, const void *at, struct problems *p)
{
	switch ((enum field_kind)f->kind) {
	case FIELD_STRUCT:
		model_validate(f->sub, at, p);
		break;
	case FIELD_POINTER:
		if (*(void *const *)at)
			model_validate(f->sub, *(void *const *)at, p);
		break;
	case FIELD_LIST:
		validate_elements(at, f->sub, 0, p);
		break;
	case FIELD_MAP:
		validate_elements(at, f->sub, MAP_VALUE_OFFSET, p);
		break;
	default:
		break;
	}
}

void
model_validate(const struct type *type, const void *obj, struct problems *p)
{
	const struct place *up = p->place;
	struct place here = { .up = up };
	char name[160];
	size_t i;

	if (type->title) {
		(void)snprintf(name, sizeof(name), "%s \"%s\"", type->name,
		    str(*(char *const *)((const char *)obj + type->title - 1)));
		here.name = name;
	}
	p->place = &here;
	if (type->validate)
		type->validate(obj, p);
	for (i = 0; i < type->n; i++)
		validate_field(&type->fields[i], field_at(&type->fields[i], obj), p);
	p->place = up;
}
