// SPDX-License-Identifier: Apache-2.0
/* proc.c: starts a process and runs its request loop. Runs in: supervisor and all helpers. */
#include "common/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/privs.h"

enum arg_kind { ARG_STRING, ARG_INSTANCE, ARG_NUMBER, ARG_FLAG };

static const struct arg {
	const char *word;
	enum arg_kind kind;
	size_t offset;
} known_args[] = {
#define ARG(kind, word, field)                                                                     \
	{                                                                                          \
		word, kind, offsetof(struct proc_args, field)                                      \
	}
	ARG(ARG_INSTANCE, "--instance=", instance),
	ARG(ARG_STRING, "--data-dir=", data_dir),
	ARG(ARG_STRING, "--runtime-dir=", runtime_dir),
	ARG(ARG_STRING, "--cgroup=", cgroup),
	ARG(ARG_STRING, "--log-level=", log_level),
	ARG(ARG_NUMBER, "--uid=", uid),
	ARG(ARG_NUMBER, "--gid=", gid),
	ARG(ARG_NUMBER, "--drover-gid=", drover_gid),
	ARG(ARG_NUMBER, "--executor-uid=", executor_uid),
	ARG(ARG_NUMBER, "--executor-gid=", executor_gid),
	ARG(ARG_NUMBER, "--agent-uid-0=", agent_uids[0]),
	ARG(ARG_NUMBER, "--agent-uid-1=", agent_uids[1]),
	ARG(ARG_NUMBER, "--agent-uid-2=", agent_uids[2]),
	ARG(ARG_NUMBER, "--agent-uid-3=", agent_uids[3]),
	ARG(ARG_NUMBER, "--agent-uid-4=", agent_uids[4]),
	ARG(ARG_NUMBER, "--agent-uid-5=", agent_uids[5]),
	ARG(ARG_NUMBER, "--agent-uid-6=", agent_uids[6]),
	ARG(ARG_NUMBER, "--agent-uid-7=", agent_uids[7]),
	ARG(ARG_NUMBER, "--agent-uid-8=", agent_uids[8]),
	ARG(ARG_NUMBER, "--agent-uid-9=", agent_uids[9]),
	ARG(ARG_NUMBER, "--agent-uid-10=", agent_uids[10]),
	ARG(ARG_NUMBER, "--generation=", generation),
	ARG(ARG_FLAG, "--dev", dev),
#undef ARG
};

/* Returns false if value is invalid for this kind. */
static bool
set_arg(struct proc_args *args, const struct arg *a, const char *value)
{
	char *at = (char *)args + a->offset, *end;
	unsigned long n;

	switch (a->kind) {
	case ARG_STRING:
		memcpy(at, &value, sizeof value);
		return true;
	case ARG_INSTANCE:
		memcpy(at, value, strnlen(value, sizeof args->instance - 1));
		return strlen(value) < sizeof args->instance;
	case ARG_NUMBER:
		errno = 0;
		n = strtoul(value, &end, 10);
		*(uint32_t *)(void *)at = (uint32_t)n;
		return !errno && end != value && !*end && n < UINT32_MAX;
	case ARG_FLAG:
		*(bool *)at = true;
		return value[0] == '\0';
	}
	return false;
}

static int
parse_one(const char *word, struct proc_args *args, struct err *e)
{
	for (const struct arg *a = known_args; a < known_args + ELEMENTSOF(known_args); a++)
		if (strncmp(word, a->word, strlen(a->word)) == 0 &&
		    set_arg(args, a, word + strlen(a->word)))
			return 0;
	return err_say(e, -EINVAL, "argument '%s' is unknown or has an invalid value", word);
}

int
proc_args_parse(int argc, char **argv, struct proc_args *ret, struct err *e)
{
	struct proc_args args = { .log_level = "info" };

	(void)strcpy(args.build, BUILD_ID);
	for (int i = 1; i < argc; i++) {
		int r = parse_one(argv[i], &args, e);

		if (r < 0)
			return r;
	}
	if (!args.data_dir || args.data_dir[0] != '/' || !args.runtime_dir || !args.cgroup ||
	    args.instance[0] == '\0')
		return err_say(e, -EINVAL,
		    "this program is started by drover-launcher; run `drover agent` or see "
		    "drover(1)");
	*ret = args;
	return 0;
}

