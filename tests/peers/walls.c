// SPDX-License-Identifier: Apache-2.0
/*
 * walls.c: runs as a task, tries to escape from it, and prints one line "gain: WHAT" for each
 * object that it reached and must not reach. The last line is "end". Static, so that it runs in any
 * root.
 *
 *   walls [OPTION:VALUE]...
 *
 *   own:DIR      a directory that the task may write to, except files of other users in it
 *   path:FILE    a file of the host or of another allocation, by its path there
 *   socket:FILE  the same, a socket
 *   pid:N        the highest process id that is tried
 *   ns:NAME=ID   the target of /proc/PID/ns/NAME on the host
 *   key:N        the key of another process's SysV shared memory, semaphores and message queue
 *   mq:NAME      a POSIX message queue of another process
 *
 * It tries everything twice: as its user, and as uid 0 if it can become that.
 *
 *   walls make key:N mq:NAME
 *
 * Makes these objects with a mode that permits all users, prints "made" and sleeps.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 64
#define FILE_NAME "walls.new"
/* Writable for all users by design: a write registers for events, which only the writer gets. */
#define PRESSURE "/proc/pressure"

static char **options;
static uid_t start_uid;    /* the task's user, before it tries to become root */
static bool own_processes; /* it has its own pid namespace, whose pid 1 is its executor */

static void __attribute__((format(printf, 1, 2))) gain(const char *format, ...)
{
	va_list args;

	(void)printf("gain: ");
	va_start(args, format);
	(void)vprintf(format, args);
	va_end(args);
	(void)printf("\n");
}

/* The next value of this option after `at`, which is NULL for the first one. */
static char **
next_option(char **at, const char *name)
{
	for (at = at ? at + 1 : options; *at; at++)
		if (strncmp(*at, name, strlen(name)) == 0 && (*at)[strlen(name)] == ':')
			return at;
	return NULL;
}

static const char *
option_value(char **at)
{
	return strchr(*at, ':') + 1;
}

#define FOREACH_OPTION(at, name)                                                                   \
	for (char **at = next_option(NULL, name); at; at = next_option(at, name))

static bool
is_in_group(gid_t gid)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return gid == getgid();
}

/* Returns whether owner and mode permit access to the task's user; `bit` is 4: read, 2: write. */
static bool
mode_grants(const struct stat *st, mode_t bit)
{
	if (st->st_uid == start_uid)
		return st->st_mode & bit << 6;
	if (st->st_gid && is_in_group(st->st_gid))
		return st->st_mode & bit << 3;
	return st->st_mode & bit;
}

static bool
is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool
is_own(const char *path)
{
	FOREACH_OPTION(at, "own")
	if (is_below(path, option_value(at)))
		return true;
	return false;
}

/* --- files --- */

