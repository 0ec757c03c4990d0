/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_exec.c: executes the statements of a template. Runs in: template-renderer. */
#include <string.h>

#include "template/go_print.h"
#include "template/go_text.h"
#include "template/tpl_run.h"

enum flow { GO_ON, BREAK, CONTINUE };

static enum flow walk_list(struct tpl_run *run, struct go_value dot, const struct tpl_nodes *list);

static const char *
quoted(struct tpl_run *run, const char *s, size_t len)
{
	struct text t = { .arena = run->arena };

	go_quote(&t, s, len, false);
	return t.text;
}

/* "template: :LINE:COLUMN: executing "NAME" at <NODE>: " */
static const char *
place(struct tpl_run *run, const struct tpl_tree *tree, const struct tpl_node *node)
{
	struct text context = { .arena = run->arena };
	unsigned line = 1, column = node->at;
	const char *name = run->text->name ? run->text->name : "";

	for (uint32_t i = 0; i < node->at; i++)
		if (run->text->text[i] == '\n') {
			line++;
			column = node->at - i - 1;
		}
	tpl_node_text(&context, node);
	return arena_printf(run->arena, "template: %s:%u:%u: executing %s at <%s>: ", name, line,
	    column,
	    tree->name_len > 0 ? quoted(run, tree->name, tree->name_len)
			       : quoted(run, name, strlen(name)),
	    context.text ? context.text : "");
}

void
tpl_fail_with(struct tpl_run *run, const char *sentence)
{
	for (const struct tpl_nested *n = run->nested; n; n = n->outer)
		sentence = arena_printf(run->arena, "%serror calling %s: %s",
		    place(run, n->tree, n->node), n->name, sentence);
	run->problem = sentence;
	arena_leave(run->arena);
}

void
tpl_fail(struct tpl_run *run, const char *fmt, ...)
{
	va_list args;
	char *what;

	va_start(args, fmt);
	what = arena_vprintf(run->arena, fmt, args);
	va_end(args);
	tpl_fail_with(run, arena_printf(run->arena, "%s%s", place(run, run->tree, run->node),
			       tpl_hide_values(run, what)));
}

void
tpl_check_output(struct tpl_run *run)
{
	if (run->out->len > run->output_max)
		tpl_fail_with(run, arena_printf(run->arena, "the output is larger than %zu bytes",
				       run->output_max));
}

static void
print_value(struct tpl_run *run, const struct tpl_node *n, struct go_value v)
{
	struct text shown = { .arena = run->arena };
	bool nil;

	run->node = n;
	if (go_kind(v) == GO_POINTER)
		v = go_indirect(v, &nil);
	if (!v.type)
		v = go_text("<no value>");
	if (go_kind(v) == GO_FUNC || go_kind(v) == GO_CHAN) {
		tpl_node_text(&shown, n);
		tpl_fail(run, "can't print %s of type %s", shown.text, v.type->name);
	}
	go_print_value(run->out, v);
	tpl_check_output(run);
}

static enum flow
walk_branch(struct tpl_run *run, struct go_value dot, const struct tpl_node *n)
{
	size_t n_vars = run->n_vars;
	struct go_value v = tpl_eval_pipe(run, dot, n->pipe);
	enum flow flow = GO_ON;

	if (go_is_true(v))
		flow = walk_list(run, n->kind == TPL_WITH ? v : dot, n->list);
	else if (n->else_list)
		flow = walk_list(run, dot, n->else_list);
	run->n_vars = n_vars;
	return flow;
}

/* One round of a range. The variables are on top of the stack unless the range assigns. */
static bool
walk_round(
    struct tpl_run *run, const struct tpl_node *n, struct go_value index, struct go_value elem)
{
	const struct tpl_node *pipe = n->pipe;
	size_t n_vars = run->n_vars;
	enum flow flow;

	arena_step(run->arena, 1);
	if (pipe->n_declared == 2 && pipe->assign) {
		tpl_set(run, pipe->declared[0]->names[0], index);
		tpl_set(run, pipe->declared[1]->names[0], elem);
	} else if (pipe->n_declared == 2) {
		run->vars[n_vars - 2].value = index;
		run->vars[n_vars - 1].value = elem;
	} else if (pipe->n_declared == 1 && pipe->assign) {
		tpl_set(run, pipe->declared[0]->names[0], elem);
	} else if (pipe->n_declared == 1) {
		run->vars[n_vars - 1].value = elem;
	}
	flow = walk_list(run, elem, n->list);
	run->n_vars = n_vars;
	return flow != BREAK;
}

/* Goes through the integers of [from, to). Returns whether there were any. */
static bool
range_numbers(struct tpl_run *run, const struct tpl_node *n, struct go_value from, uint64_t rounds,
    bool with_index)
{
	for (uint64_t i = 0; i < rounds; i++, from.i++)
		if (!walk_round(run, n, with_index ? go_int((int64_t)i) : go_nothing, from))
			break;
	return rounds > 0;
}

