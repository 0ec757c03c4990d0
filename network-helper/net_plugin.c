// SPDX-License-Identifier: Apache-2.0
/*
 * net_plugin.c: runs one CNI plugin, in a cgroup by which it and all that it starts are killed. Its
 * output is read up to a limit, and only as JSON. Runs in: a worker of network-helper, as root, and
 * the plugin's process before its exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "network-helper/net.h"

#define KILL_MS     2000
#define STDERR_MAX  4096
#define CGROUP_SIZE (ID_UUID_SIZE + 8)
#define DESCRIBE_MS 3000

struct run {
	pid_t pid;
	int pidfd, out, err; /* -1: at its end */
	char *text;
	size_t len;
	char errors[STDERR_MAX];
	size_t n_errors;
};

static void
name_cgroup(const char *alloc, char ret[CGROUP_SIZE])
{
	(void)snprintf(ret, CGROUP_SIZE, "cni-%s", alloc);
}

int
net_plugin_kill(const char *alloc, int wait_ms, struct err *e)
{
	cleanup_close int dir = -1;
	char name[CGROUP_SIZE];
	int r;

	name_cgroup(alloc, name);
	dir = openat(NET_FD_CGROUP, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "open cgroup %s", name);
	(void)cgroup_wait_empty(dir, wait_ms);
	if ((r = cgroup_kill(dir)) < 0 || (r = cgroup_wait_empty(dir, KILL_MS)) < 0 ||
	    (r = cgroup_rmdir(NET_FD_CGROUP, name)) < 0)
		return err_set(e, r, "kill the CNI plugin of alloc %s", alloc);
	return 0;
}

/* It outlives its worker, because one that is killed in the middle may leave what no later call of
 * it finds. */
static _Noreturn void
become(int cgroup, const int *fds, char *const *argv, char *const *envp)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int signo = 1; signo <= SIGRTMAX; signo++)
		(void)signal(signo, SIG_DFL);
	(void)setsid();
	if (fd_write_file(cgroup, "cgroup.procs", "0") < 0 || fd_pack(fds, 4, 0) < 0)
		_exit(126);
	(void)execveat(3, "", argv, envp, AT_EMPTY_PATH);
	_exit(127);
}

static int
start(struct run *run, const char *alloc, const char *command, const char *args,
    const json_t *config, int input, struct err *e)
{
	char dirs[CONFIG_PATH_SIZE];
	cleanup_close int binary = net_plugin_find(config, dirs, e), cgroup = -1, out = -1,
			  err = -1;
	const char *type = json_string_value(json_object_get(config, "type"));
	cleanup_free char *cmd = mem_printf("CNI_COMMAND=%s", command ?: "");
	cleanup_free char *id = mem_printf("CNI_CONTAINERID=%s", alloc);
	cleanup_free char *ns = mem_printf("CNI_NETNS=%s/netns/%s", net_runtime_dir, alloc);
	cleanup_free char *path = mem_printf("CNI_PATH=%s", dirs);
	cleanup_free char *cni_args = mem_printf("CNI_ARGS=%s", args);
	char *envp[] = { (char[]){ "PATH=" CNI_PROGRAMS }, command ? cmd : NULL, id, ns, path,
		cni_args, (char[]){ "CNI_IFNAME=" NET_INTERFACE }, NULL };
	char *argv[] = { (char *)(uintptr_t)type, NULL }, name[CGROUP_SIZE];
	int pair[2];

	if (binary < 0)
		return binary;
	name_cgroup(alloc, name);
	if ((mkdirat(NET_FD_CGROUP, name, 0755) < 0 && errno != EEXIST) ||
	    (cgroup = openat(NET_FD_CGROUP, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_set(e, -errno, "make cgroup %s", name);
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, -errno, "make a pipe");
	run->out = pair[0];
	out = pair[1];
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, -errno, "make a pipe");
	run->err = pair[0];
	err = pair[1];
	(void)fd_set_nonblock(out, false);
	(void)fd_set_nonblock(err, false);
	run->pid = fork();
	if (run->pid == 0)
		become(cgroup, (int[]){ input, out, err, binary }, argv, envp);
	if (run->pid < 0 || (run->pidfd = pidfd_open(run->pid, 0)) < 0)
		return err_set(e, -errno, "start CNI plugin %s", type);
	return 0;
}

/* Returns false beyond the limit of its output. */
static bool
read_output(struct run *run, int *fd, bool errors)
{
	char buf[16384];
	ssize_t n = read(*fd, buf, sizeof buf);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		close_p(fd);
		return true;
	}
	if (errors) {
		size_t more = sizeof run->errors - run->n_errors;

		more = (size_t)n < more ? (size_t)n : more;
		memcpy(run->errors + run->n_errors, buf, more);
		run->n_errors += more;
		return true;
	}
	if (run->len + (size_t)n > NET_JSON_MAX)
		return false;
	memcpy(run->text + run->len, buf, (size_t)n);
	run->len += (size_t)n;
	return true;
}

/* Waits until the plugin has ended, also if it closes its pipes before, and reads them to their
 * end. What it left running is killed when it has ended. */
