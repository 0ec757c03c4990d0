/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_format.c: JSON, YAML and TOML. Runs in: template-renderer. */
#include "template/go_json.h"
#include "template/go_strings.h"
#include "template/go_toml.h"
#include "template/go_yaml.h"
#include "template/tpl_functions.h"

struct go_value
tpl_fn_parse_json(struct go_call *c)
{
	return c->args[0].len == 0 ? go_map(c->arena, &go_type_dict) : go_read_json(c, c->args[0]);
}

struct go_value
tpl_fn_parse_yaml(struct go_call *c)
{
	return c->args[0].len == 0 ? go_map(c->arena, &go_type_dict) : go_read_yaml(c, c->args[0]);
}

static struct go_value
json_text(struct go_call *c, unsigned flags)
{
	struct text t = { .arena = c->arena };
	const char *why = go_write_json(&t, c->args[0], flags);

	if (why)
		go_call_fail(c, "%s: %s", c->name, why);
	return go_text_value(&t);
}

struct go_value
tpl_fn_to_json(struct go_call *c)
{
	return json_text(c, GO_JSON_ESCAPE_HTML);
}

struct go_value
tpl_fn_to_json_pretty(struct go_call *c)
{
	return json_text(c, GO_JSON_ESCAPE_HTML | GO_JSON_INDENT);
}

struct go_value
tpl_fn_to_unescaped_json(struct go_call *c)
{
	return json_text(c, 0);
}

struct go_value
tpl_fn_to_unescaped_json_pretty(struct go_call *c)
{
	return json_text(c, GO_JSON_INDENT);
}

struct go_value
tpl_fn_to_yaml(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	go_write_yaml(c, &t, c->args[0]);
	return go_trim_space(go_text_value(&t));
}

struct go_value
tpl_fn_to_toml(struct go_call *c)
{
	struct text t = { .arena = c->arena };
	const char *why;

	if (!c->args[0].type)
		go_call_fail(c, "reflect: call of reflect.Value.Type on zero Value");
	why = go_write_toml(&t, c->args[0]);
	if (why)
		go_call_fail(c, "toTOML: %s", why);
	return go_trim_space(go_text_value(&t));
}
