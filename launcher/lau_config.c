// SPDX-License-Identifier: Apache-2.0
/* lau_config.c: the configuration, read as root and parsed as nobody in a short-lived child. Runs
 * in: launcher. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/privs.h"
#include "launcher/lau_config_filter.h"
#include "launcher/launcher.h"

#define DEFAULT_DIR   "/etc/drover"
#define FILES_MAX     256
#define FILE_SIZE_MAX (1024 * 1024)
#define NOBODY        65534
#define CHILD_SECONDS 10

/* Opened as root; read and parsed after the drop. */
static struct source {
	char name[CONFIG_PATH_SIZE * 2];
	int fd;
} sources[FILES_MAX];
static size_t n_sources;

/* Whoever can change the configuration is root soon after: only root may be able to. */
static int
check(int fd, const char *name, mode_t type, struct err *e)
{
	char what[CONFIG_PATH_SIZE * 2 + 16];
	struct stat st;

	(void)snprintf(what, sizeof what, "configuration %s", name);
	if (fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s", what);
	if ((st.st_mode & S_IFMT) != type)
		return err_say(e, -EINVAL, "%s is neither a regular file nor a directory", what);
	return lau_owner_check(&st, what, e);
}

static int
open_file(int dir_fd, const char *path, const char *name, struct err *e)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct source *s = &sources[n_sources];

	if (fd < 0)
		return err_set(e, -errno, "open configuration %s", name);
	if (n_sources == FILES_MAX || strlen(name) >= sizeof s->name)
		return err_say(
		    e, -EFBIG, "configuration %s: too many files, or its name is too long", name);
	(void)strcpy(s->name, name);
	s->fd = fd;
	n_sources++;
	return check(fd, name, S_IFREG, e);
}

static int
is_config_name(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot &&
	       (strcmp(dot, ".hcl") == 0 || strcmp(dot, ".json") == 0);
}

