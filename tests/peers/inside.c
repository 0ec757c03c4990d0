// SPDX-License-Identifier: Apache-2.0
/*
 * inside.c: prints, as one line of JSON, the attributes and privileges of a task. Static, so that
 * it runs in any root. `inside [read:PATH | later:PATH | write:PATH | new:PATH | exec:PATH
 * | kill:PID | node:PATH | connect:PATH]...` also tries these accesses and prints the errno of
 * each, 0 for a success; `connect:@NAME` connects to an abstract socket. `inside euid` prints only
 * its user, for a set-user-id copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void
text(const char *s)
{
	(void)putchar('"');
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == '"' || *s == '\\')
			(void)printf("\\u%04x", (unsigned char)*s);
		else
			(void)putchar(*s);
	(void)putchar('"');
}

static void
pair(const char *name, const char *value)
{
	text(name);
	(void)putchar(':');
	text(value);
	(void)putchar(',');
}

/* Complete lines "Name:\tvalue". */
static void
status(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[1024], *value;

	(void)printf("\"status\":{");
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!(value = strstr(line, ":\t")))
			continue;
		*value = '\0';
		pair(line, value + 2);
	}
	(void)printf("\"\":\"\"},");
}

static void
links(const char *name, const char *dir, const char *const *names)
{
	char path[64], target[4096];

	(void)printf("\"%s\":{", name);
	for (; *names; names++) {
		ssize_t n;

		(void)snprintf(path, sizeof path, "%s/%s", dir, *names);
		n = readlink(path, target, sizeof target - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		pair(*names, target);
	}
	(void)printf("\"\":\"\"},");
}

/* By number and not with opendir(3), which would open another descriptor. */
static void
descriptors(void)
{
	static char numbers[1024][8];
	static const char *names[1025];

	for (int fd = 0; fd < 1024; fd++) {
		(void)snprintf(numbers[fd], sizeof numbers[fd], "%d", fd);
		names[fd] = numbers[fd];
	}
	links("fds", "/proc/self/fd", names);
}

static void
limits(void)
{
	struct rlimit l;

	(void)printf("\"rlimits\":[");
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		(void)getrlimit(i, &l);
		(void)printf("%s[\"%llx\",\"%llx\"]", i ? "," : "", (unsigned long long)l.rlim_cur,
		    (unsigned long long)l.rlim_max);
	}
	(void)printf("],");
}

static void
keyring(void)
{
	char what[256] = "";
	long id = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);

	(void)printf("\"keyring\":%ld,\"keyring_errno\":%d,", id, id < 0 ? errno : 0);
	if (id >= 0)
		(void)syscall(SYS_keyctl, KEYCTL_DESCRIBE, id, what, sizeof what - 1);
	pair("keyring_is", what);
}

static void
file(const char *name, const char *path)
{
	char buf[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);

	buf[n < 0 ? 0 : n] = '\0';
	if (fd >= 0)
		(void)close(fd);
	pair(name, buf);
}

static int
try_open(const char *path, int flags)
{
	char byte;
	int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600), r = 0;

	if (fd < 0)
		return errno;
	if (!(flags & (O_WRONLY | O_CREAT)) && read(fd, &byte, 1) < 0 && errno != EISDIR &&
	    errno != EAGAIN)
		r = errno;
	(void)close(fd);
	return r;
}

static int
try_new(const char *dir)
{
	char path[4096];
	int r;

	(void)snprintf(path, sizeof path, "%s/inside.new", dir);
	r = try_open(path, O_WRONLY | O_CREAT | O_EXCL);
	if (r == 0)
		(void)unlink(path);
	return r;
}

static int
try_node(const char *path)
{
	int r = mknod(path, S_IFCHR | 0666, makedev(1, 3)) < 0 ? errno : 0;

	if (r == 0)
		(void)unlink(path);
	return r;
}

static int
try_connect_abstract(const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;
	size_t len = strlen(name);

	memcpy(sa.sun_path + 1, name, len);
	len += offsetof(struct sockaddr_un, sun_path) + 1;
	r = connect(fd, (struct sockaddr *)&sa, (socklen_t)len) < 0 ? errno : 0;
	(void)close(fd);
	return r;
}

