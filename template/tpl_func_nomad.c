/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_nomad.c: variables and services. Runs in: template-renderer. */
#include <string.h>

#include "template/go_print.h"
#include "template/go_source.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

struct tpl_need *
tpl_need(struct tpl_run *run, const struct template_query *q, const char *name, bool *ret_new)
{
	struct tpl_need *n;

	*ret_new = false;
	STAILQ_FOREACH (n, &run->needs, entry) {
		arena_step(run->arena, 1);
		if (strcmp(n->need.name, name) == 0)
			return n;
	}
	n = arena_new(run->arena, struct tpl_need);
	n->need = (struct template_need){ *q, name, false };
	n->need.query.need = name;
	STAILQ_INSERT_TAIL(&run->needs, n, entry);
	run->n_needs++;
	*ret_new = true;
	return n;
}

static void
hide(struct tpl_run *run, const struct template_variable *v)
{
	run->sees_secrets = true;
	for (size_t i = 0; i < v->n_items; i++) {
		struct tpl_secret *s = arena_new(run->arena, struct tpl_secret);

		s->text = arena_strndup(run->arena, v->values[i], strlen(v->values[i]));
		STAILQ_INSERT_TAIL(&run->secrets, s, entry);
	}
}

static bool
is_word(const char *s, size_t len, const char *more)
{
	for (size_t i = 0; i < len; i++)
		if (!((s[i] >= '0' && s[i] <= '9') || ((s[i] | 32) >= 'a' && (s[i] | 32) <= 'z') ||
			s[i] == '_' || (s[i] && strchr(more, s[i]))))
			return false;
	return len > 0;
}

static void
refuse_format(struct go_call *c, const char *what, const char *s)
{
	struct text t = { .arena = c->arena };

	go_quote(&t, s, strlen(s), false);
	go_call_fail(c, "%s: invalid format: %s", what, t.text);
}

/* The argument without the characters of `cut`, and spaces, at its ends. */
static char *
trimmed(struct go_call *c, struct go_value v, const char *cut)
{
	const char *s = v.s;
	size_t len = v.len;

	for (; len > 0 && strchr(" \t\r\n\v\f", *s) && *s; len--)
		s++;
	for (; len > 0 && strchr(" \t\r\n\v\f", s[len - 1]) && s[len - 1]; len--)
		;
	for (; len > 0 && strchr(cut, *s) && *s; len--)
		s++;
	for (; len > 0 && strchr(cut, s[len - 1]) && s[len - 1]; len--)
		;
	return arena_strndup(c->arena, s, len);
}

/* PATH, PATH@NAMESPACE or PATH@NAMESPACE.REGION */
static struct template_query
read_path(struct go_call *c, char *s, const char *what, bool any_namespace)
{
	struct template_query q = { .name = s, .ns = c->run->data->ns, .region = "" };
	char *at = strchr(s, '@'), *dot;

	if (!at)
		return q;
	dot = strchr(at, '.');
	if ((at == s && !any_namespace) || (dot && !is_word(dot + 1, strlen(dot + 1), "-")) ||
	    !(is_word(at + 1, dot ? (size_t)(dot - at - 1) : strlen(at + 1), "-") ||
		(any_namespace && strncmp(at + 1, "*", 2 - (dot == at + 2)) == 0)))
		refuse_format(c, what, s);
	s = arena_strndup(c->arena, s, strlen(s));
	s[at - q.name] = '\0';
	q.ns = s + (at - q.name) + 1;
	if (dot) {
		s[dot - q.name] = '\0';
		q.region = s + (dot - q.name) + 1;
	}
	q.name = s;
	return q;
}

static const char *
path_name(struct go_call *c, const char *what, const struct template_query *q)
{
	return arena_printf(c->arena, "%s(%s@%s.%s)", what, q->name,
	    q->ns && *q->ns ? q->ns : "default", *q->region ? q->region : "global");
}

static enum template_answer
find_variable(
    struct go_call *c, const struct template_query *q, const struct template_variable **ret)
{
	const struct template_data *d = c->run->data;

	return d->variable ? d->variable(d->arg, q, ret) : TEMPLATE_UNKNOWN;
}

