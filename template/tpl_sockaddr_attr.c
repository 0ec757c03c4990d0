/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_sockaddr_attr.c: attributes of addresses. Runs in: template-renderer. */
#include <string.h>

#include "common/cleanup.h"
#include "template/go_strings.h"
#include "template/go_text.h"
#include "template/tpl_sockaddr.h"

static void
add_host(struct text *out, const struct go_ip *ip, ip_number address)
{
	const struct go_ip host = { ip->v6, address, ip_mask(ip->v6, ip_width(ip)), 0 };

	ip_add(out, &host);
}

static void
add_flags(struct text *out, const struct if_addr *a)
{
	text_add(out, a->of->flags);
}

static void
add_name(struct text *out, const struct if_addr *a)
{
	text_add(out, a->of->name);
}

static void
add_address(struct text *out, const struct if_addr *a)
{
	ip_add_address(out, a->ip.v6, a->ip.address);
}

static void
add_digits(struct text *out, const struct if_addr *a, unsigned bits)
{
	for (unsigned at = ip_width(&a->ip); at > 0; at -= bits)
		text_bytes(
		    out, &"0123456789abcdef"[a->ip.address >> (at - bits) & ((1u << bits) - 1)], 1);
}

static void
add_binary(struct text *out, const struct if_addr *a)
{
	add_digits(out, a, 1);
}

static void
add_hex(struct text *out, const struct if_addr *a)
{
	add_digits(out, a, 4);
}

/* Of IPv6 it is the network's own address. */
static void
add_first_usable(struct text *out, const struct if_addr *a)
{
	add_host(out, &a->ip, ip_network(&a->ip) + (!a->ip.v6 && ip_mask_bits(&a->ip) < 31));
}

static void
add_last_usable(struct text *out, const struct if_addr *a)
{
	add_host(out, &a->ip, ip_last(&a->ip) - (!a->ip.v6 && ip_mask_bits(&a->ip) < 31));
}

static void
add_self(struct text *out, const struct if_addr *a)
{
	struct go_ip host = a->ip;

	host.mask = ip_mask(host.v6, ip_width(&host));
	ip_add(out, &host);
}

static void
add_mask_bits(struct text *out, const struct if_addr *a)
{
	ip_add_decimal(out, ip_mask_bits(&a->ip));
}

static void
add_netmask(struct text *out, const struct if_addr *a)
{
	add_host(out, &a->ip, a->ip.mask);
}

static void
add_network(struct text *out, const struct if_addr *a)
{
	ip_add_address(out, a->ip.v6, ip_network(&a->ip));
}

static void
add_octets(struct text *out, const struct if_addr *a)
{
	for (unsigned at = ip_width(&a->ip); at > 0; at -= 8) {
		text_add(out, at == ip_width(&a->ip) ? "" : " ");
		ip_add_decimal(out, a->ip.address >> (at - 8) & 0xff);
	}
}

static void
add_port(struct text *out, const struct if_addr *a)
{
	ip_add_decimal(out, a->ip.port);
}

static void
add_broadcast(struct text *out, const struct if_addr *a)
{
	add_host(out, &a->ip, ip_last(&a->ip));
}

static void
add_size(struct text *out, const struct if_addr *a)
{
	if (a->ip.v6 && a->ip.mask == 0)
		text_add(out, "340282366920938463463374607431768211456"); /* 2^128 */
	else
		ip_add_decimal(out, ip_last(&a->ip) - ip_network(&a->ip) + 1);
}

static void
add_integer(struct text *out, const struct if_addr *a)
{
	ip_add_decimal(out, a->ip.address);
}

static void
add_string(struct text *out, const struct if_addr *a)
{
	ip_add(out, &a->ip);
}

static void
add_type(struct text *out, const struct if_addr *a)
{
	text_add(out, a->ip.v6 ? "IPv6" : "IPv4");
}

static const struct attribute {
	const char *name;
	void (*add)(struct text *out, const struct if_addr *a);
	bool v4, v6;
} attributes[] = {
	{ "flags", add_flags, true, true },
	{ "name", add_name, true, true },
	{ "address", add_address, true, true },
	{ "binary", add_binary, true, true },
	{ "first_usable", add_first_usable, true, true },
	{ "hex", add_hex, true, true },
	{ "host", add_self, true, true },
	{ "last_usable", add_last_usable, true, true },
	{ "mask_bits", add_mask_bits, true, true },
	{ "netmask", add_netmask, true, true },
	{ "network", add_network, true, true },
	{ "octets", add_octets, true, true },
	{ "port", add_port, true, true },
	{ "broadcast", add_broadcast, true, false },
	{ "size", add_size, true, true },
	{ "uint32", add_integer, true, false },
	{ "uint128", add_integer, false, true },
	{ "string", add_string, true, true },
	{ "type", add_type, true, true },
};