static bool
can_open(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

static bool
can_connect(int dir, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	bool connected = false;

	(void)snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d/%.64s", dir, name);
	for (int type = SOCK_STREAM; type <= SOCK_SEQPACKET && !connected; type++) {
		int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		connected = connect(fd, (struct sockaddr *)&sa, sizeof sa) == 0 || errno == EAGAIN;
		(void)close(fd);
	}
	return connected;
}

static bool
is_harmless_device(const struct stat *st)
{
	static const struct {
		unsigned major, minor;
	} harmless[] = { { 1, 3 }, { 1, 5 }, { 1, 7 }, { 1, 8 }, { 1, 9 }, { 5, 0 }, { 5, 2 } };

	if (!S_ISCHR(st->st_mode))
		return false;
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		if (st->st_rdev == makedev(harmless[i].major, harmless[i].minor))
			return true;
	return major(st->st_rdev) == 136; /* a terminal in the task's own devpts */
}

static bool
can_make_file(int dir)
{
	int fd = openat(dir, FILE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return false;
	(void)close(fd);
	(void)unlinkat(dir, FILE_NAME, 0);
	return true;
}

static void
try_regular(int dir, const char *name, const char *path, const struct stat *st)
{
	bool own = is_own(path);

	if (!mode_grants(st, 4) && can_open(dir, name, O_RDONLY))
		gain("reads %s (uid %u, mode %o)", path, st->st_uid, st->st_mode & 07777);
	if (faccessat(dir, name, W_OK, AT_EACCESS) == 0 && !(own && mode_grants(st, 2)) &&
	    !is_below(path, PRESSURE) && can_open(dir, name, O_WRONLY))
		gain("writes %s (uid %u, mode %o)", path, st->st_uid, st->st_mode & 07777);
	if (own && st->st_uid != start_uid && fchmodat(dir, name, st->st_mode & 0777, 0) == 0)
		gain("changes the mode of %s", path);
	if (own && st->st_uid != start_uid && fchownat(dir, name, start_uid, -1, 0) == 0)
		gain("takes %s over", path);
}

static void
try_special(int dir, const char *name, const char *path, const struct stat *st)
{
	if (S_ISSOCK(st->st_mode)) {
		if (!mode_grants(st, 2) && can_connect(dir, name))
			gain("connects to %s", path);
	} else if (S_ISFIFO(st->st_mode)) {
		if (!mode_grants(st, 4) && can_open(dir, name, O_RDONLY))
			gain("opens the pipe %s", path);
	} else if (!is_harmless_device(st) && can_open(dir, name, O_RDONLY)) {
		gain("opens the device %s", path);
	}
}

static void walk(int dir, const char *path, int depth);

static void
walk_into(int at, const char *name, const char *path, const struct stat *st, int depth)
{
	int dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0) /* not readable; known names in it are tried by path: */
		return;
	if (!mode_grants(st, 4))
		gain("lists %s (uid %u, mode %o)", path, st->st_uid, st->st_mode & 07777);
	if (faccessat(dir, ".", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0 && !is_own(path) &&
	    can_make_file(dir))
		gain("makes a file in %s", path);
	walk(dir, path, depth + 1);
	(void)close(dir);
}

/* In /proc only files that belong to no process: processes are tried one by one. */
static bool
is_of_a_process(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0 &&
	       (strspn(path + 6, "0123456789") || strncmp(path + 6, "self", 4) == 0 ||
		   strncmp(path + 6, "thread-self", 11) == 0);
}

static void
walk(int dir, const char *path, int depth)
{
	DIR *d = depth < DEPTH_MAX ? fdopendir(dup(dir)) : NULL;
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char below[4096];
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		(void)snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
		if (is_of_a_process(below) ||
		    fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			walk_into(dir, entry->d_name, below, &st, depth);
		else if (S_ISREG(st.st_mode))
			try_regular(dir, entry->d_name, below, &st);
		else if (!S_ISLNK(st.st_mode))
			try_special(dir, entry->d_name, below, &st);
	}
	if (d)
		(void)closedir(d);
}

/* --- paths of the host, by each way to its root --- */

static void
try_path(const char *way, const char *path)
{
	char whole[4096];
	struct stat st;

	(void)snprintf(whole, sizeof whole, "%s%s", way, path);
	if (lstat(whole, &st) == 0)
		gain("sees %s", whole);
	if (can_open(AT_FDCWD, whole, O_RDONLY))
		gain("reads %s", whole);
	if (can_open(AT_FDCWD, whole, O_WRONLY))
		gain("writes %s", whole);
}

static void
try_socket(const char *way, const char *path)
{
	char whole[4096], *slash;
	int dir;

	(void)snprintf(whole, sizeof whole, "%s%s", way, path);
	slash = strrchr(whole, '/');
	*slash = '\0';
	dir = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && can_connect(dir, slash + 1))
		gain("connects to %s/%s", whole, slash + 1);
	if (dir >= 0)
		(void)close(dir);
}

static void
try_paths(const char *way)
{
	FOREACH_OPTION(at, "path")
	try_path(way, option_value(at));
	FOREACH_OPTION(at, "socket")
	try_socket(way, option_value(at));
}

/* --- descriptors and namespaces --- */

static void
try_descriptors(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			gain("was given descriptor %d", fd);
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;

		if (fstat(fd, &st) == 0 && (S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode)))
			gain("was given descriptor %d of type %o", fd, st.st_mode & S_IFMT);
	}
}