/* The map may change meanwhile, so its members are copied. */
static bool
range_map(struct tpl_run *run, const struct tpl_node *n, struct go_value map)
{
	size_t rounds = go_map_len(map);
	struct go_member *members = arena_alloc(run->arena, rounds * sizeof *members);

	if (rounds > 0)
		memcpy(members, map.map->v, rounds * sizeof *members);
	for (size_t i = 0; i < rounds; i++)
		if (!walk_round(run, n, tpl_stored(map.type->key, members[i].key),
			tpl_stored(map.type->elem, members[i].value)))
			break;
	return rounds > 0;
}

static bool
range_value(struct tpl_run *run, const struct tpl_node *n, struct go_value v)
{
	struct text shown = { .arena = run->arena };

	switch (go_kind(v)) {
	case GO_INT:
	case GO_UINT:
		if (n->pipe->n_declared > 1) {
			go_print_value(&shown, v);
			tpl_fail(run,
			    "can't use " TPL_VALUE("%s") " to iterate over more than one variable",
			    shown.text);
		}
		return range_numbers(run, n, (struct go_value){ .type = v.type },
		    go_kind(v) == GO_INT && v.i < 0 ? 0 : v.u, false);
	case GO_CHAN:
		return range_numbers(run, n, go_int64(v.from),
		    v.to > v.from ? (uint64_t)v.to - (uint64_t)v.from : 0, true);
	case GO_SLICE:
		for (size_t i = 0; i < v.list.n; i++)
			if (!walk_round(run, n, go_int((int64_t)i),
				tpl_stored(v.type->elem, v.list.items[i])))
				break;
		return v.list.n > 0;
	case GO_MAP:
		return range_map(run, n, v);
	case GO_INVALID:
		return false;
	default:
		go_print_value(&shown, go_kind(v) == GO_INTERFACE ? go_nothing : v);
		tpl_fail(run, "range can't iterate over " TPL_VALUE("%s"), shown.text);
	}
}

static enum flow
walk_range(struct tpl_run *run, struct go_value dot, const struct tpl_node *n)
{
	size_t n_vars = run->n_vars;
	enum flow flow = GO_ON;
	struct go_value v;
	bool nil;

	v = go_indirect(tpl_eval_pipe(run, dot, n->pipe), &nil);
	if (!range_value(run, n, v) && n->else_list)
		flow = walk_list(run, dot, n->else_list);
	run->n_vars = n_vars;
	return flow;
}

void
tpl_execute(struct tpl_run *run, const struct tpl_tree *tree, struct go_value dot)
{
	struct tpl_run before = *run;

	arena_enter(run->arena);
	run->tree = tree;
	run->first_var = run->n_vars;
	tpl_push(run, "$", dot);
	(void)walk_list(run, dot, tree->root);
	run->tree = before.tree;
	run->first_var = before.first_var;
	run->n_vars = before.n_vars;
	arena_exit(run->arena);
}

static void
walk_call(struct tpl_run *run, struct go_value dot, const struct tpl_node *n)
{
	struct text name = { .arena = run->arena };
	const struct tpl_tree *tree;

	(void)go_unquote(&name, n->text, n->len);
	tree = tpl_find_tree(run->text, name.text, name.len);
	if (!tree)
		tpl_fail(run, "template %s not defined", quoted(run, name.text, name.len));
	tpl_execute(run, tree, n->pipe ? tpl_eval_pipe(run, dot, n->pipe) : go_nothing);
}

static enum flow
walk(struct tpl_run *run, struct go_value dot, const struct tpl_node *n)
{
	size_t n_vars = run->n_vars;
	struct go_value v;

	run->node = n;
	switch (n->kind) {
	case TPL_TEXT:
		text_bytes(run->out, n->text, n->len);
		tpl_check_output(run);
		return GO_ON;
	case TPL_ACTION:
		v = tpl_eval_pipe(run, dot, n->pipe);
		if (n->pipe->n_declared == 0)
			print_value(run, n, v);
		return GO_ON;
	case TPL_IF:
	case TPL_WITH:
		return walk_branch(run, dot, n);
	case TPL_RANGE:
		return walk_range(run, dot, n);
	case TPL_CALL:
		walk_call(run, dot, n);
		run->n_vars = n_vars;
		return GO_ON;
	case TPL_BREAK:
		return BREAK;
	default:
		return CONTINUE;
	}
}

static enum flow
walk_list(struct tpl_run *run, struct go_value dot, const struct tpl_nodes *list)
{
	enum flow flow = GO_ON;
	const struct tpl_node *n;

	STAILQ_FOREACH (n, list, entry) {
		arena_step(run->arena, 1);
		arena_enter(run->arena);
		flow = walk(run, dot, n);
		arena_exit(run->arena);
		if (flow != GO_ON)
			break;
	}
	return flow;
}
