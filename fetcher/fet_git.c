// SPDX-License-Identifier: Apache-2.0
/*
 * fet_git.c: clones repositories by git, which runs under this process's user, filter and Landlock
 * rules. Runs in: a worker of the fetcher.
 *
 * Other users can read the arguments of a process, but not its environment: user and password are
 * not in the url, but in variables, out of which a helper answers git.
 */
#include "fetcher/fet_git.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/path.h"

#define GIT         "/usr/bin/git"
#define ENV_MAX     48
#define CONFIG_MAX  8
#define DEPTH_MAX   256
#define MEASURE_MS  1000 /* how often the size of the repository is measured */
#define OUTPUT_SIZE 4096
#define FILES_MAX   1000000
#define SIGNALED    128 /* added to a signal: the exit status of what it ended, as in a shell */

DEFINE_CLEANUP(CURLU *, curl_url_cleanup);

struct git {
	struct fet *f;
	char *url; /* without password, and without user if that is in the header */
	const char *to;
	uint64_t until_ms;
	struct {
		char *v[ENV_MAX + 1];
		size_t n;
	} env;
	unsigned n_configs;
	struct err *e;
};

/* --- the environment --- */

static void
put(struct git *g, char *pair)
{
	if (g->env.n == ENV_MAX)
		abort();
	g->env.v[g->env.n++] = pair;
}

static void
configure(struct git *g, const char *key, const char *value)
{
	put(g, mem_printf("GIT_CONFIG_KEY_%u=%s", g->n_configs, key));
	put(g, mem_printf("GIT_CONFIG_VALUE_%u=%s", g->n_configs, value));
	g->n_configs++;
}

static void
inherit(struct git *g)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy",
		"NO_PROXY", "all_proxy", "ALL_PROXY" };

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		if (getenv(names[i]))
			put(g, mem_printf("%s=%s", names[i], getenv(names[i])));
	if (getenv(FET_CA_VARIABLE))
		put(g, mem_printf("GIT_SSL_CAINFO=%s", getenv(FET_CA_VARIABLE)));
	if (getenv(FET_CA_DIR_VARIABLE))
		put(g, mem_printf("GIT_SSL_CAPATH=%s", getenv(FET_CA_DIR_VARIABLE)));
}

/* Makes git's environment. With it git reads no configuration of the machine or of a user, asks
 * nothing, and runs no program that the repository names. */
static void
make_env(struct git *g)
{
	put(g, mem_strdup("PATH=/usr/local/bin:/usr/bin:/bin"));
	put(g, mem_strdup("LC_ALL=C.UTF-8"));
	put(g, mem_printf("HOME=%s", "/nonexistent"));
	put(g, mem_strdup("GIT_CONFIG_NOSYSTEM=1"));
	put(g, mem_strdup("GIT_CONFIG_GLOBAL=/dev/null"));
	put(g, mem_strdup("GIT_TERMINAL_PROMPT=0"));
	put(g, mem_strdup("GIT_ASKPASS=/bin/false"));
	put(g, mem_strdup("GIT_ALLOW_PROTOCOL=http:https:ssh:git"));
	inherit(g);
	configure(g, "core.hooksPath", "/dev/null");
	configure(g, "gc.auto", "0");
	configure(g, "http.lowSpeedLimit", "1");
	configure(g, "http.lowSpeedTime", "60");
	configure(g, "advice.detachedHead", "false");
	if (g->f->spec.insecure)
		configure(g, "http.sslVerify", "false");
}

/* --- url and key --- */

static char *
take_part(CURLU *url, CURLUPart part, unsigned flags)
{
	char *found = NULL, *copy;

	if (curl_url_get(url, part, &found, flags) != CURLUE_OK)
		return mem_strdup("");
	copy = mem_strdup(found);
	curl_free(found);
	return copy;
}

/* Git asks for user and password when the server demands them, for the server of this url only:
 * neither one to which that redirects nor one of a submodule gets them. */
static void
offer_password(struct git *g, CURLU *of, const char *user, const char *password)
{
	cleanup_with(curl_url_cleanup) CURLU *url = mem_need(curl_url_dup(of));
	cleanup_free char *server = NULL, *key = NULL;

	(void)curl_url_set(url, CURLUPART_PATH, NULL, 0);
	server = take_part(url, CURLUPART_URL, 0);
	server[strlen(server) - 1] = '\0'; /* its slash */
	key = mem_printf("credential.%s.helper", server);
	configure(g, key,
	    "!f() { printf 'username=%s\\npassword=%s\\n' \"$ARTIFACT_USER\" "
	    "\"$ARTIFACT_PASSWORD\"; }; f");
	put(g, mem_printf("ARTIFACT_USER=%s", user));
	put(g, mem_printf("ARTIFACT_PASSWORD=%s", password));
}