static struct privs
privs_of(const struct proc_spec *spec, const struct proc_args *args)
{
	return (struct privs){
		.uid = spec->stays_root ? 0 : args->uid,
		.gid = spec->stays_root ? 0 : args->gid,
		.caps = spec->caps,
		.inheritable = spec->caps_of_children ? spec->caps : 0,
		.ambient = spec->caps_of_children ? spec->caps : 0,
		.bounding = spec->keep_bounding      ? PRIVS_KEEP_BOUNDING
			    : spec->caps_of_children ? spec->caps
						     : 0,
		.lock_securebits = spec->lock_securebits,
		.no_new_privs = spec->no_new_privs,
		.dies_with_parent = true,
		.filter = spec->filter,
	};
}

static int
drop(const struct proc_spec *spec, const struct proc_args *args, struct err *e)
{
	const struct privs p = privs_of(spec, args);

	if (!spec->stays_root && (args->uid == 0 || args->gid == 0))
		return err_say(
		    e, -EPERM, "%s must not run as root: --uid and --gid are missing", spec->name);
	return privs_drop(&p, e);
}

int
proc_answer_hello(const struct proc_spec *spec, const struct ipc_packet *p, struct err *e)
{
	const struct ipc_hello_req *hello = p->msg;
	struct ipc_hello_rep rep = { .build = BUILD_ID, .pid = (uint32_t)getpid() };

	if (strcmp(hello->build, rep.build) != 0)
		return err_say(e, -EPROTO,
		    "the supervisor is build %s, but this process is build %s", hello->build,
		    rep.build);
	(void)IPC_TEXT_SET(rep.name, spec->name);
	return ipc_send(
	    FD_IPC, spec->peer, IPC_SUPERVISOR, IPC_HELLO_REP, p->serial, &rep, NULL, 0, 0, e);
}

int
proc_answer(const struct proc_spec *spec, unsigned type, uint32_t serial, int r, const void *rep,
    int fd, struct err *why, struct err *e)
{
	const struct ipc_msg_info *info = ipc_msg_info(type + 1);
	struct ipc_error_rep error;

	if (r >= 0 && (info->n_fds == 0 || fd >= 0))
		return ipc_send(FD_IPC, spec->peer, IPC_SUPERVISOR, type + 1, serial, rep, &fd,
		    info->n_fds, 0, e);
	if (why->code >= 0)
		(void)err_set(why, r < 0 ? r : -EIO, "%s", ipc_msg_info(type)->name);
	/* These errors mean that something (a plugin's socket, for example) does not exist yet and
	 * the requester will retry: no warning is needed. */
	log_print(why->code == -ENOENT || why->code == -ECONNREFUSED || why->code == -EAGAIN
		      ? LOG_LEVEL_DEBUG
		      : LOG_LEVEL_WARN,
	    "%s", why->msg);
	error.code = why->code;
	(void)IPC_TEXT_SET(error.text, why->msg);
	return ipc_send(
	    FD_IPC, spec->peer, IPC_SUPERVISOR, IPC_ERROR_REP, serial, &error, NULL, 0, 0, e);
}

/* Handles one request and sends the reply or the error. */
static int
dispatch(const struct proc_spec *spec, struct ipc_packet *p, struct err *e)
{
	_Alignas(8) uint8_t rep[PROC_REP_MAX] = { 0 };
	cleanup_close int fd = -1;
	struct err why = { 0 };
	int r;

#define IPC_RECORD_MSG(name, no, from, to, fds, deadline_ms, record)                               \
	_Static_assert(IPC_##from == IPC_SUPERVISOR || sizeof(struct record) <= sizeof rep, #name);
#include "proto/ipc_msgs.def"
	(void)alarm(ipc_msg_info(p->type)->deadline_ms / 1000 + 2);
	r = spec->handle(spec->state, p, rep, &fd, &why);
	(void)alarm(0);
	if (r == PROC_LATER)
		return 0;
	return proc_answer(spec, p->type, p->serial, r, rep, fd, &why, e);
}

/*
 * Keeps the flock on <data>/lock as long as this process's address space exists: a mapping holds
 * the open file. The descriptor is replaced, so that an attacker in this process can neither unlock
 * it nor pass it to a process that outlives the agent. Children of fork() do not inherit the
 * mapping.
 */
static int
hold_lock(struct err *e)
{
	struct stat st;
	void *map;

	if (fstat(FD_LOCK, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	map = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE, FD_LOCK, 0);
	if (map == MAP_FAILED || madvise(map, 1, MADV_DONTFORK) < 0 ||
	    dup3(STDIN_FILENO, FD_LOCK, O_CLOEXEC) < 0)
		return err_set(e, -errno, "keep the lock of the data directory");
	return 0;
}

static void
on_signal(int signo)
{
	(void)signo; /* exists only to interrupt ppoll() */
}

/* Waits for a request, the end of one of the two sockets, SIGCHLD, or timeout_ms (-1: no timeout).
 * Returns 1 for a request, 0 for an end, -EINTR otherwise, or another -errno. */
static int
wait_request(const sigset_t *mask, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = FD_LINK, .events = POLLIN },
		{ .fd = FD_IPC, .events = POLLIN } };
	struct timespec ts = { .tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000L };
	int n = ppoll(fds, ELEMENTSOF(fds), timeout_ms < 0 ? NULL : &ts, mask);

	if (n <= 0)
		return n < 0 ? -errno : -EINTR;
	if (fds[0].revents) /* nothing is ever sent on a helper's link: any event is its end */
		return 0;
	return 1;
}

