/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sockaddr_list.c: chooses and sorts addresses. Runs in: template-renderer. */
#include <string.h>

#include "common/cleanup.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_sockaddr.h"

#define RFC_PRIVATE 6890

/* Returns the words between the separators, in lower case. */
static struct go_value
split_words(struct go_call *c, const char *list, const char *separator)
{
	return go_split(c->arena, go_lower(c->arena, go_text(list)), go_text(separator), -1);
}

static const char *
quote(struct go_call *c, const char *s)
{
	struct text t = { .arena = c->arena };

	go_quote(&t, s, strlen(s), false);
	return t.text;
}

static bool
is_private(const struct if_addr *a)
{
	bool known;

	return ip_in_rfc(&a->ip, RFC_PRIVATE, &known);
}

static bool
is_forwardable(const struct if_addr *a)
{
	bool known;

	return !ip_in_rfc(&a->ip, IP_FORWARDING_RFC, &known);
}

/* --- flags --- */

/* The words of the flags, separated by |. */
static bool
has_flag(const char *flags, const char *flag)
{
	size_t len = strlen(flag);

	for (; *flags; flags += strcspn(flags, "|"), flags += *flags == '|')
		if (strcspn(flags, "|") == len && memcmp(flags, flag, len) == 0)
			return true;
	return false;
}

static bool
is_in(const struct if_addr *a, const char *v4, const char *v6)
{
	const char *text = a->ip.v6 ? v6 : v4;
	struct go_ip network, host = a->ip;

	host.mask = ip_mask(host.v6, ip_width(&host));
	return *text && ip_parse(text, &network) && ip_contains(&network, &host);
}

static bool
is_link_multicast(const struct if_addr *a)
{
	return is_in(a, "224.0.0.0/24", "ff02::/16");
}

static bool
is_interface_multicast(const struct if_addr *a)
{
	return is_in(a, "", "ff01::/16");
}

static bool
is_link_unicast(const struct if_addr *a)
{
	return is_in(a, "169.254.0.0/16", "fe80::/10");
}

static bool
is_loopback(const struct if_addr *a)
{
	return is_in(a, "127.0.0.0/8", "::1");
}

static bool
is_multicast(const struct if_addr *a)
{
	return is_in(a, "224.0.0.0/4", "ff00::/8");
}

static bool
is_unspecified(const struct if_addr *a)
{
	return a->ip.address == 0;
}

static bool
is_global_unicast(const struct if_addr *a)
{
	return !is_unspecified(a) && !is_loopback(a) && !is_multicast(a) && !is_link_unicast(a) &&
	       !is_in(a, "255.255.255.255", "");
}

/* A flag of the interface, a property of the address, or either. In the order in which properties
 * are tried: only the first one that is asked for and that holds matters. */
static const struct flag {
	const char *name, *flag;
	bool (*has)(const struct if_addr *a);
} all_flags[] = {
	{ "global unicast", NULL, is_global_unicast },
	{ "interface-local multicast", NULL, is_interface_multicast },
	{ "link-local multicast", NULL, is_link_multicast },
	{ "link-local unicast", NULL, is_link_unicast },
	{ "loopback", "loopback", is_loopback },
	{ "multicast", "multicast", is_multicast },
	{ "unspecified", NULL, is_unspecified },
	{ "forwardable", NULL, is_forwardable },
	{ "broadcast", "broadcast", NULL },
	{ "down", "", NULL },
	{ "point-to-point", "pointtopoint", NULL },
	{ "up", "up", NULL },
};

static const struct flag *
find_flag(struct go_call *c, struct go_value name)
{
	for (size_t i = 0; i < ELEMENTSOF(all_flags); i++)
		if (go_text_is(name, all_flags[i].name))
			return &all_flags[i];
	go_call_fail(
	    c, "Unknown interface flag: %s", quote(c, arena_strndup(c->arena, name.s, name.len)));
}

/* An address is chosen if its interface has all of the flags, or if it has one of the properties.
 */
