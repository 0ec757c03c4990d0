/* SPDX-License-Identifier: Apache-2.0 */
/* go_yaml_read.c: reads YAML. Runs in: template-renderer. */
#include <string.h>

#include "lang/yaml_read.h"
#include "template/go_base64.h"
#include "template/go_print.h"
#include "template/go_text.h"
#include "template/go_yaml.h"

static void
fail(void *call, size_t line, const char *why)
{
	if (line > 0)
		go_call_fail(call, "yaml: line %zu: %s", line + 1, why);
	go_call_fail(call, "yaml: %s", why);
}

static void *
box(struct go_call *c, struct go_value v)
{
	struct go_value *copy = arena_new(c->arena, struct go_value);

	*copy = v;
	return copy;
}

static struct go_value
tagged(struct go_call *c, const struct yaml_scalar *s, struct go_value v, bool string)
{
	const char *tag = s->tag;

	if (strcmp(tag, YAML_TAG("float")) == 0 && go_kind(v) == GO_INT)
		return go_float((double)v.i);
	if ((strcmp(tag, YAML_TAG("int")) == 0 &&
		(go_kind(v) == GO_INT || go_kind(v) == GO_UINT)) ||
	    (strcmp(tag, YAML_TAG("float")) == 0 && go_kind(v) == GO_FLOAT) ||
	    (strcmp(tag, YAML_TAG("bool")) == 0 && go_kind(v) == GO_BOOL) ||
	    (strcmp(tag, YAML_TAG("null")) == 0 && !v.type) ||
	    (strcmp(tag, YAML_TAG("timestamp")) == 0 && !string))
		return v;
	go_call_fail(c, "yaml: cannot decode `" TPL_VALUE("%s") "` as a %s", s->s,
	    strncmp(tag, YAML_TAG(""), strlen(YAML_TAG(""))) == 0
		? arena_printf(c->arena, "!!%s", tag + strlen(YAML_TAG("")))
		: tag);
}

/* Whether the tag has a meaning for what the scalar is. */
static bool
is_resolved(const char *tag)
{
	static const char *const tags[] = { "", YAML_TAG("bool"), YAML_TAG("int"),
		YAML_TAG("float"), YAML_TAG("null"), YAML_TAG("timestamp") };

	for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
		if (strcmp(tag, tags[i]) == 0)
			return true;
	return false;
}

static struct go_value
decode(struct go_call *c, struct go_value v)
{
	struct text t = { .arena = c->arena };

	if (go_decode_base64(&t, v, GO_BASE64))
		go_call_fail(c, "yaml: !!binary value contains invalid base64 data");
	return go_text_value(&t);
}

static void *
make_scalar(void *call, const struct yaml_scalar *s)
{
	struct go_call *c = call;
	const char *copy = arena_strndup(c->arena, s->s, s->len);
	struct go_value v = go_string(copy, s->len);
	bool string;

	if (strcmp(s->tag, YAML_TAG("binary")) == 0)
		return box(c, decode(c, v));
	if ((!*s->tag && !s->plain) || !is_resolved(s->tag))
		return box(c, v);
	string = go_yaml_is_string(c->arena, copy, s->len, &v);
	return box(c, *s->tag ? tagged(c, s, v, string) : v);
}

static void *
make_list(void *call, void **items, size_t n)
{
	struct go_call *c = call;
	struct go_value list = go_slice(c->arena, &go_type_anys, n);

	for (size_t i = 0; i < n; i++)
		list.list.items[i] = *(struct go_value *)items[i];
	return box(c, list);
}

static void
merge(struct go_call *c, struct go_value map, struct go_value from)
{
	if (go_kind(from) == GO_SLICE) {
		for (size_t i = from.list.n; i > 0; i--)
			merge(c, map, from.list.items[i - 1]);
		return;
	}
	if (go_kind(from) != GO_MAP)
		go_call_fail(c, "yaml: map merge requires map or sequence of maps as the value");
	for (size_t i = 0; i < go_map_len(from); i++)
		go_map_set(c->arena, map, from.map->v[i].key, from.map->v[i].value);
}

static void
refuse_key(struct go_call *c, struct go_value key)
{
	struct text t = { .arena = c->arena };

	go_printf(&t, "%#v", 3, &key, 1);
	go_call_fail(c, "yaml: invalid map key: " TPL_VALUE("%s"), t.text);
}

static void *
make_map(void *call, struct yaml_pair *pairs, size_t n)
{
	struct go_call *c = call;
	struct go_value map = go_map(c->arena, &go_type_any_map), key;

	for (size_t i = 0; i < n; i++) {
		if (!pairs[i].key) {
			merge(c, map, *(struct go_value *)pairs[i].value);
			continue;
		}
		key = *(struct go_value *)pairs[i].key;
		if (go_kind(key) == GO_MAP || go_kind(key) == GO_SLICE)
			refuse_key(c, key);
		go_map_set(c->arena, map, key, *(struct go_value *)pairs[i].value);
	}
	return box(c, map);
}

static void
enter(void *call)
{
	arena_enter(((struct go_call *)call)->arena);
}

static void
leave(void *call)
{
	arena_exit(((struct go_call *)call)->arena);
}

struct go_value
go_read_yaml(struct go_call *c, struct go_value text)
{
	static const struct yaml_maker maker = { .scalar = make_scalar,
		.list = make_list,
		.map = make_map,
		.enter = enter,
		.leave = leave,
		.fail = fail };
	struct go_value *v = yaml_read(c->arena, text.s, text.len, &maker, c);

	return v ? *v : go_nothing;
}
