// SPDX-License-Identifier: Apache-2.0
/* privs.c: drops privileges and proves the drop. Runs in: every process, and every child that
 * drops. */
#include "common/privs.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"

#define SECBITS_LOCKED                                                                             \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	    SECBIT_NO_SETUID_FIXUP_LOCKED)

static unsigned
cap_count(void)
{
	static unsigned n;

	/* A newer kernel may have more capabilities than the header. The number is cached, because
	 * filters forbid prctl. */
	for (int i = CAP_LAST_CAP + 1; n == 0; i++)
		if (i == 63 || prctl(PR_CAPBSET_READ, i, 0, 0, 0) < 0)
			n = i;
	return n;
}

/* Only a process outside of the new namespace may map more than one id. */
static _Noreturn void
write_maps(pid_t pid, int go_fd, uid_t first, unsigned n)
{
	char path[32], map[48];
	bool done = read(go_fd, map, 1) == 0;

	(void)snprintf(map, sizeof map, "0 %u %u", first, n);
	(void)snprintf(path, sizeof path, "/proc/%d/gid_map", (int)pid);
	done = done && fd_write_file(AT_FDCWD, path, map) == 0;
	(void)snprintf(path, sizeof path, "/proc/%d/uid_map", (int)pid);
	_exit(!done || fd_write_file(AT_FDCWD, path, map) < 0);
}

int
privs_new_user_namespace(uid_t first, unsigned n, struct err *e)
{
	pid_t self = getpid(), child;
	int go[2], status = 1;

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a user namespace");
	child = fork();
	if (child == 0) {
		(void)close(go[1]);
		write_maps(self, go[0], first, n);
	}
	if (child < 0 || unshare(CLONE_NEWUSER) < 0)
		return err_set(e, -errno, "make a user namespace");
	(void)close(go[1]);
	(void)close(go[0]);
	if (waitpid(child, &status, 0) != child || status != 0)
		return err_say(e, -EPERM, "map the ids of a user namespace");
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return err_set(e, -errno, "become root of a user namespace");
	return 0;
}

uint64_t
privs_all_caps(void)
{
	return (1ull << cap_count()) - 1;
}

/* Version 3 of capset(2) has two records of 32 bits each. */
static int
set_caps(uint64_t effective, uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	for (size_t i = 0; i < ELEMENTSOF(data); i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(effective >> 32 * i),
			.permitted = (uint32_t)(permitted >> 32 * i),
			.inheritable = (uint32_t)(inheritable >> 32 * i),
		};
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int
get_caps(uint64_t *effective, uint64_t *permitted, uint64_t *inheritable)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, d) < 0)
		return -errno;
	*effective = (uint64_t)d[1].effective << 32 | d[0].effective;
	*permitted = (uint64_t)d[1].permitted << 32 | d[0].permitted;
	*inheritable = (uint64_t)d[1].inheritable << 32 | d[0].inheritable;
	return 0;
}

int
privs_bound(uint64_t keep)
{
	for (unsigned cap = 0; cap < cap_count(); cap++)
		/* Skips capabilities that are not in the set: dropping them would need CAP_SETPCAP
		 * and would copy the credentials. */
		if (!(keep >> cap & 1) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) > 0 &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -EPERM;
	return 0;
}

static int
set_ambient(uint64_t mask)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	for (unsigned cap = 0; mask >> cap; cap++)
		if ((mask >> cap & 1) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return -errno;
	return 0;
}

/* Reads everything back and then tries to regain privileges, which must fail. */
static int
prove_drop(const struct privs *p, struct err *e)
{
	uint64_t effective, permitted, inheritable, all = privs_all_caps();
	gid_t groups[GROUPS_MAX], rgid, egid, sgid;
	uid_t ruid, euid, suid;
	int n, r;

	if (getresuid(&ruid, &euid, &suid) < 0 || ruid != p->uid || euid != p->uid ||
	    suid != p->uid)
		return err_say(e, -EPERM, "drop privileges: uid is %u, not %u", euid, p->uid);
	if (getresgid(&rgid, &egid, &sgid) < 0 || rgid != p->gid || egid != p->gid ||
	    sgid != p->gid)
		return err_say(e, -EPERM, "drop privileges: gid is %u, not %u", egid, p->gid);
	n = getgroups(GROUPS_MAX, groups);
	if (n < 0 || (size_t)n != p->n_groups)
		return err_say(e, -EPERM, "drop privileges: %d groups, not %zu", n, p->n_groups);
	r = get_caps(&effective, &permitted, &inheritable);
	if (r < 0)
		return err_set(e, r, "drop privileges: read the capabilities back");
	if (effective != p->caps || permitted != p->caps || inheritable != p->inheritable)
		return err_say(
		    e, -EPERM, "drop privileges: the capabilities are not those that were set");
	for (unsigned cap = 0; cap < cap_count(); cap++) {
		/* Only inheritable capabilities can be ambient, and the inheritable set has been
		 * compared above. */
		if ((p->inheritable >> cap & 1) && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap,
						       0, 0) != (int)(p->ambient >> cap & 1))
			return err_say(e, -EPERM,
			    "drop privileges: the ambient set is not the one that was set");
		if (p->bounding != PRIVS_KEEP_BOUNDING &&
		    prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != (int)(p->bounding >> cap & 1))
			return err_say(e, -EPERM,
			    "drop privileges: the bounding set is not the one that was set");
	}
	if (p->no_new_privs && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return err_say(e, -EPERM, "drop privileges: no_new_privs is not set");
	if (p->uid != 0 && !(p->caps & CAP_BIT(SETUID)) && setresuid(-1, 0, -1) == 0)
		return err_say(e, -EPERM, "drop privileges: uid 0 could be regained");
	if (p->gid != 0 && !(p->caps & CAP_BIT(SETGID)) && setresgid(-1, 0, -1) == 0)
		return err_say(e, -EPERM, "drop privileges: gid 0 could be regained");
	if (p->caps != all && set_caps(all, all, p->inheritable) == 0)
		return err_say(e, -EPERM, "drop privileges: capabilities could be regained");
	return 0;
}

