/* SPDX-License-Identifier: Apache-2.0 */
/* go_ip.h: addresses with a mask and a port, as github.com/hashicorp/go-sockaddr has them. Runs in:
 * template-renderer. */
#ifndef DROVER_TEMPLATE_GO_IP_H
#define DROVER_TEMPLATE_GO_IP_H

#include <stdbool.h>
#include <stdint.h>

#include "lang/text.h"

__extension__ typedef unsigned __int128 ip_number;

struct go_ip {
	bool v6;
	ip_number address, mask; /* an IPv4 address is below 2^32 */
	uint16_t port;           /* 0: none */
};

#define IP_FORWARDING_RFC 4294967295u /* stands for the networks that no router forwards */

/* Reads 10.0.0.1, 10.0.0.1/8, 10.0.0.1:80, fd00::1, fd00::1/64 or [fd00::1]:80. */
bool ip_parse(const char *s, struct go_ip *ret);
/* Appends it as ip_parse() reads it; without the mask of a single address. */
void ip_add(struct text *out, const struct go_ip *ip);
/* Appends the address alone. */
void ip_add_address(struct text *out, bool v6, ip_number address);
void ip_add_decimal(struct text *out, ip_number n);

unsigned ip_width(const struct go_ip *ip); /* 32 or 128 */
ip_number ip_mask(bool v6, unsigned bits);
unsigned ip_mask_bits(const struct go_ip *ip);
ip_number ip_network(const struct go_ip *ip); /* its first address */
ip_number ip_last(const struct go_ip *ip);
/* Whether all of x's network is in this one. */
bool ip_contains(const struct go_ip *network, const struct go_ip *x);
/* Whether it is in a network that this RFC is about; *ret_known: the RFC is known. */
bool ip_in_rfc(const struct go_ip *ip, uint64_t rfc, bool *ret_known);

#endif
