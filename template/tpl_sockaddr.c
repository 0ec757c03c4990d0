/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sockaddr.c: the function sockaddr, which executes its argument as a template of its own, with
 * functions of its own. Runs in: template-renderer. */
#include "template/tpl_sockaddr.h"

#include <string.h>

#include "common/cleanup.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_parse.h"

#define NAME "sockaddr.Parse"

static const struct go_function functions[] = {
#define SOCKADDR_FUNCTION(function, parameters, function_fn)                                       \
	{ .name = (function), .params = (parameters), .fn = (function_fn) },
#include "template/tpl_sockaddr.def"
#undef SOCKADDR_FUNCTION
};

static const struct go_function *
find_function(const char *name, size_t len)
{
	for (size_t i = 0; i < ELEMENTSOF(functions); i++)
		if (strlen(functions[i].name) == len && memcmp(functions[i].name, name, len) == 0)
			return functions[i].fn ? &functions[i] : tpl_find_function(name, len);
	return NULL;
}

/* --- values --- */

enum { IF_SOCKADDR, IF_NAME, IF_INDEX, IF_MTU, IF_DATA, IF_FIELDS };

static const struct go_type data_type = { .kind = GO_POINTER, .name = "*net.Interface" };
static const struct go_type sockaddr_type = { .kind = GO_STRING, .name = "sockaddr.SockAddr" };
static const struct go_field fields[] = {
	[IF_SOCKADDR] = { "SockAddr", &sockaddr_type, false },
	[IF_NAME] = { "Name", &go_type_string, false },
	[IF_INDEX] = { "Index", &go_type_int, false },
	[IF_MTU] = { "MTU", &go_type_int, false },
	[IF_DATA] = { "data", &data_type, true },
};

const struct if_addr *if_of_value(struct go_value v);

/* As fmt prints sockaddr.IfAddr: the address and a net.Interface. */
static struct go_value
shown(struct arena *a, const struct go_value *v)
{
	const struct if_addr *addr = if_of_value(*v);
	struct text t = { .arena = a };

	ip_add(&t, &addr->ip);
	text_add(&t, arena_printf(a, " {%d %d %s %s %s}", addr->of->index, addr->of->mtu,
			 addr->of->name, addr->of->hardware, addr->of->flags));
	return go_text_value(&t);
}

static const struct go_type if_type = { .kind = GO_STRUCT,
	.name = "sockaddr.IfAddr",
	.fields = fields,
	.n_fields = IF_FIELDS,
	.string = shown };
const struct go_type go_type_if_addrs = {
	.kind = GO_SLICE, .name = "sockaddr.IfAddrs", .elem = &if_type
};

const struct if_addr *
if_of_value(struct go_value v)
{
	return v.type == &if_type ? v.fields[IF_DATA].nil : NULL;
}

struct go_value
if_value(struct arena *a, const struct if_addr *addr)
{
	struct go_value v = { .type = &if_type,
		.fields = arena_alloc(a, IF_FIELDS * sizeof(struct go_value)) };
	struct text t = { .arena = a };

	ip_add(&t, &addr->ip);
	v.fields[IF_SOCKADDR] = go_text_value(&t);
	v.fields[IF_NAME] = go_text(addr->of->name);
	v.fields[IF_INDEX] = go_int(addr->of->index);
	v.fields[IF_MTU] = go_int(addr->of->mtu);
	v.fields[IF_DATA] = (struct go_value){ .type = &data_type, .nil = addr };
	return v;
}

struct go_value
if_list_value(struct arena *a, struct if_addrs list)
{
	struct go_value v = go_slice(a, &go_type_if_addrs, list.n);

	for (size_t i = 0; i < list.n; i++)
		v.list.items[i] = if_value(a, list.v[i]);
	return v;
}

struct if_addrs
if_list(struct arena *a, struct go_value v)
{
	struct if_addrs list = { .v = arena_alloc(a, v.list.n * sizeof *list.v), .n = v.list.n };

	for (size_t i = 0; i < list.n; i++)
		list.v[i] = if_of_value(v.list.items[i]);
	return list;
}

struct if_addrs
if_all(struct go_call *c)
{
	const struct template_data *d = c->run->data;
	struct if_addrs list = { .v = arena_alloc(c->arena, d->n_interfaces * sizeof *list.v) };

	for (size_t i = 0; i < d->n_interfaces; i++) {
		struct if_addr *addr = arena_new(c->arena, struct if_addr);

		arena_step(c->arena, 1);
		addr->of = &d->interfaces[i];
		if (ip_parse(addr->of->address, &addr->ip))
			list.v[list.n++] = addr;
	}
	return list;
}

/* --- the template --- */

static void
parse(void *parser)
{
	tpl_parse(parser);
}

struct inner {
	struct go_call *c;
	struct tpl_run *run;
};

static void
execute(void *inner)
{
	struct inner *in = inner;

	in->run->scratch = go_map(in->run->arena, &go_type_dict);
	tpl_execute(in->run, tpl_find_tree(in->run->text, "", 0),
	    if_list_value(in->run->arena, if_all(in->c)));
}

static void
fail_inner(struct go_call *c, const char *what, const struct tpl_text *text, const char *problem)
{
	struct text input = { .arena = c->arena };

	if (c->arena->exhausted)
		arena_leave(c->arena);
	go_quote(&input, text->text, text->len, true);
	/* The sentence shows parts of the text, which may be computed from a secret. */
	go_call_fail(c, "unable to %s %s: " TPL_VALUE("%s"), what, input.text, problem);
}

struct go_value
tpl_fn_sockaddr(struct go_call *c)
{
	struct go_value args = go_slice(c->arena, &go_type_strings, c->n);
	struct text source = { .arena = c->arena }, out = source;
	struct tpl_text text = { .name = NAME, .left = "{{", .right = "}}" };
	struct tpl_parser p = { .arena = c->arena, .text = &text, .denied = "" };
	struct tpl_run run = { .arena = c->arena,
		.text = &text,
		.data = c->run->data,
		.missing_key_fails = true,
		.out = &out,
		.output_max = c->run->output_max };
	struct inner inner = { c, &run };

	if (c->n > 0)
		memcpy(args.list.items, c->args, c->n * sizeof *c->args);
	args = go_join(c->arena, args, go_text(" "));
	text_add(&source, "{{ ");
	text_bytes(&source, args.s, args.len);
	text_add(&source, " }}");
	text.text = source.text;
	text.len = source.len;
	p.find_function = find_function;
	STAILQ_INIT(&run.needs);
	STAILQ_INIT(&run.secrets);
	text_add(&out, "");
	if (!arena_try(c->arena, parse, &p))
		fail_inner(c, "parse template", &text, p.problem);
	if (!arena_try(c->arena, execute, &inner))
		fail_inner(c, "execute sockaddr input", &text, run.problem);
	return go_text_value(&out);
}
