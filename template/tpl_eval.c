/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_eval.c: evaluates pipelines: commands, fields, variables. Runs in: template-renderer. */
#include <string.h>

#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

void
tpl_push(struct tpl_run *run, const char *name, struct go_value value)
{
	struct tpl_variable *grown;

	if (run->n_vars == run->vars_room) {
		grown = arena_alloc(run->arena, 2 * (run->vars_room + 16) * sizeof *grown);
		if (run->n_vars > 0)
			memcpy(grown, run->vars, run->n_vars * sizeof *grown);
		run->vars = grown;
		run->vars_room = 2 * (run->vars_room + 16);
	}
	run->vars[run->n_vars++] = (struct tpl_variable){ name, value };
}

static struct tpl_variable *
find_variable(struct tpl_run *run, const char *name)
{
	for (size_t i = run->n_vars; i > run->first_var; i--) {
		arena_step(run->arena, 1);
		if (strcmp(run->vars[i - 1].name, name) == 0)
			return &run->vars[i - 1];
	}
	tpl_fail(run, "undefined variable: %s", name);
}

void
tpl_set(struct tpl_run *run, const char *name, struct go_value value)
{
	find_variable(run, name)->value = value;
}

struct go_value
tpl_stored(const struct go_type *elem, struct go_value v)
{
	return v.type ? v : (struct go_value){ .type = elem };
}

static const char *
node_text(struct tpl_run *run, const struct tpl_node *n)
{
	struct text t = { .arena = run->arena };

	tpl_node_text(&t, n);
	return t.text ? t.text : "";
}

static struct go_value
constant(struct tpl_run *run, const struct tpl_node *n)
{
	run->node = n;
	if (n->number.as_float)
		return go_float(n->number.f);
	if (!n->number.is_int)
		tpl_fail(run, "%.*s overflows int", (int)n->len, n->text);
	return go_int(n->number.i);
}

static void
refuse_arguments(struct tpl_run *run, const struct tpl_node *first, const struct go_value *final)
{
	if (STAILQ_NEXT(first, entry) || final)
		tpl_fail(run, "can't give argument to non-function %s", node_text(run, first));
}

static struct go_value
field_of_map(struct tpl_run *run, struct go_value map, const char *name, bool has_args)
{
	struct go_value *found;
	struct text quoted = { .arena = run->arena };

	if (has_args)
		tpl_fail(run, "%s is not a method but has arguments", name);
	found = go_map_find(map.map, go_text(name));
	if (found)
		return tpl_stored(map.type->elem, *found);
	if (run->missing_key_fails) {
		go_quote(&quoted, name, strlen(name), false);
		tpl_fail(run, "map has no entry for key %s", quoted.text);
	}
	return go_zero(run->arena, map.type->elem);
}

static struct go_value
field_of_struct(struct tpl_run *run, struct go_value v, const char *name, bool has_args,
    const struct go_type *type)
{
	int i = go_field(v.type, name);

	if (i < 0)
		tpl_fail(run, "can't evaluate field %s in type %s", name, type->name);
	if (v.type->fields[i].hidden)
		tpl_fail(run, "%s is an unexported field of struct type %s", name, type->name);
	if (has_args)
		tpl_fail(run, "%s has arguments but cannot be invoked as function", name);
	return tpl_stored(v.type->fields[i].type, v.fields[i]);
}

static const struct go_function *
find_method(const struct go_type *type, const char *name)
{
	for (size_t i = 0; i < type->n_methods; i++)
		if (strcmp(type->methods[i].name, name) == 0)
			return &type->methods[i];
	return NULL;
}