static bool
by_flags(struct go_call *c, const struct if_addr *a, const char *param)
{
	struct go_value words = split_words(c, param, "|");
	bool asks = false, all = true, any = false;

	for (size_t i = 0; i < words.list.n; i++) {
		const struct flag *f = find_flag(c, words.list.items[i]);

		if (f->flag) {
			asks = true;
			all = all && (!*f->flag || has_flag(a->of->flags, f->flag));
		}
		any = any || (f->has && f->has(a));
	}
	return any || (asks && all);
}

/* --- the selectors, for one part of the parameter --- */

static bool
by_address(struct go_call *c, const struct if_addr *a, const char *param)
{
	struct text t = { .arena = c->arena };

	ip_add(&t, &a->ip);
	return tpl_regex_matches(c, go_text(param), t.text);
}

static bool
by_name(struct go_call *c, const struct if_addr *a, const char *param)
{
	return tpl_regex_matches(c, go_text(param), a->of->name);
}

static bool
by_port(struct go_call *c, const struct if_addr *a, const char *param)
{
	return tpl_regex_matches(c, go_text(param), arena_printf(c->arena, "%u", a->ip.port));
}

static bool
by_network(struct go_call *c, const struct if_addr *a, const char *param)
{
	struct go_ip network;

	if (!ip_parse(param, &network))
		go_call_fail(c, "unable to create an IP address from %s: invalid IPAddr %s",
		    quote(c, param), param);
	return ip_contains(&network, &a->ip);
}

static bool
by_rfc(struct go_call *c, const struct if_addr *a, const char *param)
{
	uint64_t rfc;
	bool known, is;

	if (go_parse_uint(param, strlen(param), 10, &rfc) < 0)
		go_call_fail(c, "unable to lookup RFC number %s: it is no number", quote(c, param));
	is = ip_in_rfc(&a->ip, rfc, &known);
	if (!known)
		go_call_fail(c, "unable to lookup RFC number %s: unsupported RFC %s",
		    quote(c, param), param);
	return is;
}

static bool
by_size(struct go_call *c, const struct if_addr *a, const char *param)
{
	uint64_t bits;

	if (go_parse_uint(param, strlen(param), 10, &bits) < 0)
		go_call_fail(c, "invalid exclude size argument (%s)", quote(c, param));
	if (bits > ip_width(&a->ip))
		go_call_fail(c, "mask size out of bounds for %s address: %s",
		    a->ip.v6 ? "IPv6" : "IPv4", param);
	return ip_mask_bits(&a->ip) == bits;
}

static bool
by_type(struct go_call *c, const struct if_addr *a, const char *param)
{
	const char *type = a->ip.v6 ? "ipv6" : "ipv4";

	if (strcmp(param, "ip") == 0 || strcmp(param, type) == 0)
		return true;
	if (strcmp(param, "ipv4") != 0 && strcmp(param, "ipv6") != 0 && strcmp(param, "unix") != 0)
		go_call_fail(c, "unsupported type %s", quote(c, param));
	return false;
}

/* Each part of the parameter goes through all addresses, or each address through all parts. The
 * same address may be chosen twice, and be among the others for another part. */
static const struct selector {
	const char *name;
	bool (*chooses)(struct go_call *c, const struct if_addr *a, const char *param);
	enum { WHOLE, BY_PART, BY_ADDRESS } parts;
} selectors[] = {
	{ "address", by_address, WHOLE },
	{ "flag", by_flags, WHOLE },
	{ "flags", by_flags, WHOLE },
	{ "name", by_name, WHOLE },
	{ "network", by_network, BY_PART },
	{ "port", by_port, WHOLE },
	{ "rfc", by_rfc, BY_PART },
	{ "rfcs", by_rfc, BY_PART },
	{ "size", by_size, WHOLE },
	{ "type", by_type, BY_ADDRESS },
};

static const struct selector *
find_selector(struct go_call *c, const char *name, bool kept)
{
	struct go_value lower = go_lower(c->arena, go_text(name));

	for (size_t i = 0; i < ELEMENTSOF(selectors); i++)
		if (go_text_is(lower, selectors[i].name))
			return &selectors[i];
	go_call_fail(c, "invalid %s selector %s", kept ? "include" : "exclude", quote(c, name));
}

