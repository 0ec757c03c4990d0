/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sockaddr_func.c: the functions inside of sockaddr that give and shorten lists of addresses.
 * Runs in: template-renderer. */
#include <string.h>

#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_sockaddr.h"

static const char *
text_arg(struct go_call *c, size_t i)
{
	return arena_strndup(c->arena, c->args[i].s, c->args[i].len);
}

/* --- lists --- */

struct go_value
sockaddr_all(struct go_call *c)
{
	return if_list_value(c->arena, if_all(c));
}

struct go_value
sockaddr_default(struct go_call *c)
{
	const struct template_data *d = c->run->data;
	struct if_addrs all = if_all(c), list = { .v = all.v };
	bool found = false;

	for (size_t i = 0; i < d->n_interfaces; i++)
		found = found || d->interfaces[i].is_default;
	if (!found)
		go_call_fail(c, "No default interface found");
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i]->of->is_default)
			list.v[list.n++] = all.v[i];
	return if_list_value(c->arena, list);
}

/* Those that are up and that routers forward, of the default interface first. */
static struct if_addrs
by_privacy(struct go_call *c, bool private)
{
	struct if_addrs list = if_filter(c, "flags", "forwardable", if_all(c), true);

	list = if_filter(c, "flags", "up", list, true);
	list = if_sort(c, "default,type,size", list);
	return if_filter(c, "rfc", "6890", list, private);
}

struct go_value
sockaddr_private(struct go_call *c)
{
	return if_list_value(c->arena, by_privacy(c, true));
}

struct go_value
sockaddr_public(struct go_call *c)
{
	return if_list_value(c->arena, by_privacy(c, false));
}

/* --- addresses --- */

/* At most `most` addresses, with spaces between them. */
static struct go_value
addresses(struct go_call *c, struct if_addrs list, size_t most)
{
	struct text t = { .arena = c->arena };

	text_add(&t, "");
	for (size_t i = 0; i < list.n && i < most; i++) {
		text_add(&t, i > 0 ? " " : "");
		ip_add_address(&t, list.v[i]->ip.v6, list.v[i]->ip.address);
	}
	return go_text_value(&t);
}

struct go_value
sockaddr_private_ip(struct go_call *c)
{
	return addresses(c, by_privacy(c, true), 1);
}

struct go_value
sockaddr_public_ip(struct go_call *c)
{
	return addresses(c, by_privacy(c, false), 1);
}

struct go_value
sockaddr_private_ips(struct go_call *c)
{
	struct if_addrs list = if_sort(c, "type,size", if_all(c));

	list = if_filter(c, "rfc", "6890", list, true);
	return addresses(c, if_filter(c, "flags", "forwardable", list, true), SIZE_MAX);
}

struct go_value
sockaddr_public_ips(struct go_call *c)
{
	struct if_addrs list = if_sort(c, "type,size", if_all(c));

	return addresses(c, if_filter(c, "rfc", "6890", list, false), SIZE_MAX);
}

struct go_value
sockaddr_interface_ip(struct go_call *c)
{
	struct if_addrs list = if_filter(c, "name", text_arg(c, 0), if_all(c), true);

	list = if_filter(c, "flags", "forwardable", list, true);
	return addresses(c, if_sort(c, "type,size", list), 1);
}

struct go_value
sockaddr_interface_ips(struct go_call *c)
{
	struct if_addrs list = if_filter(c, "name", text_arg(c, 0), if_all(c), true);

	return addresses(c, if_sort(c, "type,size", list), SIZE_MAX);
}

/* --- what is done with a list --- */

struct go_value
sockaddr_include(struct go_call *c)
{
	struct if_addrs list = if_list(c->arena, c->args[2]);

	return if_list_value(c->arena, if_filter(c, text_arg(c, 0), text_arg(c, 1), list, true));
}

struct go_value
sockaddr_exclude(struct go_call *c)
{
	struct if_addrs list = if_list(c->arena, c->args[2]);

	return if_list_value(c->arena, if_filter(c, text_arg(c, 0), text_arg(c, 1), list, false));
}

struct go_value
sockaddr_sort(struct go_call *c)
{
	return if_list_value(c->arena, if_sort(c, text_arg(c, 0), if_list(c->arena, c->args[1])));
}

struct go_value
sockaddr_limit(struct go_call *c)
{
	struct go_value list = c->args[1];

	if (c->args[0].u < list.list.n)
		list.list.n = (size_t)c->args[0].u;
	return list;
}

/* A negative number counts from the end. */
struct go_value
sockaddr_offset(struct go_call *c)
{
	struct go_value list = c->args[1];
	int64_t off = c->args[0].i;
	uint64_t n = off < 0 ? -(uint64_t)off : (uint64_t)off;

	if (n > list.list.n)
		go_call_fail(c,
		    "unable to seek past the end of the interface array: offset (%llu) exceeds the "
		    "number of interfaces (%zu)",
		    (unsigned long long)n, list.list.n);
	if (off < 0)
		n = list.list.n - n;
	list.list.items += n;
	list.list.n -= n;
	return list;
}

/* Leaves out those whose name or address is that of the one before. */
struct go_value
sockaddr_unique(struct go_call *c)
{
	struct go_value by = go_lower(c->arena, c->args[0]), last = go_text(""), now;
	struct if_addrs list = if_list(c->arena, c->args[1]), to = { .v = list.v };
	struct text quoted = { .arena = c->arena };

	go_quote(&quoted, c->args[0].s, c->args[0].len, true);
	for (size_t i = 0; i < list.n; i++) {
		if (!go_text_is(by, "address") && !go_text_is(by, "name"))
			go_call_fail(c, "unsupported unique constraint %s", quoted.text);
		now = if_attribute(c, list.v[i], go_text_is(by, "name") ? by : go_text("string"));
		if (i == 0 || go_compare_text(now, last) != 0)
			to.v[to.n++] = list.v[i];
		last = now;
	}
	return if_list_value(c->arena, to);
}