/* receiver.name. args: the nodes after it in its command, or NULL. */
static struct go_value
eval_field(struct tpl_run *run, struct go_value dot, const char *name, const struct tpl_node *node,
    const struct tpl_node *args, const struct go_value *final, struct go_value receiver)
{
	const struct go_type *type = receiver.type;
	bool nil, has_args = args || final;
	const struct go_function *method;
	struct text quoted = { .arena = run->arena };

	if (!type) {
		if (!run->missing_key_fails)
			return go_nothing;
		go_quote(&quoted, name, strlen(name), false);
		tpl_fail(run, "nil data; no entry for key %s", quoted.text);
	}
	receiver = go_indirect(receiver, &nil);
	if (nil && (type->kind == GO_INTERFACE || go_field(type, name) >= 0 ||
		       find_method(type->elem, name)))
		tpl_fail(run, "nil pointer evaluating %s.%s", type->name, name);
	if (nil)
		tpl_fail(run, "can't evaluate field %s in type %s", name, type->name);
	method = find_method(receiver.type, name);
	if (method)
		return tpl_call(run, dot, method, name, receiver, node, args, final);
	if (go_kind(receiver) == GO_STRUCT)
		return field_of_struct(run, receiver, name, has_args, type);
	if (go_kind(receiver) == GO_MAP && go_assignable(&go_type_string, receiver.type->key))
		return field_of_map(run, receiver, name, has_args);
	tpl_fail(run, "can't evaluate field %s in type %s", name, type->name);
}

/* receiver.a.b, for the names from `from` on. */
static struct go_value
eval_fields(struct tpl_run *run, struct go_value dot, struct go_value receiver,
    const struct tpl_node *n, size_t from, const struct tpl_node *args,
    const struct go_value *final)
{
	for (; from + 1 < n->n_names; from++)
		receiver = eval_field(run, dot, n->names[from], n, NULL, NULL, receiver);
	return eval_field(run, dot, n->names[from], n, args, final, receiver);
}

struct go_value
tpl_eval_chain(struct tpl_run *run, struct go_value dot, const struct tpl_node *n,
    const struct tpl_node *args, const struct go_value *final)
{
	struct go_value v;

	run->node = n;
	switch (n->kind) {
	case TPL_FIELD:
		return eval_fields(run, dot, dot, n, 0, args, final);
	case TPL_VARIABLE:
		v = find_variable(run, n->names[0])->value;
		return n->n_names == 1 ? v : eval_fields(run, dot, v, n, 1, args, final);
	default:
		v = tpl_eval_arg(run, dot, NULL, n->chained);
		return eval_fields(run, dot, v, n, 0, args, final);
	}
}

struct go_value
tpl_eval_function(struct tpl_run *run, struct go_value dot, const struct tpl_node *n,
    const struct tpl_node *command, const struct tpl_node *args, const struct go_value *final)
{
	run->node = n;
	return tpl_call(run, dot, n->function, n->function->name, go_nothing, command, args, final);
}

static struct go_value
eval_literal(struct tpl_run *run, struct go_value dot, const struct tpl_node *n)
{
	switch (n->kind) {
	case TPL_BOOL:
		return go_bool(n->boolean);
	case TPL_DOT:
		return dot;
	case TPL_NUMBER:
		return constant(run, n);
	case TPL_STRING:
		return go_string(n->value, n->value_len);
	default:
		tpl_fail(run, "nil is not a command");
	}
}

static struct go_value
eval_command(struct tpl_run *run, struct go_value dot, const struct tpl_node *command,
    const struct go_value *final)
{
	const struct tpl_node *first = STAILQ_FIRST(&command->children),
			      *args = STAILQ_NEXT(first, entry);

	switch (first->kind) {
	case TPL_FIELD:
	case TPL_CHAIN:
		return tpl_eval_chain(run, dot, first, args, final);
	case TPL_VARIABLE:
		if (first->n_names == 1) {
			run->node = first;
			(void)find_variable(run, first->names[0]);
			refuse_arguments(run, first, final);
		}
		return tpl_eval_chain(run, dot, first, args, final);
	case TPL_FUNCTION:
		return tpl_eval_function(run, dot, first, command, args, final);
	case TPL_PIPE:
		refuse_arguments(run, first, final);
		return tpl_eval_pipe(run, dot, first);
	default:
		run->node = first;
		refuse_arguments(run, first, final);
		return eval_literal(run, dot, first);
	}
}