static long
load_filter(const struct privs *p)
{
	return syscall(SYS_seccomp, 1U /* SECCOMP_SET_MODE_FILTER */, 0U, p->filter);
}

int
privs_drop(const struct privs *p, struct err *e)
{
	/* The capabilities that the steps themselves need, up to the last step. */
	const uint64_t need = CAP_BIT(SETUID) | CAP_BIT(SETGID) | CAP_BIT(SETPCAP);
	uint64_t effective, permitted, inheritable;
	int r;

	r = get_caps(&effective, &permitted, &inheritable);
	if (r < 0)
		return err_set(e, r, "drop privileges: read the capabilities");
	if ((permitted & p->caps) != p->caps)
		return err_say(e, -EPERM, "drop privileges: capabilities to keep are missing");
	if (p->filter_first && load_filter(p) < 0)
		return err_set(e, -errno, "drop privileges: load the system call filter");
	if (setgroups(p->n_groups, p->groups) < 0)
		return err_set(e, -errno, "drop privileges: set %zu groups", p->n_groups);
	if (setresgid(p->gid, p->gid, p->gid) < 0)
		return err_set(e, -errno, "drop privileges: become gid %u", p->gid);
	CRASH_POINT(DROP_AFTER_GROUPS);
	if (p->bounding != PRIVS_KEEP_BOUNDING && (r = privs_bound(p->bounding)) < 0)
		return err_set(e, r, "drop privileges: shrink the bounding set");
	if (p->lock_securebits && prctl(PR_SET_SECUREBITS, SECBITS_LOCKED, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges: lock the securebits");
	/* setresuid to a new uid clears the capability sets, always including the ambient set, so
	 * they are set after it. */
	if (p->uid != 0 && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges: keep capabilities over setuid");
	if (setresuid(p->uid, p->uid, p->uid) < 0)
		return err_set(e, -errno, "drop privileges: become uid %u", p->uid);
	if (p->uid != 0 && prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges: reset keepcaps");
	CRASH_POINT(DROP_AFTER_UID);
	if (p->inheritable & ~p->caps) {
		uint64_t now = (p->caps | need) & permitted;

		r = set_caps(now, permitted, inheritable);
		if (r < 0)
			return err_set(e, r, "drop privileges: set the inheritable capabilities");
	}
	/* As long as the process has more capabilities than other processes of its uid, they must
	 * not be able to attach to it. After setresuid, which may set the flag. */
	if (!p->keep_dumpable && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges: set dumpable");
	r = set_caps(p->caps, p->caps, p->inheritable);
	if (r < 0)
		return err_set(e, r, "drop privileges: set the capabilities");
	r = set_ambient(p->ambient);
	if (r < 0)
		return err_set(e, r, "drop privileges: set the ambient capabilities");
	if (p->dies_with_parent && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges: set the parent death signal");
	if (p->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(e, -errno, "drop privileges: set no_new_privs");
	CRASH_POINT(DROP_AFTER_CAPS);
	r = prove_drop(p, e);
	if (r < 0)
		return r;
	if (p->filter && !p->filter_first && load_filter(p) < 0)
		return err_set(e, -errno, "drop privileges: load the system call filter");
	CRASH_POINT(DROP_AFTER_FILTER);
	return 0;
}

void
privs_describe(const struct privs *p, const char *name, const char *user, bool filtered)
{
	char bounding[32] = "full";

	if (p->bounding != PRIVS_KEEP_BOUNDING)
		(void)snprintf(
		    bounding, sizeof bounding, "%016llx", (unsigned long long)p->bounding);
	(void)dprintf(STDOUT_FILENO,
	    "%s uid=%s CapInh=%016llx CapPrm=%016llx CapEff=%016llx CapBnd=%s CapAmb=%016llx "
	    "NoNewPrivs=%d Seccomp=%d\n",
	    name, user, (unsigned long long)p->inheritable, (unsigned long long)p->caps,
	    (unsigned long long)p->caps, bounding, (unsigned long long)p->ambient, p->no_new_privs,
	    p->filter || filtered ? 2 : 0);
}

int
privs_chroot(int dir_fd, struct err *e)
{
	if (fchdir(dir_fd) < 0 || chroot(".") < 0 || chdir("/") < 0)
		return err_set(e, -errno, "drop privileges: chroot");
	return 0;
}

void
privs_die_with_parent(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
}