/* A variable that does not exist is waited for. */
struct go_value
tpl_fn_nomad_var(struct go_call *c)
{
	const struct template_variable *v = NULL;
	struct template_query q;
	struct tpl_need *need;
	bool first;

	if (c->args[0].len == 0)
		return (struct go_value){ .type = &go_type_var_items };
	q = read_path(c, trimmed(c, c->args[0], "/"), "nomad.var.get", false);
	q.kind = TEMPLATE_NEED_VARIABLE;
	need = tpl_need(c->run, &q, path_name(c, "nomad.var.block", &q), &first);
	if (!first)
		return need->value;
	need->value = (struct go_value){ .type = &go_type_var_items };
	need->need.missing = find_variable(c, &need->need.query, &v) != TEMPLATE_THERE;
	if (need->need.missing)
		return need->value;
	hide(c->run, v);
	need->value = go_var_items(c->arena, v);
	return need->value;
}

struct go_value
tpl_fn_nomad_var_exists(struct go_call *c)
{
	const struct template_variable *v = NULL;
	struct template_query q;
	enum template_answer answer;
	struct tpl_need *need;
	bool first;

	if (c->args[0].len == 0)
		return go_bool(false);
	q = read_path(c, trimmed(c, c->args[0], "/"), "nomad.var.get", false);
	q.kind = TEMPLATE_NEED_VARIABLE_EXISTS;
	need = tpl_need(c->run, &q, path_name(c, "nomad.var.get", &q), &first);
	if (first) {
		answer = find_variable(c, &need->need.query, &v);
		need->need.missing = answer == TEMPLATE_UNKNOWN;
		need->value = go_bool(answer == TEMPLATE_THERE);
	}
	return need->value;
}

static struct go_value
ask_for_variables(struct go_call *c, struct tpl_need *need)
{
	const struct template_data *d = c->run->data;
	const struct template_variable *v = NULL;
	enum template_answer answer = TEMPLATE_UNKNOWN;
	struct go_value list;
	size_t n = 0;

	if (d->variables)
		answer = d->variables(d->arg, &need->need.query, &v, &n);
	need->need.missing = answer == TEMPLATE_UNKNOWN;
	list = go_slice(c->arena, &go_type_var_metas, answer == TEMPLATE_THERE ? n : 0);
	for (size_t i = 0; i < list.list.n; i++)
		list.list.items[i] = go_var_meta(c->arena, &v[i]);
	return list;
}

static struct go_value
list_variables(struct go_call *c, bool empty_is_missing)
{
	struct go_value args = go_slice(c->arena, &go_type_strings, c->n);
	struct text shown = { .arena = c->arena };
	struct template_query q;
	struct tpl_need *need;
	bool first;
	char *s;

	if (c->n > 1) {
		memcpy(args.list.items, c->args, c->n * sizeof *c->args);
		go_print_value(&shown, args);
		go_call_fail(c,
		    "nomadVarList takes either a single \"prefix\" parameter or none for all "
		    "available variables; got: %s",
		    shown.text);
	}
	s = c->n == 1 ? arena_strndup(c->arena, c->args[0].s, c->args[0].len)
		      : arena_strndup(c->arena, "", 0);
	s += *s == '/';
	q = read_path(c, s, "nomad.var.list", true);
	if (strspn(q.name, "/") == strlen(q.name))
		q.name = "";
	q.kind = TEMPLATE_NEED_VARIABLES;
	need = tpl_need(c->run, &q, path_name(c, "nomad.var.list", &q), &first);
	if (first)
		need->value = ask_for_variables(c, need);
	need->need.missing |= empty_is_missing && need->value.list.n == 0;
	return need->value;
}

struct go_value
tpl_fn_nomad_var_list(struct go_call *c)
{
	return list_variables(c, false);
}

struct go_value
tpl_fn_nomad_var_list_safe(struct go_call *c)
{
	return list_variables(c, true);
}

