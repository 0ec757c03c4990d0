// SPDX-License-Identifier: Apache-2.0
/* net_ledger.c: keeps what the plugins of a network were called with, for their later calls. Runs
 * in: a worker of network-helper, as root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/crash.h"
#include "common/fd.h"
#include "network-helper/net.h"

#define NAME_SIZE (ID_UUID_SIZE + 8)

static void
name_ledger(const char *alloc, const char *suffix, char ret[NAME_SIZE])
{
	(void)snprintf(ret, NAME_SIZE, "%s.%s", alloc, suffix);
}

int
net_ledger_read(const char *alloc, json_t **ret, struct err *e)
{
	cleanup_free char *text = NULL;
	char name[NAME_SIZE];
	ssize_t n;

	name_ledger(alloc, "json", name);
	n = fd_read_file(NET_FD_DIR, name, 4 * NET_JSON_MAX, &text);
	if (n < 0)
		return err_set(e, (int)n, "read what is known of the network");
	*ret = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	return *ret ? 0
		    : err_say(e, -EBADMSG,
			  "%s/netns/%s is damaged, so no CNI plugin can be called: remove what "
			  "iptables-save "
			  "and /var/run/cni have of this allocation, then remove this file",
			  net_runtime_dir, name);
}

int
net_ledger_write(const char *alloc, const json_t *ledger, struct err *e)
{
	cleanup_free char *text = json_dumps(ledger, JSON_COMPACT);
	char name[NAME_SIZE], new[NAME_SIZE];
	cleanup_close int fd = -1;
	int r = -ENOMEM;

	name_ledger(alloc, "json", name);
	name_ledger(alloc, "new", new);
	fd = openat(NET_FD_DIR, new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		r = -errno;
	else if (text)
		r = fd_write_full(fd, text, strlen(text));
	CRASH_POINT(NET_BEFORE_RENAME);
	if (r == 0 && renameat(NET_FD_DIR, new, NET_FD_DIR, name) < 0)
		r = -errno;
	return r < 0 ? err_set(e, r, "write %s/netns/%s", net_runtime_dir, name) : 0;
}

int
net_ledger_remove(const char *alloc, struct err *e)
{
	static const char *const suffixes[] = { "new", "json" };
	char name[NAME_SIZE];

	for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
		name_ledger(alloc, suffixes[i], name);
		if (unlinkat(NET_FD_DIR, name, 0) < 0 && errno != ENOENT)
			return err_set(e, -errno, "remove %s/netns/%s", net_runtime_dir, name);
	}
	return 0;
}
