// SPDX-License-Identifier: Apache-2.0
/* task_net.c: the name and the name servers of a task. Runs in: supervisor. */
#include "supervisor/driver/task_net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/driver/env_expand.h"

#define RESOLV_CONF   "/etc/resolv.conf"
#define RESOLVED_CONF "/run/systemd/resolve/resolv.conf"
#define RESOLV_MAX    ((size_t)64 << 10)
#define HOSTNAME_MAX  63 /* of the kernel's 64, with which a name of a domain would be too long */

/* --- what the network says --- */

static int
expand_list(const struct strings *from, struct task_env *env, struct strings *ret, struct err *e)
{
	for (size_t i = 0; i < from->n; i++) {
		cleanup_free char *text = NULL;
		int r = task_env_expand(env, str(from->v[i]), false, &text, e);

		if (r < 0)
			return r;
		if (text[strcspn(text, " \t\r\n")])
			return err_say(e, -EINVAL,
			    "network: dns: \"%.80s\" must not have spaces or ends of lines", text);
		strings_add(ret, text);
	}
	return 0;
}

bool
task_net_is_name(const char *name)
{
	return strlen(name) <= HOSTNAME_MAX && name[0] != '-' && name[0] != '.' &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "-_.")] == '\0';
}

int
task_net_read(const struct network_resource *n, const struct dns_config *dns, struct task_env *env,
    struct task_net *ret, struct err *e)
{
	int r;

	*ret = (struct task_net){ .address = "", .has_dns = dns != NULL };
	if ((r = task_env_expand(env, n ? str(n->hostname) : "", false, &ret->hostname, e)) < 0)
		return r;
	if (!task_net_is_name(ret->hostname))
		return err_say(e, -EINVAL,
		    "network: hostname \"%.80s\" is not a name: it may have at most %d letters, "
		    "digits, '-', '_' and '.', and begins with a letter, a digit or '_'",
		    ret->hostname, HOSTNAME_MAX);
	if (!dns)
		return 0;
	if ((r = expand_list(&dns->servers, env, &ret->dns.servers, e)) < 0 ||
	    (r = expand_list(&dns->searches, env, &ret->dns.searches, e)) < 0)
		return r;
	return expand_list(&dns->options, env, &ret->dns.options, e);
}

void
task_net_done(struct task_net *net)
{
	free_p(&net->hostname);
	strings_done(&net->dns.servers);
	strings_done(&net->dns.searches);
	strings_done(&net->dns.options);
}

/* --- /etc/resolv.conf --- */

/* Returns the machine's file, or what systemd-resolved asks; NULL: there is none. */
static char *
read_machine(bool own_network, bool *ret_same)
{
	char *text = NULL, *resolved = NULL;

	*ret_same = true;
	if (fd_read_file(AT_FDCWD, RESOLV_CONF, RESOLV_MAX, &text) < 0)
		return NULL;
	if (!own_network || !strstr(text, "nameserver 127.0.0.53") ||
	    fd_read_file(AT_FDCWD, RESOLVED_CONF, RESOLV_MAX, &resolved) < 0)
		return text;
	free(text);
	*ret_same = false;
	return resolved;
}

static void
append(char **text, const char *word, const char *value)
{
	char *more = mem_printf("%s%s%s", str(*text), word, value);

	free(*text);
	*text = more;
}

/* Appends the machine's lines that begin with one of the words. */
static void
append_lines(char **text, const char *machine, const char *const *words)
{
	for (const char *at = machine; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t word = strcspn(at, " \t\n"), line = strcspn(at, "\n");
		cleanup_free char *copy = mem_printf("%.*s\n", (int)line, at);

		for (size_t i = 0; words[i]; i++)
			if (strlen(words[i]) == word && memcmp(words[i], at, word) == 0)
				append(text, "", copy);
	}
}

/* Appends the values, each on a line of its own or all on one, or else the machine's lines. */
static void
append_part(char **text, const struct strings *values, bool each, const char *machine,
    const char *const *words)
{
	if (values->n == 0) {
		append_lines(text, machine, words);
		return;
	}
	for (size_t i = 0; i < values->n; i++) {
		append(text, each || i == 0 ? words[0] : "", " ");
		append(text, values->v[i], each || i + 1 == values->n ? "\n" : "");
	}
}

char *
resolv_conf_make(const struct dns_config *dns, bool own_network, bool *ret_same)
{
	static const char *const searches[] = { "search", "domain", NULL },
				 *const servers[] = { "nameserver", NULL },
				 *const options[] = { "options", NULL };
	cleanup_free char *machine = read_machine(own_network, ret_same);
	char *text = NULL;

	if (!dns || dns->servers.n + dns->searches.n + dns->options.n == 0)
		return steal_ptr(&machine);
	*ret_same = false;
	append_part(&text, &dns->searches, false, machine, searches);
	append_part(&text, &dns->servers, true, machine, servers);
	append_part(&text, &dns->options, false, machine, options);
	return text;
}
