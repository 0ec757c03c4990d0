/* SPDX-License-Identifier: Apache-2.0 */
/* exe_start.h: the set-up of a run and the task's child. Runs in: executor: root until
 * exe_sandbox_drop() and exe_sandbox_task(). */
#ifndef DROVER_EXECUTOR_EXE_START_H
#define DROVER_EXECUTOR_EXE_START_H

#include "executor/exe.h"

/* Records the step at which the set-up failed and returns -error. */
int exe_failed(struct exe *x, enum exe_step step, int error, uint32_t detail);

/* exe_setup.c: reads the settings. Returns 0 or -errno (after exe_failed()). */
int exe_setup_read(struct exe *x);
void exe_setup_done(struct exe *x);

/* exe_spec.c: checks a whole spec and finds its single entries. Returns 0 or -EBADMSG. */
int exe_spec_read(const void *map, size_t size, struct exe_spec *ret);
/* Builds argv and the environment; the strings stay in the spec and in static memory. */
void exe_spec_words(struct exe *x);

/* exe_mounts.c: the task's mount namespace, exec driver only. */
int exe_mounts_make(struct exe *x);
/* Opens and clones the volumes of the settings, of any driver with mounts. ids: as for
 * exe_tree_set(); dir_ids: for the directories of a CSI plugin, which are private with them, else
 * shared with the machine. Returns 0 or -errno (after exe_failed()). */
int exe_volumes_clone(struct exe *x, int ids, int dir_ids);
/* Returns the clone of the volume with this number; it stays the callee's. */
int exe_volume_tree(uint32_t i);
/* Gives a plugin's socket directory to its user; for both drivers. */
int exe_plugin_dirs_give(struct exe *x);
/* exe_mounts.c: clones the machine's /dev, with all mounts in it. Returns a descriptor or -errno.
 */
int exe_dev_clone(void);
/* exe_mounts.c: makes /dev/null of the task's own /dev its stdin, stdout and stderr, until it has
 * others. Returns 0 or -errno (after exe_failed()). */
int exe_null_take(struct exe *x);

/* exe_dirs.c: opens the task's directory. Returns 0 or -errno (after exe_failed()). */
int exe_dirs_open(struct exe *x);
/* Gives the task's private directories to its user. Returns 0 or -errno (after exe_failed()). */
int exe_dirs_give(struct exe *x);

/* exe_secrets.c: mounts the task's secrets: in the namespace of an exec task, or below the
 * directory of a raw_exec task. Returns 0 or -errno (after exe_failed()). */
int exe_secrets_mount(struct exe *x);

/* exe_files.c: in the child, as the task's user, in the directory with `secrets` and `local`:
 * writes the spec's files, each by rename. Returns 0 or -errno; then the record's detail is the
 * number of the file. */
int exe_files_write(struct exe *x);
/* Writes what the spec has for it to x->resolv_conf, if that is open. Returns 0 or -errno. */
int exe_resolv_conf_write(struct exe *x);
/* Binds x->api to `secrets/api.sock` and listens. If that fails, the task starts without it. */
void exe_files_listen(struct exe *x);

/* exe_session.c: joins the task and makes stdin, stdout and stderr of the session's child. */
int exe_session_join(struct exe *x);

/* exe_terminal.c: in the child of a container: makes the terminal, of which x->ends become the
 * slave end. Returns 0 or -errno. */
int exe_terminal_make(struct exe *x);
/* In the child, as the task's user: opens the terminal of a session; becomes its controlling
 * process. Returns 0 or -errno. */
int exe_terminal_open(struct exe *x);
/* In the executor, after its drop: receives the terminal's other end from the child: for the peer
 * of a session, or to copy it to the logs. Returns 0 or -errno (after exe_failed()). */
int exe_terminal_take(struct exe *x);

/* exe_task.c: pipes, and the task's child. */
/* Makes a pipe: the task's end becomes x->ends[fd], the other end is non-blocking. Returns 0 or
 * -errno. */
int exe_pipe_make(struct exe *x, int fd, int *ret_above);
/* The task's end of stdin becomes a socket, over which its child sends the other end of a terminal.
 * Returns 0 or -errno. */
int exe_terminal_connect(struct exe *x);
/* Makes the pipes of the logs, or such a socket, and the socket of the API. */
int exe_pipes_make(struct exe *x);
int exe_task_start(struct exe *x);
/* Sets oom_score_adj of a process, a pid of the machine or "self", to that of the task. */
void exe_oom_score_set(const struct exe *x, const char *process);
/* Returns the pid of a child in the namespace of the machine, or 0. */
uint32_t exe_host_pid(int pidfd);
/* In the child: reports the failed step, as `detail << 8 | enum exe_step`, and its error. The
 * values of all calls are added up, so an error of EXE_STEP_COMMAND, which was reported before the
 * execve, has step 0. */
void exe_child_report(struct exe *x, uint32_t step, int error);

/* exe_command.c: maps and checks the spec. Returns 0 or -errno. */
int exe_spec_load(struct exe *x);
/* exe_command.c: the task's child after its drop: files, terminal, program. */
void exe_command_run(struct exe *x) __attribute__((noreturn));

/* exe_sandbox.c: all changes of privileges. */
void exe_sandbox_prepare(struct exe *x);
int exe_sandbox_enter(struct exe *x);
/* Session: joins the task's namespaces. -EPERM: they are not those of an exec task. */
int exe_sandbox_join(struct exe *x);
/* In a container's child: becomes root of its user namespace, and joins a session's. Returns 0 or
 * -errno. */
int exe_sandbox_become_inner_root(struct exe *x);
/* In the container's child: the most capabilities that its program can have. */
uint64_t exe_sandbox_bounding(void);
/* In the container's child: accesses files, and makes them, as this user; (0, 0) is root again. */
void exe_sandbox_own_files(uid_t uid, gid_t gid);
/* In the task's child: returns 0, or -errno; then the child must exit. */
int exe_sandbox_task(struct exe *x);
/* Prints the privileges that remain after exe_sandbox_drop(), for the table in PRIVSEP.md. */
void exe_sandbox_describe(void);

/* exe_health.c: what the binary does with arguments, never as root. Returns its exit code. */
int exe_health_main(int argc, char **argv);
/* The executor's own drop: chroot into the log directory, user, capabilities, filter. */
int exe_sandbox_drop(struct exe *x);

#endif