static int
wait_end(struct run *run, const char *alloc, const char *type, uint64_t until_ms, struct err *e)
{
	bool ended = false;

	while (!ended || run->out >= 0 || run->err >= 0) {
		struct pollfd fds[] = { { .fd = run->out, .events = POLLIN },
			{ .fd = run->err, .events = POLLIN },
			{ .fd = ended ? -1 : run->pidfd, .events = POLLIN } };
		uint64_t now = clock_ms();

		if (now >= until_ms)
			return err_say(e, -ETIMEDOUT,
			    "CNI plugin %s did not end in time, and was killed", type);
		if (poll(fds, ELEMENTSOF(fds), (int)(until_ms - now) + 1) < 0 && errno != EINTR)
			return err_set(e, -errno, "wait for CNI plugin %s", type);
		if (fds[0].revents && !read_output(run, &run->out, false))
			return err_say(e, -EFBIG,
			    "CNI plugin %s printed more than %d MiB, and was killed", type,
			    NET_JSON_MAX >> 20);
		if (fds[1].revents)
			(void)read_output(run, &run->err, true);
		if (fds[2].revents && !ended) {
			ended = true;
			if (net_plugin_kill(alloc, 0, e) < 0)
				return e->code;
		}
	}
	return 0;
}

/* Writes a text of a plugin so that it is one line of printable characters. */
static void
clean_text(const char *text, size_t len, char ret[NET_MSG_SIZE])
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < NET_MSG_SIZE - 1; i++)
		ret[n++] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : ' ';
	while (n > 0 && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
}

static int
explain_failure(const struct run *run, const json_t *answer, int status, const char *command,
    const char *type, struct err *e)
{
	const char *msg = json_string_value(json_object_get(answer, "msg"));
	const char *details = json_string_value(json_object_get(answer, "details"));
	char first[NET_MSG_SIZE], more[NET_MSG_SIZE];

	clean_text(details ?: "", details ? strlen(details) : 0, more);
	if (WIFSIGNALED(status))
		return err_say(e, -EIO, "CNI plugin %s was ended by signal %d in %s", type,
		    WTERMSIG(status), command);
	if (msg)
		clean_text(msg, strlen(msg), first);
	else
		clean_text(run->errors, run->n_errors, first);
	return err_say(e, -EREMOTEIO, "CNI plugin %s failed in %s with exit code %d: %s%s%s", type,
	    command, WEXITSTATUS(status), *first ? first : "it gave no reason", *more ? ": " : "",
	    more);
}

static int
take_answer(const struct run *run, int status, const char *command, const char *type, json_t **ret,
    struct err *e)
{
	cleanup_json json_t *answer =
	    run->len > 0 ? json_loadb(run->text, run->len, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return explain_failure(run, answer, status, command, type, e);
	if (ret && run->len > 0 && !json_is_object(answer))
		return err_say(e, -EBADMSG,
		    "CNI plugin %s printed something that is no JSON object in %s", type, command);
	if (ret)
		*ret = steal_ptr(&answer);
	return 0;
}

/* Also after a failure, r: nothing of it may run when the next one is called. */
static int
end_run(struct run *run, const char *alloc, const char *type, int r, int *ret_status, struct err *e)
{
	struct err killed = { 0 };

	if (net_plugin_kill(alloc, 0, &killed) < 0 && r == 0)
		r = err_say(e, killed.code, "%s", killed.msg);
	close_p(&run->out);
	close_p(&run->err);
	close_p(&run->pidfd);
	if (run->pid > 0 && (r == 0 || killed.code == 0) && waitpid(run->pid, ret_status, 0) < 0)
		r = r < 0 ? r : err_set(e, -errno, "wait for CNI plugin %s", type);
	return r;
}

int
net_plugin_run(const char *alloc, const char *command, const char *type, const char *args,
    const json_t *input, uint64_t until_ms, json_t **ret, struct err *e)
{
	struct run run = { .pid = -1, .pidfd = -1, .out = -1, .err = -1 };
	cleanup_free char *text = json_dumps(input, JSON_COMPACT),
			  *output = mem_alloc(NET_JSON_MAX);
	cleanup_close int memfd = text ? fd_memfd_sealed("cni", text, strlen(text)) : -ENOMEM;
	cleanup_close int in = memfd < 0 ? memfd : fd_reopen(memfd, O_RDONLY);
	uint64_t limit = clock_ms() + NET_PLUGIN_MS;
	int status = 0, r;

	run.text = output;
	if (in < 0)
		return err_set(e, in, "make the input of CNI plugin %s", type);
	r = start(&run, alloc, command, args, input, in, e);
	if (r == 0)
		r = wait_end(&run, alloc, type, until_ms < limit ? until_ms : limit, e);
	r = end_run(&run, alloc, type, r, &status, e);
	return r < 0 ? r : take_answer(&run, status, command, type, ret, e);
}

int
net_plugin_describe(const char *alloc, const char *type, char ret[NET_MSG_SIZE], struct err *e)
{
	struct run run = { .pid = -1, .pidfd = -1, .out = -1, .err = -1 };
	cleanup_json json_t *config = json_pack("{s:s}", "type", type);
	cleanup_free char *output = mem_alloc(NET_JSON_MAX);
	cleanup_close int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int status = -1, r;

	run.text = output;
	r = start(&run, alloc, NULL, "", config, in, e);
	if (r == 0)
		r = wait_end(&run, alloc, type, clock_ms() + DESCRIBE_MS, e);
	if ((r = end_run(&run, alloc, type, r, &status, e)) < 0)
		return r;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return -EREMOTEIO;
	if (run.n_errors > 0)
		clean_text(run.errors, run.n_errors, ret);
	else
		clean_text(run.text, run.len, ret);
	return 0;
}
