// SPDX-License-Identifier: Apache-2.0
/*
 * cli_var_lock.c: drover var lock: runs a command while it holds the lock of a variable. The lock
 * is renewed meanwhile; when it is lost, the command and all processes of its group are ended,
 * because another may hold it then. Runs in: cli.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_var.h"
#include "cli/cli_verbs.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"

#define TTL_DEFAULT_MS 15000
#define RETRY_MS       1000 /* after a renewal that got no answer */
#define END_MS         5000 /* from SIGTERM to SIGKILL, when the lock is lost */
#define NOT_FOUND      127  /* exit code, as of a shell */

static struct {
	uint64_t ttl_ms, delay_ms, backoff_ms;
	int64_t max_retry;
	bool early_return, shell;
} options = { .max_retry = 5, .shell = true };

const struct cli_flag cli_var_lock_flags[] = {
	{ "backoff", CLI_FLAG_DURATION, &options.backoff_ms, "TIME",
	    "time between attempts to get the lock (1.1 times the TTL)" },
	{ "delay", CLI_FLAG_DURATION, &options.delay_ms, "TIME",
	    "nobody gets the lock for this time after it was not renewed (15s)" },
	{ "early-return", CLI_FLAG_BOOL, &options.early_return, NULL,
	    "end if another holds the lock" },
	{ "max-retry", CLI_FLAG_NUMBER, &options.max_retry, "N",
	    "repeat a renewal that gets no answer as often as this (5)" },
	{ "shell", CLI_FLAG_BOOL, &options.shell, NULL,
	    "run the words as a line of $SHELL, or /bin/sh; -shell=false: as a command" },
	{ "ttl", CLI_FLAG_DURATION, &options.ttl_ms, "TIME",
	    "the lock is kept at least this long after each renewal, 10s to 24h (15s)" },
	{ 0 },
};

/* --- the lock --- */

struct holder {
	struct cli *cli;
	struct variable var; /* with the lock that it has */
	uint64_t ttl_ms, renew_at_ms, valid_until_ms;
	int64_t failures; /* of the renewal, one after the other */
};

static void
say(const struct cli *cli, const char *text)
{
	if (cli->verbose)
		(void)fprintf(stderr, "drover: %s\n", text);
}

/* Sends a request about the lock. The variable has only its name and the lock's id in it, unless
 * `whole`. The answer replaces *ret. */
static int
send_lock(struct holder *h, const char *operation, bool whole, struct variable *ret, struct err *e)
{
	cleanup_free char *target = cli_var_target(&h->var, operation);
	cleanup_done(variable) struct variable named;

	variable_init(&named);
	if (!whole) {
		named.lock = variable_lock_new();
		str_set(&named.lock->id, h->var.lock->id);
	}
	return cli_var_send(h->cli, "PUT", target, whole ? &h->var : &named, ret, e);
}

static void
note_renewed(struct holder *h, uint64_t asked_ms)
{
	h->renew_at_ms = asked_ms + h->ttl_ms * 7 / 10;
	h->valid_until_ms = asked_ms + h->ttl_ms;
	h->failures = 0;
}

/* Reads the items that the variable has, if it is there and may be read. */
static void
read_items(struct holder *h, struct variable *ret)
{
	cleanup_free char *target = cli_var_target(&h->var, NULL);
	struct err ignored;

	if (h->var.items.n == 0)
		(void)cli_var_send(h->cli, "GET", target, NULL, ret, &ignored);
}

/* Nomad's servers delete the items of a variable that is locked without items. Brings back those
 * that it had. */
static int
keep_items(struct holder *h, struct variable *before, const struct variable *locked, struct err *e)
{
	cleanup_free char *target = cli_var_target(&h->var, NULL);

	if (before->items.n == 0 || locked->items.n > 0)
		return 0;
	variable_lock_free(before->lock);
	before->lock = variable_lock_new();
	str_set(&before->lock->id, h->var.lock->id);
	return cli_var_send(h->cli, "PUT", target, before, NULL, e);
}