struct go_value
tpl_eval_pipe(struct tpl_run *run, struct go_value dot, const struct tpl_node *pipe)
{
	const struct tpl_node *command;
	struct go_value v = go_nothing;
	bool first = true;

	run->node = pipe;
	arena_step(run->arena, 1);
	arena_enter(run->arena);
	STAILQ_FOREACH (command, &pipe->children, entry) {
		struct go_value final = v;

		v = eval_command(run, dot, command, first ? NULL : &final);
		first = false;
		if (go_kind(v) == GO_INTERFACE)
			v = go_nothing;
	}
	arena_exit(run->arena);
	for (size_t i = 0; i < pipe->n_declared; i++) {
		if (pipe->assign)
			tpl_set(run, pipe->declared[i]->names[0], v);
		else
			tpl_push(run, pipe->declared[i]->names[0], v);
	}
	return v;
}

/* The value of a node where any type will do. */
static struct go_value
eval_any(struct tpl_run *run, struct go_value dot, const struct tpl_node *n)
{
	switch (n->kind) {
	case TPL_BOOL:
	case TPL_NUMBER:
	case TPL_STRING:
		return eval_literal(run, dot, n);
	default:
		tpl_fail(run, "can't handle assignment of %s to empty interface argument",
		    node_text(run, n));
	}
}

/* A literal as an argument of this type. */
static struct go_value
eval_typed(
    struct tpl_run *run, struct go_value dot, const struct go_type *type, const struct tpl_node *n)
{
	static const char *const expected[] = { [GO_BOOL] = "bool",
		[GO_INT] = "integer",
		[GO_UINT] = "unsigned integer",
		[GO_FLOAT] = "float",
		[GO_STRING] = "string" };
	struct go_value v = { .type = type };

	if (type->kind == GO_INTERFACE)
		return eval_any(run, dot, n);
	if (type->kind > GO_STRING)
		tpl_fail(run, "can't handle %s for arg of type %s", node_text(run, n), type->name);
	if (type->kind == GO_BOOL && n->kind == TPL_BOOL) {
		v.boolean = n->boolean;
	} else if (type->kind == GO_STRING && n->kind == TPL_STRING) {
		v = go_string(n->value, n->value_len);
	} else if (n->kind == TPL_NUMBER && type->kind == GO_INT && n->number.is_int) {
		v.i = n->number.i;
	} else if (n->kind == TPL_NUMBER && type->kind == GO_UINT && n->number.is_uint) {
		v.u = n->number.u;
	} else if (n->kind == TPL_NUMBER && type->kind == GO_FLOAT && n->number.is_float) {
		v.f = n->number.f;
	} else {
		tpl_fail(run, "expected %s; found %s", expected[type->kind], node_text(run, n));
	}
	return v;
}

static bool
can_be_nil(const struct go_type *type)
{
	return type->kind == GO_INTERFACE || type->kind == GO_MAP || type->kind == GO_SLICE ||
	       type->kind == GO_POINTER || type->kind == GO_FUNC || type->kind == GO_CHAN;
}

static struct go_value
nil_of(const struct go_type *type)
{
	return type->kind == GO_INTERFACE ? go_nothing : (struct go_value){ .type = type };
}

/* The value as a parameter of this type. */
static struct go_value
check_type(struct tpl_run *run, struct go_value v, const struct go_type *type)
{
	bool nil;

	if (!type)
		return v;
	if (!v.type) {
		if (!can_be_nil(type))
			tpl_fail(run, "invalid value; expected %s", type->name);
		return nil_of(type);
	}
	if (go_kind(v) == GO_INTERFACE && type == &go_type_any)
		return go_nothing;
	if (go_assignable(v.type, type))
		return v;
	if (go_kind(v) == GO_POINTER && go_assignable(v.type->elem, type)) {
		v = go_indirect(v, &nil);
		if (nil)
			tpl_fail(run, "dereference of nil pointer of type %s", type->name);
		return v;
	}
	tpl_fail(run, "wrong type for value; expected %s; got %s", type->name, v.type->name);
}