static void
try_namespaces(void)
{
	FOREACH_OPTION(at, "ns")
	{
		char path[64], name[32], found[64];
		const char *id = strchr(option_value(at), '=') + 1;
		ssize_t n;

		(void)snprintf(
		    name, sizeof name, "%.*s", (int)(id - 1 - option_value(at)), option_value(at));
		(void)snprintf(path, sizeof path, "/proc/self/ns/%s", name);
		n = readlink(path, found, sizeof found - 1);
		found[n < 0 ? 0 : n] = '\0';
		if (strcmp(found, id) == 0)
			gain("is in the host's %s namespace", name);
		else if (strcmp(name, "pid") == 0)
			own_processes = true;
	}
}

/* --- processes --- */

/* Signals from inside do not reach pid 1 of a pid namespace. */
static bool
is_own_executor(int pid)
{
	return own_processes && pid == 1;
}

static void
try_process_files(int pid)
{
	static const char *const files[] = { "environ", "mem", "maps", "auxv", "syscall", "stack",
		"io", "fd", "fdinfo", "map_files" };
	static const char *const links[] = { "root", "cwd", "exe", "ns/mnt", "ns/pid", "ns/ipc",
		"ns/net", "ns/user", "ns/cgroup" };
	char path[64], target[4096];

	(void)snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
	if (can_open(AT_FDCWD, path, O_RDONLY) && !is_own_executor(pid))
		gain("sees process %d", pid);
	(void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
	if (can_open(AT_FDCWD, path, O_WRONLY))
		gain("writes %s", path);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
		if (can_open(AT_FDCWD, path, O_RDONLY))
			gain("opens %s", path);
	}
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		int fd;

		(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, links[i]);
		if (readlink(path, target, sizeof target) >= 0)
			gain("reads the link %s", path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			gain("opens %s", path);
		if (fd >= 0 && strncmp(links[i], "ns/", 3) == 0 && setns(fd, 0) == 0)
			gain("joins %s", path);
		if (fd >= 0)
			(void)close(fd);
	}
	for (int fd = 0; fd < 16; fd++) {
		(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
		if (readlink(path, target, sizeof target) >= 0)
			gain("reads the link %s", path);
	}
	(void)snprintf(path, sizeof path, "/proc/%d/root", pid);
	if (access(path, X_OK) == 0)
		try_paths(path);
	(void)snprintf(path, sizeof path, "/proc/%d/cwd/../../../../../..", pid);
	if (access(path, X_OK) == 0)
		try_paths(path);
}

static void
try_process_memory(int pid, int pidfd)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)16, 1 };

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0) {
		gain("traces process %d", pid);
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	/* The permission is checked before the address. */
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT)
		gain("reads the memory of process %d", pid);
	if (process_vm_writev(pid, &local, 1, &remote, 1, 0) >= 0 || errno == EFAULT)
		gain("writes the memory of process %d", pid);
	for (int fd = 0; pidfd >= 0 && fd < 16; fd++)
		if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0)
			gain("takes descriptor %d of process %d", fd, pid);
	if (pidfd >= 0 && syscall(SYS_process_madvise, pidfd, &remote, 1, MADV_COLD, 0) >= 0)
		gain("advises the memory of process %d", pid);
}

static void
try_process_control(int pid, int pidfd)
{
	struct rlimit limit;
	cpu_set_t set;

	if (is_own_executor(pid)) {
		(void)kill(pid, SIGKILL); /* the test checks whether it still runs */
	} else if (kill(pid, 0) == 0) {
		gain("signals process %d", pid);
	} else if (pidfd >= 0 && syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) == 0) {
		gain("signals process %d by its descriptor", pid);
	}
	if (prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0)
		gain("reads the limits of process %d", pid);
	if (sched_getaffinity(pid, sizeof set, &set) == 0 &&
	    sched_setaffinity(pid, sizeof set, &set) == 0)
		gain("sets the processors of process %d", pid);
	errno = 0;
	if (setpriority(PRIO_PROCESS, (id_t)pid, getpriority(PRIO_PROCESS, (id_t)pid)) == 0)
		gain("sets the priority of process %d", pid);
}