static int
request_loop(const struct proc_spec *spec)
{
	static struct ipc_packet packet;
	sigset_t block, mask;
	struct err e = { 0 };
	int r;

	(void)sigemptyset(&block);
	(void)sigaddset(&block, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &block, &mask);
	(void)sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	/*
	 * A stop of the systemd unit sends SIGTERM to all processes at once. The request that is
	 * being handled must still be finished; the process ends when its sockets are closed. A
	 * handler and not SIG_IGN, which would be inherited across exec.
	 */
	(void)sigaction(
	    SIGTERM, &(struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESTART }, NULL);
	for (;;) {
		if (spec->between)
			spec->between(spec->state);
		r = wait_request(&mask, spec->timeout_ms ? spec->timeout_ms(spec->state) : -1);
		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0;
		r = ipc_recv(FD_IPC, spec->peer, IPC_SUPERVISOR, &packet, 0, &e);
		if (r == 0 || r == -ECONNRESET)
			return 0;
		if (r > 0) {
			r = packet.type == IPC_HELLO_REQ ? proc_answer_hello(spec, &packet, &e)
							 : dispatch(spec, &packet, &e);
			ipc_packet_done(&packet);
		}
		if (r == -EPIPE || r == -ECONNRESET)
			return 0;
		if (r < 0) {
			log_error("%s", e.msg);
			return 1;
		}
	}
}

/* Prints one line for the process and one for its children, from its constant; tools/privsep.sh
 * makes PRIVSEP.md's table of them. */
static void
describe(const struct proc_spec *spec)
{
	const struct privs p = privs_of(spec, &(struct proc_args){ .uid = 1 });

	privs_describe(&p, spec->name, spec->own_namespace ? "mapped" : p.uid ? "own" : "0", false);
	if (spec->child)
		privs_describe(&spec->child->privs, spec->child->name, spec->child->user,
		    spec->filter != NULL);
}

int
proc_main(const struct proc_spec *spec, int argc, char **argv)
{
	struct proc_args args;
	struct err e = { 0 };
	int level;

	if (argc == 2 && strcmp(argv[1], "--describe") == 0) {
		describe(spec);
		return 0;
	}
	crash_init();
	ipc_use_codec(spec->codec);
	log_init(spec->name, LOG_LEVEL_INFO);
	if (proc_args_parse(argc, argv, &args, &e) < 0) {
		log_error("%s", e.msg);
		return 2;
	}
	level = log_level_parse(args.log_level);
	if (level > 0)
		log_init(spec->name, (enum log_level)level);
	for (int fd = FD_LINK; fd <= FD_SUP_LAST; fd++)
		(void)fd_set_cloexec(fd, true);
	log_watch(FD_LOG, FD_LOG_LEVEL);
	/* After execveat() with a descriptor ps would show the descriptor's number as name. */
	(void)fd_write_file(AT_FDCWD, "/proc/self/comm", argv[0]);
	(void)umask(022);
	(void)signal(SIGPIPE, SIG_IGN);
	if (hold_lock(&e) < 0 || (spec->init && spec->init(spec->state, &args, &e) < 0) ||
	    drop(spec, &args, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	return spec->run ? spec->run(spec->state, &args) : request_loop(spec);
}