/* Returns 1 with the lock, 0 if another holds it and -early-return was given, or -errno. */
static int
acquire_lock(struct holder *h, struct err *e)
{
	uint64_t wait_ms = options.backoff_ms ?: h->ttl_ms * 11 / 10;
	cleanup_done(variable) struct variable before, got;
	struct err ignored;
	uint64_t asked_ms;
	int r;

	variable_init(&before);
	variable_init(&got);
	for (;;) {
		read_items(h, &before);
		asked_ms = clock_ms();
		r = send_lock(h, "lock-acquire", true, &got, e);
		if (r != -EEXIST)
			break;
		if (options.early_return)
			return 0;
		say(h->cli, "another holds the lock; waiting");
		cli_sleep_ms((unsigned)wait_ms);
	}
	if (r < 0)
		return r;
	if (!got.lock || !got.lock->id)
		return err_say(e, -EPROTO, "the answer has no lock: servers know locks since 1.7");
	variable_lock_free(h->var.lock);
	h->var.lock = steal_ptr(&got.lock);
	note_renewed(h, asked_ms);
	r = keep_items(h, &before, &got, e);
	if (r == 0)
		return 1;
	(void)send_lock(h, "lock-release", false, NULL, &ignored);
	return r;
}

/* Returns 0; -EEXIST if the lock is lost. */
static int
renew_lock(struct holder *h, struct err *e)
{
	cleanup_done(variable) struct variable got;
	uint64_t asked_ms = clock_ms();
	int r;

	variable_init(&got);
	r = send_lock(h, "lock-renew", false, &got, e);
	if (r == 0) {
		note_renewed(h, asked_ms);
		return 0;
	}
	if (r == -EEXIST || h->cli->status == 409 || r == -ENOENT)
		return err_say(
		    e, -EEXIST, "the lock is lost: it was not renewed in time, or released");
	h->renew_at_ms = clock_ms() + RETRY_MS;
	if (++h->failures <= options.max_retry && h->renew_at_ms < h->valid_until_ms)
		return 0;
	return err_say(e, -EEXIST, "the lock cannot be renewed, so it is taken as lost");
}

/* --- the command --- */

static char *
join_words(int n, char **words)
{
	struct text line = { 0 };

	for (int i = 0; i < n; i++)
		text_printf(&line, "%s%s", i ? " " : "", words[i]);
	return line.text;
}

/* Makes this process group the one that the terminal, if there is one, gives its input and signals.
 */
static void
give_terminal(pid_t group)
{
	sigset_t set, mask;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &set, &mask);
	if (isatty(STDIN_FILENO))
		(void)tcsetpgrp(STDIN_FILENO, group);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void
run_command(int n, char **words, const sigset_t *mask)
{
	cleanup_free char *line = join_words(n, words);
	const char *shell = getenv("SHELL");
	const char *file = !options.shell ? words[0] : shell && *shell ? shell : "/bin/sh";

	(void)setpgid(0, 0);
	give_terminal(getpid());
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	words[n] = NULL; /* after the words that were left by the flags there are others */
	if (options.shell)
		(void)execlp(file, file, "-c", line, NULL);
	else
		(void)execvp(file, words);
	(void)fprintf(stderr, "drover: run %s: %s\n", file, strerror(errno));
	_exit(NOT_FOUND);
}

/* Waits for a signal until this time. Returns its number, 0 at that time. */
static int
wait_signal(const sigset_t *set, uint64_t until_ms)
{
	uint64_t now_ms = clock_ms(), left_ms = until_ms > now_ms ? until_ms - now_ms : 0;
	const struct timespec left = { .tv_sec = (time_t)(left_ms / 1000),
		.tv_nsec = (long)(left_ms % 1000 * 1000000) };
	int signal = sigtimedwait(set, NULL, &left);

	return signal < 0 ? 0 : signal;
}

/* Returns true, with its exit code, when the command has ended. */
static bool
has_ended(pid_t pid, int *ret_code)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return true;
}