static void
try_processes(void)
{
	char **most = next_option(NULL, "pid");

	for (int pid = 1; most && pid <= atoi(option_value(most)); pid++) {
		int pidfd;

		if (own_processes ? pid != 1 : getsid(pid) == getsid(0)) /* the task's own */
			continue;
		if (kill(pid, 0) < 0 && errno == ESRCH)
			continue;
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		try_process_files(pid);
		try_process_memory(pid, pidfd);
		try_process_control(pid, pidfd);
		if (pidfd >= 0)
			(void)close(pidfd);
	}
}

/* --- objects of others in the ipc namespace --- */

static void
check_ipc(const char *what, const char *name, bool reached)
{
	if (reached)
		gain("reaches %s %s", what, name);
}

/* flags: IPC_CREAT and a mode to make them, 0 to find them. */
static bool
open_ipc(int flags, void (*check)(const char *what, const char *name, bool reached))
{
	bool all = true;

	FOREACH_OPTION(at, "key")
	{
		const char *name = option_value(at);
		key_t key = atoi(name);
		bool found[] = { shmget(key, flags ? 4096 : 0, flags) >= 0,
			semget(key, flags ? 1 : 0, flags) >= 0, msgget(key, flags) >= 0 };

		check("shared memory", name, found[0]);
		check("semaphores", name, found[1]);
		check("message queue", name, found[2]);
		all = all && found[0] && found[1] && found[2];
	}
	FOREACH_OPTION(at, "mq")
	{
		mqd_t mq = mq_open(option_value(at), O_RDONLY | (flags ? O_CREAT : 0), 0666, NULL);

		check("message queue", option_value(at), mq != (mqd_t)-1);
		all = all && mq != (mqd_t)-1;
	}
	return all;
}

static void
try_ipc(void)
{
	(void)open_ipc(0, check_ipc);
}

static void
ignore_ipc(const char *what, const char *name, bool reached)
{
}

static int
make_ipc(void)
{
	(void)umask(0);
	if (!open_ipc(IPC_CREAT | 0666, ignore_ipc))
		return 1;
	(void)printf("made\n");
	(void)fflush(stdout);
	(void)pause();
	return 0;
}

/* --- system calls --- */

static void
check_call(const char *name, long result)
{
	if (result >= 0 || (errno != EPERM && errno != ENOSYS && errno != EACCES))
		gain("may call %s (%s)", name, result >= 0 ? "it worked" : strerrorname_np(errno));
}

#define CALL(name, ...) check_call(#name, syscall(SYS_##name, __VA_ARGS__))