/* For ssh, the user stays in the url. */
static int
split_url(struct git *g, const char *text)
{
	cleanup_with(curl_url_cleanup) CURLU *url = mem_need(curl_url());
	cleanup_free char *scheme = NULL, *user = NULL, *password = NULL;
	const unsigned flags = CURLU_NON_SUPPORT_SCHEME;

	if (curl_url_set(url, CURLUPART_URL, text, flags) != CURLUE_OK)
		return err_say(g->e, -EINVAL, "the source is not a valid url");
	scheme = take_part(url, CURLUPART_SCHEME, 0);
	user = take_part(url, CURLUPART_USER, CURLU_URLDECODE);
	password = take_part(url, CURLUPART_PASSWORD, CURLU_URLDECODE);
	(void)curl_url_set(url, CURLUPART_PASSWORD, NULL, flags);
	if (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) {
		(void)curl_url_set(url, CURLUPART_USER, NULL, flags);
		if (*user || *password)
			offer_password(g, url, user, password);
	}
	g->url = take_part(url, CURLUPART_URL, 0);
	return 0;
}

/* The key is a file that only this user can read, removed when git has ended. */
static int
write_key(struct git *g, char *base64)
{
	cleanup_free uint8_t *key = mem_alloc(strlen(base64) + 1);
	cleanup_close int fd = -1;
	size_t len = strlen(base64);
	int r;

	for (char *at = base64; *at; at++) /* "+" in a query is a space */
		if (*at == ' ')
			*at = '+';
	if (base64_decode(base64, key, &len) < 0)
		return err_say(g->e, -EINVAL, "sshkey is not a key in base64");
	fd = openat(g->f->dir_fd, "key", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fd_write_full(fd, key, len);
	return r < 0 ? err_set(g->e, r, "store the key") : 0;
}

static int
make_ssh(struct git *g, char *key)
{
	char dir[PATH_MAX];
	int r = key ? write_key(g, key) : 0;

	if (r < 0)
		return r;
	if (!getcwd(dir, sizeof dir))
		return err_set(g->e, -errno, "find the staging directory");
	put(g,
	    mem_printf("GIT_SSH_COMMAND=/usr/bin/ssh -F /dev/null -o BatchMode=yes -o "
		       "StrictHostKeyChecking=yes -o ServerAliveInterval=15 -o "
		       "UserKnownHostsFile=/dev/null -o "
		       "GlobalKnownHostsFile=/etc/ssh/ssh_known_hosts -o ConnectTimeout=30%s%s%s",
		key ? " -o IdentitiesOnly=yes -i '" : "", key ? dir : "", key ? "/key'" : ""));
	return 0;
}

/* --- the size --- */

/* Adds what is below the directory to the counts; stops at the limits. */
static void
measure(const struct fet *f, int dir_fd, const char *name, unsigned depth, uint64_t *bytes,
    uint64_t *files)
{
	cleanup_dir DIR *d = NULL;
	struct stat st;
	const char *n;

	if (depth == DEPTH_MAX || dir_open_at(dir_fd, name, &d) < 0)
		return;
	while (*bytes <= f->spec.max_unpacked && *files <= FILES_MAX && (n = dir_next(d))) {
		if (fstatat(dirfd(d), n, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		*files += 1;
		*bytes += (uint64_t)st.st_size;
		if (S_ISDIR(st.st_mode))
			measure(f, dirfd(d), n, depth + 1, bytes, files);
	}
}

static int
too_large(const struct git *g)
{
	return err_say(g->e, -EFBIG, "the repository has more than the %llu bytes that are allowed",
	    (unsigned long long)g->f->spec.max_unpacked);
}

static int
check_size(struct git *g)
{
	uint64_t bytes = 0, files = 0;

	measure(g->f, g->f->dir_fd, g->to, 0, &bytes, &files);
	g->f->told->bytes = g->f->bytes = bytes;
	g->f->files = files;
	if (bytes > g->f->spec.max_unpacked)
		return too_large(g);
	if (files > FILES_MAX)
		return err_say(g->e, -EFBIG,
		    "the repository has more than the %d files that are allowed", FILES_MAX);
	return 0;
}

/* --- running git --- */

static _Noreturn void
become_git(const struct git *g, char *const *args, int out)
{
	const struct rlimit size = { g->f->spec.max_unpacked, g->f->spec.max_unpacked };
	int null = open("/dev/null", O_RDWR);

	(void)umask(022);
	if (null < 0 || setrlimit(RLIMIT_FSIZE, &size) < 0 || dup2(null, 0) < 0 ||
	    dup2(out, 1) < 0 || dup2(out, 2) < 0 || close_range(3, ~0u, 0) < 0)
		_exit(126);
	(void)execve(GIT, args, (char *const *)g->env.v);
	_exit(127);
}

/*
 * The leader of a process group, to which git and all that it starts belong: kills the group when
 * the worker has ended, however that ended, and exits as git does. `life` is a pipe whose other end
 * only the worker has. git can be alone for a moment if this process is killed by itself; then the
 * worker kills the group.
 */
static _Noreturn void
guard(const struct git *g, char *const *args, int life, int out)
{
	struct pollfd fds[] = { { .fd = WORKER_FIRST_FD }, { .events = POLLIN } };
	int status = 0;
	pid_t pid;

	/* Without the worker's socket, whose end says that the worker has ended. */
	if (setpgid(0, 0) < 0 || fd_pack((int[]){ life, out }, 2, WORKER_FIRST_FD) < 0)
		_exit(126);
	pid = fork();
	if (pid == 0)
		become_git(g, args, WORKER_FIRST_FD + 1);
	fds[1].fd = pid < 0 ? -1 : pidfd_open(pid, 0);
	if (fds[1].fd < 0)
		_exit(126);
	while (poll(fds, 2, -1) < 0)
		;
	if (fds[0].revents || waitpid(pid, &status, 0) != pid)
		(void)kill(0, SIGKILL);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALED + WTERMSIG(status));
}

/* Keeps the last bytes of what git says. */
static void
keep_output(int fd, char *kept, size_t *len)
{
	char buf[OUTPUT_SIZE / 2];
	ssize_t n = read(fd, buf, sizeof buf);

	if (n <= 0)
		return;
	if (*len + (size_t)n > OUTPUT_SIZE - 1) {
		size_t drop = *len + (size_t)n - (OUTPUT_SIZE - 1);

		memmove(kept, kept + drop, *len - drop);
		*len -= drop;
	}
	memcpy(kept + *len, buf, (size_t)n);
	*len += (size_t)n;
	kept[*len] = '\0';
}

/* Waits for the end of git's guard. Returns git's exit status, or -errno with *e. */
static int
wait_for(struct git *g, pid_t pid, int out, char *kept)
{
	cleanup_close int pidfd = pidfd_open(pid, 0);
	struct pollfd fds[] = { { .fd = pidfd, .events = POLLIN },
		{ .fd = out, .events = POLLIN } };
	int status, r = pidfd < 0 ? err_set(g->e, -errno, "follow git") : 0;
	size_t len = 0;

	while (r == 0) {
		(void)poll(fds, 2, MEASURE_MS);
		if (fds[1].revents)
			keep_output(out, kept, &len);
		if (fds[0].revents)
			break;
		r = check_size(g);
		if (r == 0 && clock_ms() >= g->until_ms)
			r = err_say(g->e, -ETIMEDOUT, "git did not end in time");
		if (r == 0 && g->f->told->give_up)
			r = fet_say_slow(g->e);
	}
	(void)kill(-pid, SIGKILL); /* also what git has left running */
	if (waitpid(pid, &status, 0) < 0)
		return err_set(g->e, -errno, "wait for git");
	keep_output(out, kept, &len);
	if (r < 0)
		return r;
	r = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALED + WTERMSIG(status);
	if (r == SIGNALED + SIGXFSZ || strstr(kept, "died of signal 25"))
		return too_large(g);
	return r;
}

/* Makes the error of a failed git: its line "fatal: …", or the first line, which is ssh's, if git
 * only says that it could not read from the remote. */
static int
explain(struct git *g, int status, char *output)
{
	char *line = strstr(output, "fatal: ");

	if (status == 127)
		return err_say(g->e, -ENOENT, GIT " is not installed on this machine");
	if (strstr(output, "IDENTIFICATION HAS CHANGED"))
		return err_say(g->e, -EREMOTEIO,
		    "the host's key is not that of /etc/ssh/ssh_known_hosts: somebody else may "
		    "answer, or the host has a new key, which that file must have");
	if (strstr(output, "Host key verification failed"))
		return err_say(g->e, -EREMOTEIO,
		    "ssh does not know the host: add its key to /etc/ssh/ssh_known_hosts");
	if (!line || strncmp(line, "fatal: Could not read from remote", 33) == 0)
		line = output + strspn(output, "\r\n");
	line[strcspn(line, "\r\n")] = '\0';
	return err_say(g->e, -EREMOTEIO, "git failed with code %d: %.300s", status, line);
}

static int
make_pipe(int *ret_reader, int *ret_writer)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*ret_reader = pair[0];
	*ret_writer = pair[1];
	return 0;
}

/* Runs git with these arguments, up to NULL. */
static int
run(struct git *g, const char *const *args)
{
	cleanup_close int life = -1, guarded = -1, said = -1, out = -1;
	char output[OUTPUT_SIZE] = "";
	int r;
	pid_t pid;

	if ((r = make_pipe(&guarded, &life)) < 0 || (r = make_pipe(&said, &out)) < 0)
		return err_set(g->e, r, "make a pipe for git");
	(void)fd_set_nonblock(said, true);
	pid = fork();
	if (pid == 0) {
		close_p(&life);
		guard(g, (char *const *)(uintptr_t)args, guarded, out);
	}
	close_p(&out);
	CRASH_POINT(FET_AFTER_GIT_START);
	g->f->told->transfers = true;
	r = pid < 0 ? err_set(g->e, -errno, "start git") : wait_for(g, pid, said, output);
	g->f->told->transfers = false;
	if (r == 0)
		return check_size(g);
	return r < 0 ? r : explain(g, r, output);
}

/* --- cloning --- */

/* Refuses a name that git could take for an option. */
static int
check_ref(const struct git *g, const char *ref)
{
	if (*ref == '-' || strlen(ref) > 255)
		return err_say(g->e, -EINVAL, "ref is not the name of a branch, tag or commit");
	for (const char *at = ref; *at; at++)
		if ((unsigned char)*at <= ' ' || strchr("~^:?*[\\\177", *at) ||
		    strncmp(at, "..", 2) == 0)
			return err_say(
			    g->e, -EINVAL, "ref is not the name of a branch, tag or commit");
	return 0;
}

/* A shallow clone has one branch or tag; else every name of a commit is known afterwards, and those
 * of branches are origin/... */
static int
clone_at(struct git *g, const char *ref, unsigned long depth)
{
	cleanup_free char *number = mem_printf("--depth=%lu", depth);
	cleanup_free char *branch = ref ? mem_printf("--branch=%s", ref) : NULL;
	cleanup_free char *remote = ref ? mem_printf("origin/%s", ref) : NULL;
	const char *const shallow[] = { "git", "clone", "--quiet", number, branch ? branch : "--",
		branch ? "--" : g->url, branch ? g->url : g->to, branch ? g->to : NULL, NULL };
	const char *const whole[] = { "git", "clone", "--quiet", "--", g->url, g->to, NULL };
	const char *const named[] = { "git", "-C", g->to, "checkout", "--quiet", "--detach", ref,
		"--", NULL };
	const char *const tracked[] = { "git", "-C", g->to, "checkout", "--quiet", "--detach",
		remote, "--", NULL };
	int r;

	if (depth > 0)
		return run(g, shallow);
	r = run(g, whole);
	if (r < 0 || !ref)
		return r;
	r = run(g, tracked);
	return r == -EREMOTEIO ? run(g, named) : r;
}

static int
get_submodules(struct git *g)
{
	cleanup_free char *modules = mem_printf("%s/.gitmodules", g->to);
	const char *const update[] = { "git", "-C", g->to, "submodule", "--quiet", "update",
		"--init", "--recursive", NULL };
	struct stat st;

	return fstatat(g->f->dir_fd, modules, &st, AT_SYMLINK_NOFOLLOW) < 0 ? 0 : run(g, update);
}

static int
clone_source(struct git *g, struct fet_source *s)
{
	cleanup_free char *ref = fet_source_take(s, "ref"), *depth = fet_source_take(s, "depth");
	cleanup_free char *key = fet_source_take(s, "sshkey"), *url = fet_source_url(s);
	unsigned long commits = depth ? strtoul(depth, NULL, 10) : 0;
	int r;

	/* Git would show them, in arguments and in the repository's files. */
	if (s->query.n > 0)
		return err_say(g->e, -EINVAL,
		    "the url of a repository has no parameters but ref, depth and sshkey");
	if (ref && !*ref)
		free_p(&ref);
	if (ref && (r = check_ref(g, ref)) < 0)
		return r;
	make_env(g);
	if ((r = split_url(g, url)) < 0 || (r = make_ssh(g, key && *key ? key : NULL)) < 0)
		return r;
	put(g, mem_printf("GIT_CONFIG_COUNT=%u", g->n_configs));
	r = clone_at(g, ref, commits);
	return r < 0 ? r : get_submodules(g);
}

int
fet_git_clone(struct fet *f, struct fet_source *s, const char *to, struct err *e)
{
	struct git g = { .f = f, .to = to, .until_ms = clock_ms() + f->spec.git_ms, .e = e };
	int r = clone_source(&g, s);

	(void)unlinkat(f->dir_fd, "key", 0);
	for (size_t i = 0; i < g.env.n; i++)
		free(g.env.v[i]);
	free(g.url);
	return r;
}