static void
end_command(pid_t pid, const sigset_t *set)
{
	uint64_t until_ms = clock_ms() + END_MS;
	int ignored;

	(void)kill(-pid, SIGTERM);
	while (!has_ended(pid, &ignored) && clock_ms() < until_ms)
		(void)wait_signal(set, until_ms);
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* Renews the lock until the command has ended. Signals are passed on. Returns 0 with the exit code,
 * or -errno if the lock is lost. */
static int
hold_lock(struct holder *h, pid_t pid, const sigset_t *set, int *ret_code, struct err *e)
{
	int r = 0;

	while (r == 0 && !has_ended(pid, ret_code)) {
		int signal = wait_signal(set, h->renew_at_ms);

		if (signal > 0 && signal != SIGCHLD)
			(void)kill(-pid, signal);
		if (clock_ms() >= h->renew_at_ms)
			r = renew_lock(h, e);
	}
	if (r < 0)
		end_command(pid, set);
	return r;
}

static int
run_holding(struct holder *h, int n, char **words, int *ret_code, struct err *e)
{
	static const int passed[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct err ignored;
	sigset_t set, mask;
	pid_t pid;
	int r;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ELEMENTSOF(passed); i++)
		(void)sigaddset(&set, passed[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &mask);
	pid = fork();
	if (pid == 0)
		run_command(n, words, &mask);
	if (pid > 0)
		(void)setpgid(pid, pid); /* whoever of both is first */
	r = pid < 0 ? err_set(e, -errno, "run the command") : hold_lock(h, pid, &set, ret_code, e);
	give_terminal(getpgrp());
	if (r < 0)
		(void)send_lock(h, "lock-release", false, NULL, &ignored);
	else
		r = send_lock(h, "lock-release", false, NULL, e);
	return r;
}

/* --- the command line --- */

/* Reads the words before the command: a specification, or a path and perhaps a specification.
 * Returns how many these are, or -errno. */
static int
read_words(struct cli *cli, int argc, char **argv, struct variable *var, struct err *e)
{
	cleanup_free char *path = cli_var_is_file(argv[0]) ? NULL : cli_var_path(argv[0]);
	int at = path != NULL, r = cli_var_check_namespace(cli, e);

	if (r == 0 && cli_var_is_file(argv[at]))
		r = cli_var_read_spec(argv[at++], CLI_VAR_IN_JSON, var, e);
	cli_var_rename(var, cli->namespace, path);
	if (r == 0 && !str(var->path)[0])
		r = err_say(e, -EINVAL, "the specification has no Path, and the command line none");
	if (r == 0 && at == argc)
		r = err_say(e, -EINVAL, "there is no command to run");
	return r < 0 ? r : at;
}

/* The lock of the specification, changed by the flags; without an id, which the server makes. */
static void
complete_lock(struct holder *h)
{
	struct variable_lock *lock = h->var.lock ?: (h->var.lock = variable_lock_new());

	str_set(&lock->id, NULL);
	if (options.ttl_ms)
		lock->ttl = (int64_t)options.ttl_ms * NS_PER_MS;
	if (options.delay_ms)
		lock->delay = (int64_t)options.delay_ms * NS_PER_MS;
	h->ttl_ms = lock->ttl > 0 ? (uint64_t)(lock->ttl / NS_PER_MS) : TTL_DEFAULT_MS;
	/* An agent that does not answer must not keep the command running beyond its lock. */
	if (h->cli->timeout_ms > h->ttl_ms / 5)
		h->cli->timeout_ms = h->ttl_ms / 5;
}

int
cli_var_lock(struct cli *cli, int argc, char **argv)
{
	struct holder h = { .cli = cli };
	struct err e = { 0 };
	int code = CLI_OK, at, r;

	variable_init(&h.var);
	at = r = read_words(cli, argc, argv, &h.var, &e);
	if (r > 0) {
		complete_lock(&h);
		r = acquire_lock(&h, &e);
	}
	if (r == 0)
		(void)fprintf(stderr, "drover: another holds the lock of %s\n", str(h.var.path));
	if (r > 0) {
		say(cli, "the lock is acquired; the command runs");
		r = run_holding(&h, argc - at, argv + at, &code, &e);
		say(cli, "the lock is released");
	}
	variable_done(&h.var);
	return r < 0 ? cli_fail(cli, &e) : code;
}
