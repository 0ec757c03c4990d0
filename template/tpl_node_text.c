/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_node_text.c: writes nodes as error sentences show them. Runs in: template-renderer. */
#include "template/tpl_ast.h"

static void
add_names(struct text *out, const struct tpl_node *n, bool dot_first)
{
	for (size_t i = 0; i < n->n_names; i++) {
		if (i > 0 || dot_first)
			text_add(out, ".");
		text_add(out, n->names[i]);
	}
}

static void
add_pipe(struct text *out, const struct tpl_node *n)
{
	const struct tpl_node *command;
	bool first = true;

	for (size_t i = 0; i < n->n_declared; i++) {
		if (i > 0)
			text_add(out, ", ");
		tpl_node_text(out, n->declared[i]);
	}
	if (n->n_declared > 0)
		text_add(out, n->assign ? " = " : " := ");
	STAILQ_FOREACH (command, &n->children, entry) {
		if (!first)
			text_add(out, " | ");
		first = false;
		tpl_node_text(out, command);
	}
}

static void
add_part(struct text *out, const struct tpl_node *n)
{
	if (n->kind == TPL_PIPE)
		text_add(out, "(");
	tpl_node_text(out, n);
	if (n->kind == TPL_PIPE)
		text_add(out, ")");
}

void
tpl_node_text(struct text *out, const struct tpl_node *n)
{
	const struct tpl_node *arg;

	switch (n->kind) {
	case TPL_PIPE:
		add_pipe(out, n);
		break;
	case TPL_COMMAND:
		STAILQ_FOREACH (arg, &n->children, entry) {
			if (arg != STAILQ_FIRST(&n->children))
				text_add(out, " ");
			add_part(out, arg);
		}
		break;
	case TPL_FIELD:
	case TPL_VARIABLE:
		add_names(out, n, n->kind == TPL_FIELD);
		break;
	case TPL_CHAIN:
		add_part(out, n->chained);
		add_names(out, n, true);
		break;
	case TPL_ACTION:
		text_add(out, "{{");
		add_pipe(out, n->pipe);
		text_add(out, "}}");
		break;
	case TPL_CALL:
		text_add(out, "{{template ");
		text_bytes(out, n->text, n->len);
		if (n->pipe) {
			text_add(out, " ");
			add_pipe(out, n->pipe);
		}
		text_add(out, "}}");
		break;
	default:
		text_bytes(out, n->text, n->len);
		break;
	}
}
