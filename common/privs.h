/* SPDX-License-Identifier: Apache-2.0 */
/* privs.h: giving up privilege, in one order, ending in a proof. Runs in: every process, and every
 * child that drops. */
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
	uid_t uid; /* 0 keeps root's number; the capabilities below hold all the same */
	gid_t gid;
	const gid_t *groups; /* supplementary; NULL: none */
	size_t n_groups;
	uint64_t caps;        /* permitted = effective afterwards */
	uint64_t inheritable; /* a task of the exec driver; 0 elsewhere */
	uint64_t ambient;     /* must be in caps and inheritable */
	uint64_t bounding;    /* PRIVS_KEEP_BOUNDING: untouched */
	bool lock_securebits; /* NOROOT, NO_SETUID_FIXUP and their locks: uid 0 means nothing any
				 more */
	bool no_new_privs;
	bool dies_with_parent; /* PR_SET_PDEATHSIG SIGKILL; a change of uid before it would undo it
				*/
	bool keep_dumpable;    /* else PR_SET_DUMPABLE 0: nobody of the same uid can attach */
	const struct sock_fprog *filter; /* last of all; NULL: none */
};

#define PRIVS_KEEP_BOUNDING UINT64_MAX

/*
 * Groups, gid, uid, securebits, bounding, the three sets, ambient, no_new_privs, dumpable; then the
 * proof (each value is read back, and regaining uid 0 or one capability more must fail); then the
 * filter. Returns 0, or -errno with *e set: the caller has to exit then, whatever it was going to
 * do.
 */
int privs_drop(const struct privs *p, struct err *e);

/* Takes all capabilities but those of keep out of the bounding set. 0 or -errno. */
int privs_bound(uint64_t keep);
/*
 * Prints p in the words of /proc/PID/status, one line for tools/privsep.sh and the tests. user:
 * whom its uid means. filtered: a filter that it inherits.
 */
void privs_describe(const struct privs *p, const char *name, const char *user, bool filtered);
/* Makes the directory dir_fd the root and the working directory of this process. 0 or -errno with
 * *e. */
int privs_chroot(int dir_fd, struct err *e);
/* All capabilities this kernel knows, as a mask. */
uint64_t privs_all_caps(void);
/* Sets PR_SET_PDEATHSIG SIGKILL and exits if the parent is not `parent` any more (it died before).
 * For forked children. */
void privs_die_with_parent(pid_t parent);

/*
 * The only callers elsewhere of what this file guards (a fence in `make check` looks): the
 * executor's sandbox file, exec-helper's template file and the launcher's subreaper line.
 */
#endif
