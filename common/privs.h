/* SPDX-License-Identifier: Apache-2.0 */
/* privs.h: drops privileges in a fixed order, with a proof at the end. Runs in: every process, and
 * every child that drops. */
#ifndef DROVER_COMMON_PRIVS_H
#define DROVER_COMMON_PRIVS_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

#define CAP_BIT(name) (1ull << CAP_##name)
#define GROUPS_MAX    64

struct privs {
	uid_t uid; /* may be 0: root's number, with only the capabilities below */
	gid_t gid;
	const gid_t *groups; /* supplementary groups; NULL if there are none */
	size_t n_groups;
	uint64_t caps;        /* permitted and effective set */
	uint64_t inheritable; /* for tasks of the exec driver; 0 elsewhere */
	uint64_t ambient;     /* must be in caps and inheritable */
	uint64_t bounding;    /* PRIVS_KEEP_BOUNDING: left unchanged */
	bool lock_securebits; /* NOROOT, NO_SETUID_FIXUP and their locks: uid 0 gives no
				 capabilities any more */
	bool no_new_privs;
	bool dies_with_parent; /* PR_SET_PDEATHSIG SIGKILL; set after the uid, because a change of
				  uid clears it */
	bool keep_dumpable;    /* else PR_SET_DUMPABLE 0: processes of the same uid cannot attach */
	const struct sock_fprog *filter; /* installed last; NULL if there is none */
	bool filter_first; /* installed first, with CAP_SYS_ADMIN, because there is no no_new_privs
			    */
};

#define PRIVS_KEEP_BOUNDING UINT64_MAX

/*
 * Sets groups, gid, uid, securebits, the bounding set, the three sets, the ambient set,
 * no_new_privs and dumpable; then proves the drop (reads each value back, and checks that uid 0 or
 * one more capability cannot be regained); then installs the filter. Returns 0, or -errno with *e:
 * the caller must then exit.
 */
int privs_drop(const struct privs *p, struct err *e);

/* Removes all capabilities but those of keep from the bounding set. Returns 0 or -errno. */
int privs_bound(uint64_t keep);
/*
 * Prints p in the words of /proc/PID/status, as one line for tools/privsep.sh and the tests. user
 * is the name of the uid's user. filtered: the process inherits a filter.
 */
void privs_describe(const struct privs *p, const char *name, const char *user, bool filtered);
/* Makes dir_fd the root and the working directory of this process. Returns 0, or -errno with *e. */
int privs_chroot(int dir_fd, struct err *e);
/*
 * Enters a user namespace of its own, in which the n ids from 0 on are those from `first` on
 * outside, and becomes its root, with all capabilities over what belongs to these ids and none over
 * anything else. To be called by root, before an exec. Returns 0, or -errno with *e: the caller
 * must exit.
 */
int privs_new_user_namespace(uid_t first, unsigned n, struct err *e);
/* Returns a mask of all capabilities that this kernel knows. */
uint64_t privs_all_caps(void);
/* For forked children: sets PR_SET_PDEATHSIG SIGKILL, and exits if the parent is not `parent` any
 * more because it died before that. */
void privs_die_with_parent(pid_t parent);

/*
 * A fence in `make check` allows such system calls here and in four other files: the executor's
 * sandbox file, exec-helper's template file, network-helper's namespace file and the launcher (for
 * its subreaper line).
 */
#endif