static int
compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
open_dir(int fd, const char *path, struct err *e)
{
	struct dirent **names = NULL;
	int n, r = check(fd, path, S_IFDIR, e);

	if (r < 0)
		return r;
	n = scandirat(fd, ".", &names, is_config_name, compare_names);
	if (n < 0)
		return err_set(e, -errno, "list configuration directory %s", path);
	for (int i = 0; i < n && r == 0; i++) {
		char name[CONFIG_PATH_SIZE * 2];

		(void)snprintf(name, sizeof name, "%s/%s", path, names[i]->d_name);
		r = open_file(fd, names[i]->d_name, name, e);
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}

static int
open_path(const char *path, bool may_be_missing, struct err *e)
{
	cleanup_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		return open_dir(fd, path, e);
	if (errno == ENOENT && may_be_missing)
		return 0;
	return errno == ENOTDIR ? open_file(AT_FDCWD, path, path, e)
				: err_set(e, -errno, "open configuration %s", path);
}

static void
warn_sentence(void *arg, const char *sentence)
{
	(void)arg;
	log_warn("%s", sentence);
}

static int
parse_source(
    const struct source *s, struct agent_config *config, struct agent_policy *policy, struct err *e)
{
	static char text[FILE_SIZE_MAX + 1];
	ssize_t n = fd_read_full(s->fd, text, sizeof text);

	if (n < 0 || (size_t)n == sizeof text)
		return err_set(e, n < 0 ? (int)n : -EFBIG, "read configuration %s", s->name);
	text[n] = '\0';
	return config_parse(text, (size_t)n, s->name, config, policy, warn_sentence, NULL, e);
}

/* The child: opens, drops, parses, writes. */
static int
read_config(const struct launcher *l, int config_fd, int policy_fd, struct err *e)
{
	static struct agent_config config;
	static struct agent_policy policy;
	const struct privs nobody = {
		.uid = NOBODY, .gid = NOBODY, .no_new_privs = true, .filter = &lau_config_prog
	};
	int r = 0;

	for (size_t i = 0; i < l->n_configs && r == 0; i++)
		r = open_path(l->configs[i], false, e);
	if (l->n_configs == 0 && !l->dev)
		r = open_path(DEFAULT_DIR, true, e);
	if (r < 0)
		return r;
	config_defaults(&config, &policy, l->dev);
	r = privs_drop(&nobody, e);
	for (size_t i = 0; i < n_sources && r >= 0; i++)
		r = parse_source(&sources[i], &config, &policy, e);
	if (r < 0)
		return r;
	if ((r = fd_write_full(config_fd, &config, sizeof config)) < 0 ||
	    (r = fd_write_full(policy_fd, &policy, sizeof policy)) < 0)
		return err_set(e, r, "hand over the configuration");
	return 0;
}

/* A file system that never answers can hold a process beyond SIGKILL, and so nobody waits for
 * that: such a reader is reaped when it ends, as any child is. */
static int
wait_child(pid_t pid, struct err *e)
{
	cleanup_close int fd = pidfd_open(pid, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int status;

	if (fd < 0 || poll(&p, 1, (CHILD_SECONDS + 1) * 1000) != 1 ||
	    waitpid(pid, &status, 0) != pid) {
		(void)kill(pid, SIGKILL);
		return err_say(e, -ETIMEDOUT, "the configuration could not be read within %d s",
		    CHILD_SECONDS);
	}
	if (WIFSIGNALED(status))
		return err_say(e, -EIO, "the configuration's reader was killed by signal %d",
		    WTERMSIG(status));
	return WEXITSTATUS(status) == 0 ? 0
					: err_say(e, -EINVAL, "the configuration was not accepted");
}

static int
seal(int fd, struct err *e)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return err_set(e, -errno, "seal the configuration");
	return 0;
}

/* By name only: what is in them is for heartbeat. */
static int
open_tls_files(struct lau_config *c, struct err *e)
{
	static const char *const names[CONFIG_TLS_FILES] = { "ca_file", "cert_file", "key_file" };
	int r = 0;

	for (int i = 0; c->config->tls_rpc && i < CONFIG_TLS_FILES && r == 0; i++) {
		const char *path = c->config->tls_files[i];

		if (!path[0])
			return err_say(
			    e, -EINVAL, "tls.rpc is on, and tls.%s is not set", names[i]);
		c->tls_fds[i] = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		r = c->tls_fds[i] < 0 ? err_set(e, -errno, "open tls.%s %s", names[i], path)
				      : check(c->tls_fds[i], path, S_IFREG, e);
	}
	return r;
}

int
lau_config_read(const struct launcher *l, struct lau_config *ret, struct err *e)
{
	cleanup_close int config_fd = memfd_create("config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	cleanup_close int policy_fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct lau_config c = { 0 };
	pid_t pid;
	int r;

	if (config_fd < 0 || policy_fd < 0)
		return err_set(e, -errno, "make a memfd for the configuration");
	pid = fork();
	if (pid < 0)
		return err_set(e, -errno, "fork the configuration's reader");
	if (pid == 0) {
		(void)alarm(CHILD_SECONDS);
		r = read_config(l, config_fd, policy_fd, e);
		if (r < 0)
			log_error("%s", e->msg);
		_exit(r < 0);
	}
	r = wait_child(pid, e);
	if (r < 0 || (r = seal(config_fd, e)) < 0 || (r = seal(policy_fd, e)) < 0)
		return r;
	c.config = config_map(config_fd, e);
	c.policy = policy_map(policy_fd, e);
	if (!c.config || !c.policy || open_tls_files(&c, e) < 0) {
		lau_config_done(&c);
		return -EINVAL;
	}
	c.config_fd = steal_fd(&config_fd);
	c.policy_fd = steal_fd(&policy_fd);
	*ret = c;
	return 0;
}

void
lau_config_done(struct lau_config *c)
{
	if (c->config)
		(void)munmap((void *)(uintptr_t)c->config, sizeof *c->config);
	if (c->policy)
		(void)munmap((void *)(uintptr_t)c->policy, sizeof *c->policy);
	if (c->config_fd > 0)
		(void)close(c->config_fd);
	if (c->policy_fd > 0)
		(void)close(c->policy_fd);
	for (int i = 0; i < CONFIG_TLS_FILES; i++)
		if (c->tls_fds[i] > 0)
			(void)close(c->tls_fds[i]);
	*c = (struct lau_config){ 0 };
}
