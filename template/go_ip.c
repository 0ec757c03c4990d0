/* SPDX-License-Identifier: Apache-2.0 */
/* go_ip.c: reads, writes and compares addresses. Runs in: template-renderer. */
#include "template/go_ip.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/cleanup.h"
#include "template/go_text.h"

#define V4_BITS 32
#define V6_BITS 128

unsigned
ip_width(const struct go_ip *ip)
{
	return ip->v6 ? V6_BITS : V4_BITS;
}

ip_number
ip_mask(bool v6, unsigned bits)
{
	ip_number all = v6 ? ~(ip_number)0 : UINT32_MAX;

	return bits == 0 ? 0 : all & (all << ((v6 ? V6_BITS : V4_BITS) - bits));
}

unsigned
ip_mask_bits(const struct go_ip *ip)
{
	unsigned bits = 0;

	for (ip_number m = ip->mask; m != 0; m &= m - 1)
		bits++;
	return bits;
}

ip_number
ip_network(const struct go_ip *ip)
{
	return ip->address & ip->mask;
}

ip_number
ip_last(const struct go_ip *ip)
{
	return ip_network(ip) | (ip_mask(ip->v6, ip_width(ip)) & ~ip->mask);
}

bool
ip_contains(const struct go_ip *network, const struct go_ip *x)
{
	return network->v6 == x->v6 && ip_network(network) <= ip_network(x) &&
	       ip_last(network) >= ip_last(x);
}

/* --- reading --- */

static bool
read_address(const char *s, size_t len, struct go_ip *ret)
{
	unsigned char bytes[16];
	char copy[INET6_ADDRSTRLEN];

	if (len >= sizeof copy)
		return false;
	memcpy(copy, s, len);
	copy[len] = '\0';
	ret->v6 = memchr(copy, ':', len) != NULL;
	if (inet_pton(ret->v6 ? AF_INET6 : AF_INET, copy, bytes) != 1)
		return false;
	ret->address = 0;
	for (size_t i = 0; i < (ret->v6 ? 16 : 4); i++)
		ret->address = ret->address << 8 | bytes[i];
	ret->mask = ip_mask(ret->v6, ip_width(ret));
	return true;
}

static bool
read_number(const char *s, uint64_t max, uint64_t *ret)
{
	return *s >= '0' && *s <= '9' && go_parse_uint(s, strlen(s), 10, ret) == 0 && *ret <= max;
}

static bool
read_mask(const char *s, struct go_ip *ret)
{
	uint64_t bits;

	if (!read_number(s, ip_width(ret), &bits))
		return false;
	ret->mask = ip_mask(ret->v6, (unsigned)bits);
	return true;
}

static bool
read_port(const char *s, struct go_ip *ret)
{
	uint64_t port;

	if (!read_number(s, UINT16_MAX, &port))
		return false;
	ret->port = (uint16_t)port;
	return true;
}

bool
ip_parse(const char *s, struct go_ip *ret)
{
	const char *slash = strchr(s, '/'), *colon = strchr(s, ':'), *end;
	struct go_ip ip = { 0 };
	bool valid;

	if (*s == '[') {
		end = strchr(s, ']');
		valid = end && read_address(s + 1, (size_t)(end - s) - 1, &ip) && ip.v6 &&
			(end[1] == '\0' || (end[1] == ':' && read_port(end + 2, &ip)));
	} else if (slash) {
		valid = read_address(s, (size_t)(slash - s), &ip) && read_mask(slash + 1, &ip);
	} else if (colon && !strchr(colon + 1, ':')) {
		valid = read_address(s, (size_t)(colon - s), &ip) && read_port(colon + 1, &ip);
	} else {
		valid = read_address(s, strlen(s), &ip);
	}
	if (valid)
		*ret = ip;
	return valid;
}

/* --- writing --- */

void
ip_add_decimal(struct text *out, ip_number n)
{
	char digits[40], *at = digits + sizeof digits - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + (int)(n % 10));
		n /= 10;
	} while (n != 0);
	text_add(out, at);
}

static void
add_number(struct text *out, ip_number n, unsigned base)
{
	char digits[] = "0000";
	int at = 4;

	if (base == 10) {
		ip_add_decimal(out, n);
		return;
	}
	do {
		digits[--at] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n != 0);
	text_bytes(out, digits + at, (size_t)(4 - at));
}

/* Appends n parts of so many bits each, with the separator between them. */
static void
add_parts(struct text *out, ip_number address, unsigned from, unsigned to, unsigned of)
{
	unsigned bits = of == 4 ? 8 : 16;

	for (unsigned i = from; i < to; i++) {
		if (i > from)
			text_add(out, of == 4 ? "." : ":");
		add_number(
		    out, address >> ((of - 1 - i) * bits) & ((1u << bits) - 1), of == 4 ? 10 : 16);
	}
}

/* Finds the first of the longest runs of at least two parts that are 0. */
static unsigned
find_zeros(ip_number address, unsigned *ret_len)
{
	unsigned start = 0, len = 0, run = 0;

	for (unsigned i = 0; i < 8; i++) {
		run = (address >> ((7 - i) * 16) & 0xffff) == 0 ? run + 1 : 0;
		if (run > len) {
			len = run;
			start = i + 1 - run;
		}
	}
	*ret_len = len < 2 ? 0 : len;
	return start;
}

void
ip_add_address(struct text *out, bool v6, ip_number address)
{
	unsigned start, len;

	/* Go writes addresses below ::ffff:0:0/96 as those of IPv4. */
	if (!v6 || address >> V4_BITS == 0xffff) {
		add_parts(out, address & UINT32_MAX, 0, 4, 4);
		return;
	}
	start = find_zeros(address, &len);
	if (len == 0) {
		add_parts(out, address, 0, 8, 8);
		return;
	}
	add_parts(out, address, 0, start, 8);
	text_add(out, "::");
	add_parts(out, address, start + len, 8, 8);
}

void
ip_add(struct text *out, const struct go_ip *ip)
{
	bool brackets = ip->port && ip->v6;

	text_add(out, brackets ? "[" : "");
	ip_add_address(out, ip->v6, ip->address);
	text_add(out, brackets ? "]" : "");
	if (ip->port || ip_mask_bits(ip) < ip_width(ip)) {
		text_add(out, ip->port ? ":" : "/");
		ip_add_decimal(out, ip->port ? ip->port : ip_mask_bits(ip));
	}
}

/* --- RFCs --- */

static const struct {
	uint64_t rfc;
	const char *network;
} networks[] = {
#define IP_RFC(number, network) { (number), (network) },
#include "template/go_ip_rfcs.def"
#undef IP_RFC
};

bool
ip_in_rfc(const struct go_ip *ip, uint64_t rfc, bool *ret_known)
{
	struct go_ip network;

	*ret_known = false;
	for (size_t i = 0; i < ELEMENTSOF(networks); i++) {
		if (networks[i].rfc != rfc)
			continue;
		*ret_known = true;
		if (ip_parse(networks[i].network, &network) && ip_contains(&network, ip))
			return true;
	}
	return false;
}