/* [TAG.]NAME[@REGION] */
static struct template_query
read_service(struct go_call *c, struct go_value text)
{
	char *s = arena_strndup(c->arena, text.s, text.len), *name = s, *dot = NULL, *at;
	struct template_query q = { .kind = TEMPLATE_NEED_SERVICE, .tag = "", .region = "" };

	at = strchr(s, '@');
	for (char *x = s; *x && x != at; x++)
		if (*x == '.')
			dot = x;
	if (dot)
		name = dot + 1;
	if (strlen(s) != text.len || !is_word(name, at ? (size_t)(at - name) : strlen(name), "-") ||
	    (dot && !is_word(s, (size_t)(dot - s), "=:.-")) ||
	    (at && !is_word(at + 1, strlen(at + 1), ".-")))
		refuse_format(c, "nomad.service", s);
	if (dot) {
		*dot = '\0';
		q.tag = s;
	}
	if (at) {
		*at = '\0';
		q.region = at + 1;
	}
	q.name = name;
	return q;
}

/* The service, or a count, a key and the service: so many of its instances, chosen by the key. */
static struct template_query
service_query(struct go_call *c)
{
	struct template_query q;

	if (c->n == 1) {
		if (go_kind(c->args[0]) != GO_STRING)
			go_call_fail(c, "expected string for <service> argument");
		return read_service(c, c->args[0]);
	}
	if (c->n != 3)
		go_call_fail(c, "expected arguments <service> or <count> <key> <service>");
	if (c->args[0].type != &go_type_int)
		go_call_fail(c, "expected integer for <count> argument");
	if (c->args[1].type != &go_type_string)
		go_call_fail(c, "expected string for <key> argument");
	if (c->args[2].type != &go_type_string)
		go_call_fail(c, "expected string for <service> argument");
	q = read_service(c, c->args[2]);
	q.count = c->args[0].i;
	q.key = arena_strndup(c->arena, c->args[1].s, c->args[1].len);
	return q;
}

static const char *
service_name(struct go_call *c, const struct template_query *q)
{
	const char *name = arena_printf(c->arena, "%s%s%s%s%s", q->tag, *q->tag ? "." : "", q->name,
	    *q->region ? "@" : "", q->region);

	return q->key ? arena_printf(c->arena, "nomad.service(%s:%lld|%s)", name,
			    (long long)q->count, q->key)
		      : arena_printf(c->arena, "nomad.service(%s)", name);
}

static struct go_value
list_services(struct go_call *c, const struct template_query *q, const char *name,
    const struct go_type *type,
    struct go_value (*make)(struct arena *, const struct template_service *))
{
	const struct template_data *d = c->run->data;
	const struct template_service *s = NULL;
	enum template_answer answer = TEMPLATE_UNKNOWN;
	struct tpl_need *need;
	size_t n = 0;
	bool first;

	need = tpl_need(c->run, q, name, &first);
	if (!first)
		return need->value;
	if (d->services)
		answer = d->services(d->arg, &need->need.query, &s, &n);
	need->need.missing = answer == TEMPLATE_UNKNOWN;
	need->value = (struct go_value){ .type = type };
	if (answer == TEMPLATE_UNKNOWN)
		return need->value;
	need->value = go_slice(c->arena, type, answer == TEMPLATE_THERE ? n : 0);
	for (size_t i = 0; i < need->value.list.n; i++)
		need->value.list.items[i] = make(c->arena, &s[i]);
	return need->value;
}

struct go_value
tpl_fn_nomad_service(struct go_call *c)
{
	struct template_query q = service_query(c);

	return list_services(c, &q, service_name(c, &q), &go_type_services, go_service);
}

struct go_value
tpl_fn_nomad_services(struct go_call *c)
{
	struct template_query q = { .kind = TEMPLATE_NEED_SERVICES, .name = "", .region = "" };
	struct text s = { .arena = c->arena };

	text_add(&s, "");
	for (size_t i = 0; i < c->n; i++)
		text_bytes(&s, c->args[i].s, c->args[i].len);
	if (s.len > 0 && (*s.text != '@' || !is_word(s.text + 1, s.len - 1, ".-")))
		refuse_format(c, "nomad.services", s.text);
	q.region = s.len > 0 ? s.text + 1 : "";
	return list_services(c, &q,
	    s.len > 0 ? arena_printf(c->arena, "nomad.services(%s)", s.text) : "nomad.services",
	    &go_type_service_stubs, go_service_stub);
}
