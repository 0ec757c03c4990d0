/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_cidr.c: functions about networks such as 10.0.0.0/8. Runs in: cli, job-parser. */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "lang/text.h"

#define NEW_BITS_MAX 32 /* as in the original */

typedef unsigned __int128 address;

struct network {
	address first;
	int bits, prefix; /* bits: 32 or 128 */
};

/* The address of all ones after the first n bits. */
static address
host_mask(int bits, int n)
{
	return n >= bits ? 0 : (~(address)0 >> (128 - bits)) >> n;
}

static address
address_of(const uint8_t *bytes, int bits)
{
	address a = 0;

	for (int i = 0; i < bits / 8; i++)
		a = a << 8 | bytes[i];
	return a;
}

/* Digits only; leading zeros are allowed. */
static int
read_prefix(const char *s)
{
	size_t n = strspn(s, "0123456789");

	while (*s == '0' && n > 1) {
		s++;
		n--;
	}
	return n == 0 || n > 3 || s[n] ? -1 : atoi(s);
}

static struct network
read_network(struct hcl_call *c)
{
	const struct hcl_value *text = c->args[0];
	const char *slash = strchr(text->string, '/');
	struct network n = { .bits = 32, .prefix = slash ? read_prefix(slash + 1) : -1 };
	char host[INET6_ADDRSTRLEN] = "";
	uint8_t bytes[16];

	if (slash && (size_t)(slash - text->string) < sizeof host)
		memcpy(host, text->string, (size_t)(slash - text->string));
	if (strlen(text->string) != text->len || n.prefix < 0)
		hcl_refuse_argument(
		    c, 0, "\"%.80s\" is not a network such as 10.0.0.0/8", text->string);
	if (inet_pton(AF_INET, host, bytes) != 1) {
		n.bits = 128;
		if (inet_pton(AF_INET6, host, bytes) != 1)
			n.prefix = 129;
	}
	if (n.prefix > n.bits)
		hcl_refuse_argument(
		    c, 0, "\"%.80s\" is not a network such as 10.0.0.0/8", text->string);
	n.first = address_of(bytes, n.bits) & ~host_mask(n.bits, n.prefix);
	if (n.bits == 128 && n.first >> 32 == 0xffff)
		hcl_refuse_argument(c, 0, "write \"%.80s\" as an IPv4 network", text->string);
	return n;
}

/* RFC 5952: the longest run of two or more zeros, and the first of these, becomes "::". */
static void
add_address_6(struct text *t, address a)
{
	unsigned words[8];
	int from = -1, longest = 1;
	char buf[8];

	for (int i = 0; i < 8; i++)
		words[i] = (unsigned)(a >> (112 - 16 * i)) & 0xffff;
	for (int i = 0, n; i < 8; i += n) {
		for (n = 0; i + n < 8 && words[i + n] == 0; n++)
			;
		if (n > longest) {
			longest = n;
			from = i;
		}
		n += n == 0;
	}
	for (int i = 0; i < 8; i++) {
		if (i == from) {
			text_add(t, "::");
			i += longest - 1;
			continue;
		}
		if (i > 0 && i != from + longest)
			text_add(t, ":");
		(void)snprintf(buf, sizeof buf, "%x", words[i]);
		text_add(t, buf);
	}
}

static void
add_address(struct text *t, address a, int bits)
{
	char buf[16];

	if (bits == 128) {
		add_address_6(t, a);
		return;
	}
	(void)snprintf(buf, sizeof buf, "%u.%u.%u.%u", (unsigned)(a >> 24) & 255,
	    (unsigned)(a >> 16) & 255, (unsigned)(a >> 8) & 255, (unsigned)a & 255);
	text_add(t, buf);
}

/* prefix < 0: the address alone. */
static struct hcl_value *
network_text(struct hcl_call *c, address a, int bits, int prefix)
{
	struct text t = { .arena = hcl_arena(c->h) };
	char buf[16];

	add_address(&t, a, bits);
	(void)snprintf(buf, sizeof buf, "/%d", prefix);
	if (prefix >= 0)
		text_add(&t, buf);
	return hcl_text_value(&t);
}

/* A negative number counts from the end. */
struct hcl_value *
hcl_fn_cidrhost(struct hcl_call *c)
{
	int64_t number = hcl_arg_int(c, 1);
	struct network n = read_network(c);
	address most = host_mask(n.bits, n.prefix);
	address wanted = number < 0 ? (address)(-(number + 1)) : (address)number;

	if (wanted > most)
		hcl_refuse_argument(c, 1, "a prefix of %d bits has no host number %lld", n.prefix,
		    (long long)number);
	return network_text(c, n.first | (number < 0 ? most - wanted : wanted), n.bits, -1);
}

struct hcl_value *
hcl_fn_cidrnetmask(struct hcl_call *c)
{
	struct network n = read_network(c);

	return network_text(c, host_mask(n.bits, 0) & ~host_mask(n.bits, n.prefix), n.bits, -1);
}

struct hcl_value *
hcl_fn_cidrsubnet(struct hcl_call *c)
{
	int64_t new_bits = hcl_arg_int(c, 1), number = hcl_arg_int(c, 2);
	struct network n = read_network(c);
	int prefix;

	if (new_bits > NEW_BITS_MAX || new_bits < -n.prefix)
		hcl_refuse_argument(
		    c, 1, "a prefix cannot be extended by more than %d bits", NEW_BITS_MAX);
	prefix = n.prefix + (int)new_bits;
	if (prefix > n.bits)
		hcl_refuse_argument(c, 1, "there is no space to extend a prefix of %d by %lld bits",
		    n.prefix, (long long)new_bits);
	if (number < 0 || (new_bits >= 0 && number >> new_bits != 0) ||
	    (number != 0 && prefix < 64 && (address)number > host_mask(n.bits, n.bits - prefix)))
		hcl_refuse_argument(c, 2, "%lld more bits have no network number %lld",
		    (long long)new_bits, (long long)number);
	return network_text(
	    c, n.first | (prefix > 0 ? (address)number << (n.bits - prefix) : 0), n.bits, prefix);
}

struct hcl_value *
hcl_fn_cidrsubnets(struct hcl_call *c)
{
	struct network n = read_network(c);
	struct hcl_items items = { .h = c->h };
	address last = n.first - 1, all = host_mask(n.bits, 0), next;

	for (size_t i = 1; i < c->n; i++) {
		int64_t bits = hcl_arg_int(c, i);
		int prefix;

		if (bits < 1 || bits > NEW_BITS_MAX || n.prefix + bits > n.bits)
			hcl_refuse_argument(c, i, "a prefix of %d bits cannot be extended by %lld",
			    n.prefix, (long long)bits);
		prefix = n.prefix + (int)bits;
		next = ((last | host_mask(n.bits, prefix)) + 1) & all;
		if (next == 0 || (next & ~host_mask(n.bits, n.prefix)) != n.first)
			hcl_refuse_argument(
			    c, i, "there is no space left for a subnet of %d bits", prefix);
		last = next | host_mask(n.bits, prefix);
		hcl_items_add(&items, network_text(c, next, n.bits, prefix));
	}
	return hcl_list(c->h, &hcl_type_string, items.v, items.n);
}