static void
try_clone(unsigned long flag)
{
	long pid = flag == CLONE_NEWTIME ? -EPERM /* its bit is one of those of the signal */
					 : syscall(SYS_clone, flag | SIGCHLD, NULL, NULL, NULL, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		gain("clones with flag %lx", flag);
}

static void
try_mount_calls(void)
{
	struct clone_args args = { 0 };

	CALL(mount, "none", "/tmp", "tmpfs", 0, NULL);
	CALL(mount, "/", "/tmp", NULL, MS_BIND, NULL);
	CALL(mount, NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
	CALL(umount2, "/etc", MNT_DETACH);
	CALL(pivot_root, ".", ".");
	CALL(fsopen, "tmpfs", 0);
	CALL(fspick, AT_FDCWD, "/", 0);
	CALL(open_tree, AT_FDCWD, "/", 1);
	CALL(move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "/tmp", 0);
	CALL(mount_setattr, AT_FDCWD, "/", 0, &args, 32);
	for (int bit = 7; bit < 32; bit++)
		if ((1u << bit) &
		    (CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
			CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME)) {
			CALL(unshare, 1u << bit);
			try_clone(1ul << bit);
		}
	args.flags = CLONE_NEWUSER;
	CALL(clone3, &args, sizeof args);
	CALL(setns, 0, 0);
}

static void
try_machine_calls(void)
{
	struct perf_event_attr perf = { .size = sizeof perf };
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[128];
	} handle = { .bytes = 128 };
	int mount_id;

	CALL(name_to_handle_at, AT_FDCWD, "/", &handle, &mount_id, 0);
	CALL(open_by_handle_at, AT_FDCWD, &handle, O_RDONLY);
	CALL(bpf, 0, NULL, 0);
	CALL(perf_event_open, &perf, 0, -1, -1, 0);
	CALL(io_uring_setup, 1, NULL);
	CALL(userfaultfd, 0);
	CALL(keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0);
	CALL(add_key, "user", "walls", "x", 1, KEY_SPEC_PROCESS_KEYRING);
	CALL(request_key, "user", "walls", NULL, 0);
	CALL(init_module, NULL, 0, "");
	CALL(finit_module, 0, "", 0);
	CALL(delete_module, "walls", 0);
	CALL(reboot, 0, 0, 0, NULL); /* has no effect without the magic numbers */
	CALL(swapon, "/tmp", 0);
	CALL(swapoff, "/tmp");
	CALL(acct, "/tmp");
	CALL(syslog, 3, NULL, 0);
	CALL(quotactl, 0, NULL, 0, NULL);
	CALL(sethostname, "", -1);
	CALL(setdomainname, "", -1);
	CALL(clock_settime, 0, NULL);
	CALL(settimeofday, NULL, NULL);
	CALL(vhangup, 0);
	CALL(kcmp, getpid(), 1, 0, 0, 0);
#ifdef SYS_iopl
	CALL(iopl, 3);
	CALL(ioperm, 0, 1, 1);
#endif
}

static void
try_network(void)
{
	static const struct {
		int family, type, protocol;
		const char *name;
	} sockets[] = { { AF_INET, SOCK_RAW, 1, "raw" }, { AF_INET6, SOCK_RAW, 58, "raw6" },
		{ AF_PACKET, SOCK_RAW, 0, "packet" }, { AF_PACKET, SOCK_DGRAM, 0, "packet" } };

	for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++)
		if (socket(sockets[i].family, sockets[i].type, sockets[i].protocol) >= 0)
			gain("has a %s socket", sockets[i].name);
}

static void
try_devices(void)
{
	FOREACH_OPTION(at, "own")
	{
		char path[512];

		(void)snprintf(path, sizeof path, "%s/walls.node", option_value(at));
		if (mknod(path, S_IFCHR | 0666, makedev(1, 1)) < 0)
			continue;
		if (can_open(AT_FDCWD, path, O_RDONLY))
			gain("opens the machine's memory by %s", path);
		(void)unlink(path);
	}
}

static void
try_all(void)
{
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	try_namespaces();
	walk(root, "", 0);
	(void)close(root);
	try_paths("");
	try_processes();
	try_ipc();
	try_mount_calls();
	try_machine_calls();
	try_network();
	try_devices();
	CALL(chroot, "/tmp"); /* last: who has another root may make no user namespace */
}

/* Ids first, because most uses of a capability need them. */
static void
try_as_root(void)
{
	const gid_t gid = getgid();
	bool groups = setgroups(0, &gid) == 0, group = setresgid(0, 0, 0) == 0,
	     user = setresuid(0, 0, 0) == 0;

	if (!groups && !user && (!group || gid == 0))
		return;
	gain("has other ids: uid %u, gid %u", getuid(), getgid());
	try_all();
}

/* In a child, because it may change its privileges. */
static void
run(void (*fn)(void))
{
	int status;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		fn();
		(void)fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
		(void)printf("failed: a child ended with status %x\n", pid < 0 ? -1 : status);
}

int
main(int argc, char **argv)
{
	options = argv + 1;
	if (argc > 1 && strcmp(argv[1], "make") == 0)
		return make_ipc();
	start_uid = getuid();
	try_descriptors();
	run(try_all);
	run(try_as_root);
	(void)printf("end\n");
	return 0;
}
