// SPDX-License-Identifier: Apache-2.0
/* lau_config.c: reads the configuration and the files with keys that it names. A short-lived child
 * opens each file as root and reads it as nobody, so the launcher itself never waits for a file
 * system that does not answer. Runs in: launcher. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
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
#include "common/path.h"
#include "common/privs.h"
#include "launcher/lau_config_filter.h"
#include "launcher/launcher.h"

#define DEFAULT_DIR   "/etc/drover"
#define FILES_MAX     256
#define FILE_SIZE_MAX (1024 * 1024)
#define NOBODY        65534
#define CHILD_SECONDS 10
#define OUT_FD        3 /* in a child: the first of the memfds that it fills */

/* A file that was opened as root; it is read and parsed after the drop. */
static struct source {
	char name[CONFIG_PATH_SIZE * 2];
	int fd;
} sources[FILES_MAX];
static size_t n_sources;

static const struct privs nobody = {
	.uid = NOBODY, .gid = NOBODY, .no_new_privs = true, .filter = &lau_config_prog
};
static const char *const record_names[] = { "config", "policy" };
static const char *const file_names[CONFIG_FILES] = { "ca_file", "cert_file", "key_file",
	"health-ca_file", "health-cert_file", "health-key_file", "health-token_file",
	"image-auth" };

/* place is an O_PATH descriptor of the file; only regular files are opened for reading. Records the
 * resolved path in the source, because that is the one by which exec tasks could reach the file,
 * and which is masked in their root. */
static int
open_file(int place, const char *name, struct err *e)
{
	struct source *s = &sources[n_sources];
	char path[PATH_MAX] = "";
	struct stat st;

	if (n_sources == FILES_MAX || fd_path(place, path) < 0 || strlen(path) >= sizeof s->name)
		return err_say(
		    e, -EFBIG, "configuration %s: too many files, or its name is too long", name);
	if (fstat(place, &st) < 0 || !S_ISREG(st.st_mode))
		return err_say(
		    e, -EINVAL, "configuration %s is neither a regular file nor a directory", name);
	(void)strcpy(s->name, path);
	s->fd = fd_reopen(place, O_RDONLY | O_NONBLOCK);
	if (s->fd < 0)
		return err_set(e, s->fd, "open configuration %s", name);
	n_sources++;
	return 0;
}

/* Control of the configuration is control of root, so only root may be able to change it. */
static int
open_place(const char *path, struct err *e)
{
	int fd = path_open_owned(path, 0, e);

	return fd < 0 ? err_prefix(e, "configuration") : fd;
}

static int
open_dir(const char *path, struct dirent **names, int n, struct err *e)
{
	int r = 0;

	for (int i = 0; i < n && r == 0; i++) {
		cleanup_close int fd = -1;
		char name[CONFIG_PATH_SIZE * 2];

		(void)snprintf(name, sizeof name, "%s/%s", path, names[i]->d_name);
		fd = open_place(name, e);
		r = fd < 0 ? fd : open_file(fd, name, e);
	}
	return r;
}

static int
open_path(const char *path, bool may_be_missing, struct err *e)
{
	cleanup_close int fd = open_place(path, e);
	struct dirent **names = NULL;
	int n, r;

	if (fd < 0)
		return fd == -ENOENT && may_be_missing ? 0 : fd;
	n = scandirat(fd, ".", &names, config_is_name, config_compare_names);
	if (n < 0)
		return errno == ENOTDIR
			   ? open_file(fd, path, e)
			   : err_set(e, -errno, "list configuration directory %s", path);
	r = open_dir(path, names, n, e);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}

/* Each line of the text is a line of the log. */
static void
log_problem(void *arg, bool is_error, const char *text)
{
	(void)arg;
	while (*text) {
		int n = (int)strcspn(text, "\n");

		log_print(is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "%.*s", n, text);
		text += n + (text[n] == '\n');
	}
}

/* Returns the number of bytes. The text ends with a NUL and is valid until the next file is read.
 */
static ssize_t
read_source(const struct source *s, const char **ret, struct err *e)
{
	static char text[FILE_SIZE_MAX + 1];
	ssize_t n = fd_read_full(s->fd, text, sizeof text);

	if (n < 0 || (size_t)n == sizeof text)
		return err_set(e, n < 0 ? (int)n : -EFBIG, "read configuration %s", s->name);
	text[n] = '\0';
	*ret = text;
	return n;
}

static int
hand_over(int i, const void *data, size_t len, struct err *e)
{
	int r = fd_write_full(OUT_FD + i, data, len);

	return r < 0 ? err_set(e, r, "write the configuration to its memfd") : 0;
}

/* Finds the machine's LANG: the agent's own, as systemd sets it, or that of its login sessions. */
static void
read_lang(int file, char ret[CONFIG_NAME_SIZE])
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.@-";
	const char *at = getenv("LANG");
	char text[4096] = "";
	size_t len;

	if (!at && file >= 0 && fd_read_full(file, text, sizeof text - 1) > 0)
		for (at = text; at && strncmp(at, "LANG=", 5) != 0;)
			at = (at = strchr(at, '\n')) ? at + 1 : NULL;
	if (!at)
		return;
	at += text[0] ? 5 : 0;
	at += *at == '"' || *at == '\'';
	len = strspn(at, allowed);
	if (len > 0 && len < CONFIG_NAME_SIZE)
		memcpy(ret, at, len);
}

