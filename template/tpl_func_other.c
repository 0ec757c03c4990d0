/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_func_other.c: what comes from Consul and Vault. It is listed as missing, under the names that
 * the original shows. Runs in: template-renderer. */
#include <sha1.h>
#include <string.h>

#include "template/go_source.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_functions.h"
#include "template/tpl_run.h"

static void
miss(struct go_call *c, const char *name)
{
	struct template_query q = { .kind = TEMPLATE_NEED_OTHER, .name = name };
	bool first;

	tpl_need(c->run, &q, name, &first)->need.missing = true;
}

/* The arguments, separated by `by`. */
static const char *
joined(struct go_call *c, const char *by)
{
	struct text t = { .arena = c->arena };

	text_add(&t, "");
	for (size_t i = 0; i < c->n; i++) {
		if (i > 0)
			text_add(&t, by);
		text_bytes(&t, c->args[i].s, c->args[i].len);
	}
	return t.text;
}

/* WHAT(arguments), or WHAT without any. */
static void
miss_call(struct go_call *c, const char *what, const char *arguments)
{
	miss(c, *arguments ? arena_printf(c->arena, "%s(%s)", what, arguments) : what);
}

static struct go_value
trimmed_path(struct go_call *c, const char *what)
{
	struct go_value path = go_trim(go_trim_space(c->args[0]), go_text("/"));

	if (path.len == 0)
		go_call_fail(c, "%s: invalid format: \"\"", what);
	return path;
}

/* A key of Consul may begin with a slash. */
static void
miss_key(struct go_call *c, const char *what)
{
	struct go_value key = go_trim_prefix(c->args[0], go_text("/"));

	if (c->args[0].len > 0)
		miss_call(c, what, arena_strndup(c->arena, key.s, key.len));
}

struct go_value
tpl_fn_key(struct go_call *c)
{
	miss_key(c, "kv.block");
	return go_text("");
}

struct go_value
tpl_fn_key_exists(struct go_call *c)
{
	miss_key(c, "kv.get");
	return go_bool(false);
}

struct go_value
tpl_fn_key_or_default(struct go_call *c)
{
	miss_key(c, "kv.get");
	return c->args[1];
}

/* ls, tree and their like */
struct go_value
tpl_fn_keys(struct go_call *c)
{
	miss_key(c, "kv.list");
	return go_slice(c->arena, &go_type_key_pairs, 0);
}

struct go_value
tpl_fn_datacenters(struct go_call *c)
{
	if (c->n > 1)
		go_call_fail(c,
		    "datacenters: wrong number of arguments, expected 0 or 1, but got %zu", c->n);
	miss(c, "catalog.datacenters");
	return go_slice(c->arena, &go_type_strings, 0);
}

/* A service, with the filters after "|"; without any: those that pass. */
static struct go_value
miss_service(struct go_call *c, const char *what)
{
	const char *name = joined(c, "|");

	if (c->n > 0 && c->args[0].len > 0)
		miss_call(
		    c, what, strchr(name, '|') ? name : arena_printf(c->arena, "%s|passing", name));
	return go_slice(c->arena, &go_type_health_services, 0);
}

struct go_value
tpl_fn_service(struct go_call *c)
{
	return miss_service(c, "health.service");
}

struct go_value
tpl_fn_connect(struct go_call *c)
{
	return miss_service(c, "health.connect");
}

struct go_value
tpl_fn_services(struct go_call *c)
{
	miss_call(c, "catalog.services", joined(c, ""));
	return go_slice(c->arena, &go_type_catalog_stubs, 0);
}

struct go_value
tpl_fn_node(struct go_call *c)
{
	miss_call(c, "catalog.node", joined(c, ""));
	return go_nothing;
}

struct go_value
tpl_fn_nodes(struct go_call *c)
{
	miss_call(c, "catalog.nodes", joined(c, ""));
	return go_slice(c->arena, &go_type_nodes, 0);
}

/* Lists whose elements no template can see. */
static struct go_value
miss_list(struct go_call *c, const char *name)
{
	miss(c, name);
	return go_slice(c->arena, &go_type_nodes, 0);
}

struct go_value
tpl_fn_partitions(struct go_call *c)
{
	return miss_list(c, "list.partitions");
}

struct go_value
tpl_fn_peerings(struct go_call *c)
{
	return miss_list(c, arena_printf(c->arena, "list.peerings%s", joined(c, "")));
}

