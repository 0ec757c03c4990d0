// SPDX-License-Identifier: Apache-2.0
/* network_result.c: reads what CNI plugins answer. Runs in: supervisor. */
#include "supervisor/alloc/network_result.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"

#define INTERFACES_MAX 256
#define ADDRESSES_MAX  256
#define DNS_MAX        64
#define DNS_BYTES      255

/* Reads "172.26.64.2/20". Returns the family, or 0. */
static int
read_address(const json_t *ip, char ret[INET6_ADDRSTRLEN])
{
	const char *text = json_string_value(json_object_get(ip, "address"));
	size_t len = text ? strcspn(text, "/") : 0;
	uint8_t address[16];

	if (len == 0 || len >= INET6_ADDRSTRLEN)
		return 0;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return inet_pton(AF_INET, ret, address) == 1    ? AF_INET
	       : inet_pton(AF_INET6, ret, address) == 1 ? AF_INET6
							: 0;
}

/* An address without an interface belongs to the first one. */
static bool
is_of(const json_t *ip, size_t interface)
{
	const json_t *index = json_object_get(ip, "interface");

	return json_is_integer(index) ? json_integer_value(index) == (json_int_t)interface : interface == 0;
}

static bool
has_address(const json_t *ips, size_t interface)
{
	char text[INET6_ADDRSTRLEN];
	const json_t *ip;
	size_t i;

	json_array_foreach (ips, i, ip)
		if (i < ADDRESSES_MAX && is_of(ip, interface) && read_address(ip, text))
			return true;
	return false;
}

/* Returns the index of the interface, or INTERFACES_MAX: none. Those without a sandbox are the
 * host's. */
static size_t
find_interface(const json_t *interfaces, const json_t *ips, const char **ret_name)
{
	size_t i, found = INTERFACES_MAX;
	const json_t *one;

	json_array_foreach (interfaces, i, one) {
		const char *name = json_string_value(json_object_get(one, "name"));
		const char *sandbox = json_string_value(json_object_get(one, "sandbox"));

		if (i >= INTERFACES_MAX || !name || !name_is_component(name) || !sandbox ||
		    !*sandbox || !has_address(ips, i) ||
		    (found < INTERFACES_MAX && strcmp(name, *ret_name) >= 0))
			continue;
		found = i;
		*ret_name = name;
	}
	return found;
}

static void
take_addresses(const json_t *ips, size_t interface, struct alloc_network_status *ret)
{
	char text[INET6_ADDRSTRLEN];
	const json_t *ip;
	size_t i;

	json_array_foreach (ips, i, ip) {
		int family = i < ADDRESSES_MAX && is_of(ip, interface) ? read_address(ip, text) : 0;

		if (family == AF_INET && !ret->address)
			str_set(&ret->address, text);
		else if (family == AF_INET6 && !ret->address_ipv6)
			str_set(&ret->address_ipv6, text);
	}
	if (!ret->address && ret->address_ipv6)
		str_set(&ret->address, ret->address_ipv6);
}

/* Omits values that cannot be a word in a line of resolv.conf. */
static void
take_strings(const json_t *list, struct strings *ret)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const char *text = json_string_value(one);
		bool fits = text && *text && strlen(text) <= DNS_BYTES;

		for (const char *c = text; fits && *c; c++)
			fits = *c > ' ' && *c < 0x7f;
		if (fits && i < DNS_MAX)
			strings_add(ret, text);
	}
}

static void
take_dns(const json_t *dns, struct alloc_network_status *ret)
{
	struct dns_config *d = dns_config_new();

	take_strings(json_object_get(dns, "nameservers"), &d->servers);
	take_strings(json_object_get(dns, "search"), &d->searches);
	take_strings(json_object_get(dns, "options"), &d->options);
	if (d->servers.n > 0 || d->searches.n > 0 || d->options.n > 0)
		ret->dns = d;
	else
		dns_config_free(d);
}

int
network_result_read(const char *text, size_t len, struct alloc_network_status *ret, struct err *e)
{
	cleanup_json json_t *result =
	    len > 0 ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *interfaces = json_object_get(result, "interfaces");
	const json_t *ips = json_object_get(result, "ips");
	const char *name = "";
	size_t interface;

	if (!json_is_object(result))
		return err_say(e, -EBADMSG, "the answer of the CNI plugins is not a JSON object");
	if (json_object_size(result) == 0)
		return 0;
	interface = find_interface(interfaces, ips, &name);
	if (interface == INTERFACES_MAX)
		return err_say(e, -EBADMSG,
		    "the CNI plugins gave the allocation no interface with an address");
	str_set(&ret->interface_name, name);
	take_addresses(ips, interface, ret);
	take_dns(json_object_get(result, "dns"), ret);
	return 0;
}