struct go_value
if_attribute(struct go_call *c, const struct if_addr *addr, struct go_value name)
{
	struct text t = { .arena = c->arena }, quoted = t;

	name = go_lower(c->arena, name);
	text_add(&t, "");
	for (size_t i = 0; i < ELEMENTSOF(attributes); i++)
		if (go_text_is(name, attributes[i].name) &&
		    (addr->ip.v6 ? attributes[i].v6 : attributes[i].v4)) {
			attributes[i].add(&t, addr);
			return go_text_value(&t);
		}
	go_quote(&quoted, name.s, name.len, false);
	go_call_fail(c, "unsupported attribute name %s", quoted.text);
}

/* Of an address, or of the first one of a list. */
struct go_value
sockaddr_attr(struct go_call *c)
{
	const struct if_addr *addr = if_of_value(c->args[1]);

	if (c->args[1].type == &go_type_if_addrs) {
		if (c->args[1].list.n == 0)
			return go_text("");
		addr = if_of_value(c->args[1].list.items[0]);
	}
	if (!addr)
		go_call_fail(c, "unable to obtain attribute " TPL_VALUE("%.*s") " from type %s",
		    (int)c->args[0].len, c->args[0].s, go_type_name(c->args[1]));
	return if_attribute(c, addr, c->args[0]);
}

struct go_value
sockaddr_join(struct go_call *c)
{
	struct if_addrs list = if_list(c->arena, c->args[2]);
	struct go_value texts = go_slice(c->arena, &go_type_strings, list.n);

	for (size_t i = 0; i < list.n; i++)
		texts.list.items[i] = if_attribute(c, list.v[i], c->args[0]);
	return go_join(c->arena, texts, c->args[1]);
}

/* --- arithmetic --- */

static bool
is_signed(struct go_value s)
{
	struct go_value t = go_trim_space(s);

	return t.len > 0 && (t.s[0] == '+' || t.s[0] == '-');
}

static int64_t
operand(struct go_call *c, int64_t min, int64_t max)
{
	struct text value = { .arena = c->arena }, operation = value;
	int64_t i;

	if (go_parse_int(c->args[1].s, c->args[1].len, 10, &i) == 0 && i >= min && i <= max)
		return i;
	go_quote(&value, c->args[1].s, c->args[1].len, false);
	go_quote(&operation, c->args[0].s, c->args[0].len, false);
	go_call_fail(c, "unable to convert %s to int for operation %s", value.text, operation.text);
}

/* Counts from the network's first address, or backwards from its last one. */
static ip_number
in_network(const struct go_ip *ip, int64_t i)
{
	ip_number hosts = ~ip->mask & ip_mask(ip->v6, ip_width(ip));
	ip_number n = (ip_number)i;

	if (i < 0 && !ip->v6)
		n += hosts + 1;
	if (i > 0 || !ip->v6)
		return ip_network(ip) + (n & hosts);
	n = (ip_number)-i - 1;
	return ip_last(ip) - (n & hosts);
}

static void
apply_mask(struct go_call *c, struct go_ip *ip)
{
	ip_number mask = ip_mask(ip->v6, (unsigned)operand(c, 0, ip_width(ip)));

	ip->address &= mask;
	if (mask < ip->mask)
		ip->mask = mask;
}

static const struct if_addr *
compute(struct go_call *c, struct go_value operation, const struct if_addr *from)
{
	struct if_addr *to = arena_new(c->arena, struct if_addr);
	struct go_ip *ip = &to->ip;
	struct text quoted = { .arena = c->arena };
	int64_t max = from->ip.v6 ? INT64_MAX : UINT32_MAX,
		min = from->ip.v6 ? INT64_MIN : -max - 1;

	*to = *from;
	ip->port = 0;
	go_quote(&quoted, c->args[0].s, c->args[0].len, false);
	if (go_text_is(operation, "mask"))
		apply_mask(c, ip);
	else if (!go_text_is(operation, "address") && !go_text_is(operation, "network"))
		go_call_fail(c, "unsupported math operation: %s", quoted.text);
	else if (!is_signed(c->args[1]))
		go_call_fail(c, "sign (+/-) is required for operation %s", quoted.text);
	else if (go_text_is(operation, "address"))
		ip->address =
		    (ip->address + (ip_number)operand(c, min, max)) & ip_mask(ip->v6, ip_width(ip));
	else
		ip->address = in_network(ip, operand(c, min, max)) & ip_mask(ip->v6, ip_width(ip));
	return to;
}

struct go_value
sockaddr_math(struct go_call *c)
{
	struct if_addrs list = if_list(c->arena, c->args[2]);
	struct go_value operation = go_lower(c->arena, c->args[0]);

	for (size_t i = 0; i < list.n; i++)
		list.v[i] = compute(c, operation, list.v[i]);
	return if_list_value(c->arena, list);
}