struct go_value
tpl_fn_exported_services(struct go_call *c)
{
	if (c->n > 1)
		go_call_fail(c, "exportedServices: wrong number of arguments, expected 0 or 1");
	return miss_list(c, arena_printf(c->arena, "list.exportedServices(%s)", joined(c, "")));
}

struct go_value
tpl_fn_imported_services(struct go_call *c)
{
	if (c->args[0].len == 0)
		go_call_fail(c, "importedServices: partition name is required");
	return miss_list(c, arena_printf(c->arena, "list.importedServices(%s)", joined(c, "")));
}

struct go_value
tpl_fn_ca_roots(struct go_call *c)
{
	miss(c, "connect.caroots");
	return go_slice(c->arena, &go_type_nodes, 0);
}

struct go_value
tpl_fn_ca_leaf(struct go_call *c)
{
	if (c->n > 0 && c->args[0].len > 0)
		miss_call(
		    c, "connect.caleaf", arena_strndup(c->arena, c->args[0].s, c->args[0].len));
	return go_nothing;
}

static void
check_pairs(struct go_call *c)
{
	for (size_t i = 1; i < c->n; i++) {
		struct text t = { .arena = c->arena };

		if (c->args[i].len == 0 || memchr(c->args[i].s, '=', c->args[i].len))
			continue;
		go_quote(&t, c->args[i].s, c->args[i].len, false);
		go_call_fail(c, "not k=v pair %s", t.text);
	}
}

/* The first bytes of a hash of what is written: the name of the dependency does not show it. */
static const char *
hash_pairs(struct go_call *c)
{
	struct go_value pairs = go_map(c->arena, &go_type_string_map);
	struct text t = { .arena = c->arena };
	char hex[SHA1_DIGEST_STRING_LENGTH];

	for (size_t i = 1; i < c->n; i++) {
		struct go_value pair = c->args[i];
		const char *at = memchr(pair.s, '=', pair.len);

		if (at)
			go_map_set(c->arena, pairs,
			    go_trim_space(go_string(pair.s, (size_t)(at - pair.s))),
			    go_trim_space(go_string(at + 1, pair.len - (size_t)(at - pair.s) - 1)));
	}
	text_add(&t, "");
	for (size_t i = 0; i < go_map_len(pairs); i++) {
		text_bytes(&t, pairs.map->v[i].key.s, pairs.map->v[i].key.len);
		text_add(&t, "=");
		go_quote(&t, pairs.map->v[i].value.s, pairs.map->v[i].value.len, false);
	}
	return arena_printf(c->arena, "%.8s", SHA1Data((const uint8_t *)t.text, t.len, hex));
}

/* A path, perhaps with ?version=N; or a path and what is written there. */
struct go_value
tpl_fn_secret(struct go_call *c)
{
	struct go_value path;
	const char *text, *query, *version;

	if (c->n == 0)
		return go_nothing;
	check_pairs(c);
	path = trimmed_path(c, c->n == 1 ? "vault.read" : "vault.write");
	text = arena_strndup(c->arena, path.s, path.len);
	if (c->n > 1) {
		miss(c, arena_printf(c->arena, "vault.write(%s -> %s)", text, hash_pairs(c)));
		return go_nothing;
	}
	query = strchr(text, '?');
	version = query ? strstr(query, "version=") : NULL;
	if (query)
		text = arena_printf(c->arena, "%.*s%s%.*s", (int)(query - text), text,
		    version ? ".v" : "", version ? (int)strcspn(version + 8, "&") : 0,
		    version ? version + 8 : "");
	miss_call(c, "vault.read", text);
	return go_nothing;
}

struct go_value
tpl_fn_secrets(struct go_call *c)
{
	struct go_value path;

	if (c->args[0].len == 0)
		return (struct go_value){ .type = &go_type_strings };
	path = trimmed_path(c, "vault.list");
	miss_call(c, "vault.list", arena_strndup(c->arena, path.s, path.len));
	return (struct go_value){ .type = &go_type_strings };
}

struct go_value
tpl_fn_pki_cert(struct go_call *c)
{
	struct go_value path;

	if (c->n == 0)
		return go_nothing;
	check_pairs(c);
	path = trimmed_path(c, "vault.read");
	miss(c, arena_printf(c->arena, "vault.pki(%.*s)", (int)path.len, path.s));
	return go_nothing;
}