struct go_value
tpl_eval_arg(
    struct tpl_run *run, struct go_value dot, const struct go_type *type, const struct tpl_node *n)
{
	run->node = n;
	switch (n->kind) {
	case TPL_DOT:
		return check_type(run, dot, type);
	case TPL_NIL:
		if (!can_be_nil(type))
			tpl_fail(run, "cannot assign nil to %s", type->name);
		return nil_of(type);
	case TPL_FIELD:
	case TPL_VARIABLE:
	case TPL_CHAIN:
		return check_type(run, tpl_eval_chain(run, dot, n, NULL, NULL), type);
	case TPL_PIPE:
		return check_type(run, tpl_eval_pipe(run, dot, n), type);
	case TPL_FUNCTION:
		return check_type(run, tpl_eval_function(run, dot, n, n, NULL, NULL), type);
	default:
		return eval_typed(run, dot, type, n);
	}
}

/* What comes through a pipe, as a parameter of this type. */
static struct go_value
final_arg(struct tpl_run *run, const struct go_type *type, const struct go_value *final)
{
	return check_type(run, *final, type);
}

/* and, or: the arguments are evaluated until one decides. */
static struct go_value
eval_logic(struct tpl_run *run, struct go_value dot, bool is_or, const struct tpl_node *args,
    const struct go_value *final)
{
	struct go_value v = go_nothing;

	for (; args; args = STAILQ_NEXT(args, entry)) {
		v = tpl_eval_arg(run, dot, &go_type_value, args);
		if (go_is_true(v) == is_or)
			return v;
	}
	return final ? final_arg(run, &go_type_value, final) : v;
}

static void
check_count(
    struct tpl_run *run, const struct go_function *f, const char *name, size_t n_args, size_t n)
{
	bool variadic = tpl_is_variadic(f);
	size_t fixed = tpl_param_count(f) - variadic;

	if (variadic && n < fixed)
		tpl_fail(run, "wrong number of args for %s: want at least %zu got %zu", name, fixed,
		    n_args);
	if (!variadic && n != fixed)
		tpl_fail(run, "wrong number of args for %s: want %zu got %zu", name, fixed, n);
}

struct go_value
tpl_call(struct tpl_run *run, struct go_value dot, const struct go_function *f, const char *name,
    struct go_value self, const struct tpl_node *node, const struct tpl_node *args,
    const struct go_value *final)
{
	struct go_call c = { .run = run,
		.arena = run->arena,
		.function = f,
		.name = name,
		.node = node,
		.first_arg = args,
		.self = self };
	size_t n_args = 0, i = 0;

	for (const struct tpl_node *arg = args; arg; arg = STAILQ_NEXT(arg, entry))
		n_args++;
	c.n = n_args + (final != NULL);
	check_count(run, f, name, n_args, c.n);
	if (f->fn == tpl_fn_logic)
		return eval_logic(run, dot, *f->name == 'o', args, final);
	c.args = arena_alloc(run->arena, c.n * sizeof *c.args);
	for (; args; args = STAILQ_NEXT(args, entry), i++)
		c.args[i] = tpl_eval_arg(run, dot, tpl_param_type(f, i), args);
	if (final)
		c.args[i] = final_arg(run, tpl_param_type(f, i), final);
	arena_step(run->arena, 1 + c.n);
	return f->fn(&c);
}

void
go_call_fail(struct go_call *c, const char *fmt, ...)
{
	va_list args;
	char *what;

	va_start(args, fmt);
	what = arena_vprintf(c->arena, fmt, args);
	va_end(args);
	c->run->node = c->node;
	tpl_fail(c->run, "error calling %s: %s", c->name, what);
}