/* Runs in a child: opens the files, drops root, parses them, writes the records. */
static int
read_config(const struct launcher *l, const struct agent_config *none, struct err *e)
{
	static struct agent_config config;
	static struct agent_policy policy;
	struct config_sink sink = { .problem = log_problem };
	cleanup_close int locale = open("/etc/default/locale", O_RDONLY | O_CLOEXEC);
	const char *text;
	int r = 0;

	for (size_t i = 0; i < l->n_configs && r == 0; i++)
		r = open_path(l->configs[i], false, e);
	if (l->n_configs == 0 && !l->dev)
		r = open_path(DEFAULT_DIR, true, e);
	if (r < 0)
		return r;
	config_defaults(&config, &policy, l->dev);
	r = privs_drop(&nobody, e);
	read_lang(locale, config.lang);
	for (size_t i = 0; i < n_sources && r >= 0; i++) {
		ssize_t n = read_source(&sources[i], &text, e);

		r = n < 0 ? (int)n : 0;
		if (r == 0)
			(void)config_parse(
			    text, (size_t)n, sources[i].name, &config, &policy, &sink);
	}
	if (r < 0)
		return r;
	(void)config_check(&config, &policy, &sink);
	if (sink.n_errors > 0)
		return err_say(e, -EINVAL, "the configuration has %u error%s", sink.n_errors,
		    sink.n_errors == 1 ? "" : "s");
	if ((r = hand_over(0, &config, sizeof config, e)) < 0)
		return r;
	return hand_over(1, &policy, sizeof policy, e);
}

/* Returns the files that any process gets. */
static uint32_t
all_files(const struct agent_config *config)
{
	uint32_t files = 0;

	for (int i = 0; i < CONFIG_PROCESSES; i++)
		files |= config->files_of[i];
	return files;
}

/* Runs in a second child: copies the files that unprivileged processes get. */
static int
read_files(const struct launcher *l, const struct agent_config *config, struct err *e)
{
	uint32_t files = all_files(config);
	const char *text;
	int r = 0;

	for (int i = 0; i < CONFIG_FILES && r == 0; i++) {
		const char *path = config->files[i];
		cleanup_close int fd = -1;

		if (!(files >> i & 1))
			continue;
		fd = open_place(path, e);
		r = fd < 0 ? fd : open_file(fd, path, e);
	}
	if (r == 0)
		r = privs_drop(&nobody, e);
	for (int i = 0, k = 0; i < CONFIG_FILES && r >= 0; i++) {
		ssize_t n = files >> i & 1 ? read_source(&sources[k++], &text, e) : 0;

		r = n <= 0 ? (int)n : hand_over(i, text, (size_t)n, e);
	}
	return r;
}

/* A file system that never answers can hold a process even after SIGKILL, so the launcher does not
 * wait for such a reader; it is reaped when it ends, as any child. */
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

/* Makes n memfds, lets fn fill them in a child, and seals them. The caller closes them, also after
 * a failure. */
static int
ask_child(int (*fn)(const struct launcher *l, const struct agent_config *config, struct err *e),
    const struct launcher *l, const struct agent_config *config, const char *const *names,
    int *ret_fds, int n, struct err *e)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	pid_t pid;
	int r = 0;

	for (int i = 0; i < n; i++)
		ret_fds[i] = memfd_create(names[i], MFD_CLOEXEC | MFD_ALLOW_SEALING);
	pid = fork();
	if (pid == 0) {
		(void)alarm(CHILD_SECONDS);
		/* The child may hang for ever, so it must not keep the lock or a socket open. */
		r = fd_pack(ret_fds, (size_t)n, OUT_FD);
		r = r < 0 ? err_set(e, r, "make memfds for the configuration") : fn(l, config, e);
		if (r < 0)
			log_error("%s", e->msg);
		_exit(r < 0);
	}
	r = pid < 0 ? err_set(e, -errno, "fork the configuration's reader") : wait_child(pid, e);
	for (int i = 0; i < n && r >= 0; i++)
		if (fcntl(ret_fds[i], F_ADD_SEALS, seals) < 0)
			r = err_set(e, -errno, "seal the configuration");
	return r;
}

int
lau_config_read(const struct launcher *l, struct lau_config *ret, struct err *e)
{
	struct lau_config c = { 0 };
	int fds[2], r = ask_child(read_config, l, NULL, record_names, fds, 2, e);

	c.config_fd = fds[0];
	c.policy_fd = fds[1];
	if (r >= 0 && (!(c.config = config_map(fds[0], e)) || !(c.policy = policy_map(fds[1], e))))
		r = -EINVAL;
	if (r >= 0 && all_files(c.config) != 0)
		r = ask_child(read_files, l, c.config, file_names, c.file_fds, CONFIG_FILES, e);
	if (r < 0)
		lau_config_done(&c);
	else
		*ret = c;
	return r;
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
	for (int i = 0; i < CONFIG_FILES; i++)
		if (c->file_fds[i] > 0)
			(void)close(c->file_fds[i]);
	*c = (struct lau_config){ 0 };
}