static int
try_connect(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char dir[4096], *slash;
	int fd, at, r;

	(void)snprintf(dir, sizeof dir, "%s", path);
	slash = strrchr(dir, '/');
	*slash = '\0';
	at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return errno;
	(void)snprintf(sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d/%s", at, slash + 1);
	for (int type = SOCK_STREAM;; type = SOCK_SEQPACKET) {
		fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
		r = connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0 ? errno : 0;
		(void)close(fd);
		if (r != EPROTOTYPE || type == SOCK_SEQPACKET)
			break;
	}
	(void)close(at);
	return r;
}

/* Returns 0 if it ran as another user than root, 99 as root, else the errno of execve. */
static int
try_exec(const char *path)
{
	int st;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)execl(path, path, "euid", NULL);
		_exit(errno);
	}
	if (pid < 0 || waitpid(pid, &st, 0) < 0)
		return errno;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 255;
}

static int
attempt(const char *what)
{
	const char *arg = strchr(what, ':');

	if (!arg)
		return -1;
	arg++;
	switch (what[0]) {
	case 'r':
		return try_open(arg, O_RDONLY);
	case 'w':
		return try_open(arg, O_WRONLY);
	case 'l':
		(void)fflush(stdout);
		for (int i = 0; i < 500 && access(arg, F_OK) < 0; i++)
			(void)usleep(10000);
		return try_open(arg, O_RDONLY);
	case 'n':
		return what[1] == 'e' ? try_new(arg) : try_node(arg);
	case 'e':
		return try_exec(arg);
	case 'k':
		return kill(atoi(arg), 0) < 0 ? errno : 0;
	case 'c':
		return arg[0] == '@' ? try_connect_abstract(arg + 1) : try_connect(arg);
	}
	return -1;
}

/* Tries to create a file if the path is a directory. */
static void
mounts(void)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[4096], point[1024], options[256];
	struct stat st;

	(void)printf("\"mounts\":[");
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%*s %*s %*s %*s %1023s %255s", point, options) != 2)
			continue;
		(void)putchar('[');
		text(point);
		(void)putchar(',');
		text(options);
		(void)putchar(',');
		(void)printf(
		    "%d],", stat(point, &st) == 0 && S_ISDIR(st.st_mode) ? try_new(point) : -1);
	}
	(void)printf("[\"\",\"\",-1]],");
}

int
main(int argc, char **argv)
{
	static const char *const spaces[] = { "mnt", "pid", "pid_for_children", "ipc", "cgroup",
		"net", "uts", "user", "time", NULL };
	char cwd[4096] = "";
	mode_t mask;

	if (argc == 2 && strcmp(argv[1], "euid") == 0)
		return geteuid() == 0 || getegid() == 0 ? 99 : 0;
	(void)putchar('{');
	descriptors(); /* first, so that this program's own descriptors are not included */
	mask = umask(0);
	(void)umask(mask);
	(void)printf(
	    "\"umask\":\"%03o\",\"pid\":%d,\"ppid\":%d,\"sid\":%d,\"pgid\":%d,\"nice\":%d,", mask,
	    getpid(), getppid(), getsid(0), getpgid(0), getpriority(PRIO_PROCESS, 0));
	pair("cwd", getcwd(cwd, sizeof cwd) ? cwd : "");
	status();
	links("ns", "/proc/self/ns", spaces);
	limits();
	keyring();
	file("oom_score_adj", "/proc/self/oom_score_adj");
	file("cgroup", "/proc/self/cgroup");
	mounts();
	(void)printf("\"stdout\":%d,\"stderr\":%d,\"env\":[", try_open("/dev/stdout", O_WRONLY),
	    try_open("/dev/stderr", O_WRONLY));
	for (char **e = environ; *e; e++) {
		if (e != environ)
			(void)putchar(',');
		text(*e);
	}
	(void)printf("],\"tries\":{");
	for (int i = 1; i < argc; i++) {
		int r = attempt(argv[i]);

		text(argv[i]);
		(void)printf(":%d,", r);
	}
	(void)printf("\"\":0}}\n");
	return 0;
}