struct if_addrs
if_filter(struct go_call *c, const char *name, const char *param, struct if_addrs from, bool kept)
{
	const struct selector *s = find_selector(c, name, kept);
	struct go_value parts = s->parts == WHOLE ? go_slice(c->arena, &go_type_strings, 1)
						  : split_words(c, param, "|");
	size_t n = parts.list.n;
	struct if_addrs to = { .v = arena_alloc(c->arena, n * from.n * sizeof *to.v) };

	if (s->parts == WHOLE)
		parts.list.items[0] = go_text(param);
	for (size_t i = 0; i < n * from.n; i++) {
		size_t at = s->parts == BY_ADDRESS ? i / n : i % from.n;
		struct go_value part =
		    parts.list.items[s->parts == BY_ADDRESS ? i % n : i / from.n];

		arena_step(c->arena, 1);
		if (s->chooses(c, from.v[at], arena_strndup(c->arena, part.s, part.len)) == kept)
			to.v[to.n++] = from.v[at];
	}
	return to;
}

/* --- the order --- */

static int
compare_numbers(ip_number a, ip_number b)
{
	return (a > b) - (a < b);
}

static int
compare_address(const struct if_addr *a, const struct if_addr *b)
{
	return a->ip.v6 == b->ip.v6 ? compare_numbers(a->ip.address, b->ip.address) : 0;
}

static int
compare_default(const struct if_addr *a, const struct if_addr *b)
{
	return b->of->is_default - a->of->is_default;
}

static int
compare_name(const struct if_addr *a, const struct if_addr *b)
{
	int r = strcmp(a->of->name, b->of->name);

	return (r > 0) - (r < 0);
}

static int
compare_port(const struct if_addr *a, const struct if_addr *b)
{
	return compare_numbers(a->ip.port, b->ip.port);
}

static int
compare_private(const struct if_addr *a, const struct if_addr *b)
{
	return a->ip.v6 == b->ip.v6 ? is_private(b) - is_private(a) : is_private(a) ? -1 : 0;
}

static int
compare_size(const struct if_addr *a, const struct if_addr *b)
{
	return a->ip.v6 == b->ip.v6 ? compare_numbers(a->ip.mask, b->ip.mask) : 0;
}

static int
compare_type(const struct if_addr *a, const struct if_addr *b)
{
	return a->ip.v6 - b->ip.v6;
}

static const struct order {
	const char *name;
	int (*compare)(const struct if_addr *a, const struct if_addr *b);
} orders[] = {
	{ "address", compare_address },
	{ "default", compare_default },
	{ "name", compare_name },
	{ "port", compare_port },
	{ "private", compare_private },
	{ "size", compare_size },
	{ "type", compare_type },
};

struct clause {
	const struct order *order;
	bool backwards;
};

static struct clause
find_clause(struct go_call *c, struct go_value word)
{
	struct go_value name = go_trim_space(word);
	bool backwards = name.len > 0 && *name.s == '-';

	if (backwards || (name.len > 0 && *name.s == '+')) {
		name.s++;
		name.len--;
	}
	for (size_t i = 0; i < ELEMENTSOF(orders); i++)
		if (go_text_is(name, orders[i].name))
			return (struct clause){ &orders[i], backwards };
	go_call_fail(
	    c, "unknown sort type: %s", quote(c, arena_strndup(c->arena, word.s, word.len)));
}

static int
compare_by(const struct clause *by, size_t n, const struct if_addr *a, const struct if_addr *b)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = by[i].backwards ? -by[i].order->compare(a, b) : by[i].order->compare(a, b);
	return r;
}

struct if_addrs
if_sort(struct go_call *c, const char *by, struct if_addrs from)
{
	struct go_value words = split_words(c, by, ",");
	struct clause *clauses = arena_alloc(c->arena, words.list.n * sizeof *clauses);
	struct if_addrs to = { .v = arena_alloc(c->arena, from.n * sizeof *to.v) };

	for (size_t i = 0; i < words.list.n; i++)
		clauses[i] = find_clause(c, words.list.items[i]);
	for (size_t i = 0; i < from.n; i++) {
		size_t at = to.n++;

		for (; at > 0 && compare_by(clauses, words.list.n, from.v[i], to.v[at - 1]) < 0;
		     at--) {
			arena_step(c->arena, 1);
			to.v[at] = to.v[at - 1];
		}
		to.v[at] = from.v[i];
	}
	return to;
}
