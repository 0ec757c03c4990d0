// SPDX-License-Identifier: Apache-2.0
/*
 * check_drivers.c: starts a task with each driver, by the requests of every task: its directory,
 * its run, its output, its stop, and the removal of all that. Its program is that of
 * executor/exe_health.c. Runs in: supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/spec.h"
#include "common/utf8.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/driver_breaker.h"
#include "supervisor/driver/run.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/health/probe_tasks.h"
#include "supervisor/node/node_state.h"

#define STEP_MS        10000
#define KILL_MS        2000
#define POLL_USEC      20000
#define MEMORY_BYTES   (64u << 20)
#define LEFT_MAX       8  /* tasks that cannot be removed, before no further one is made */
#define VOLUMES_MAX    31 /* in one task, less than EXEC_MOUNTS_MAX */
#define PROGRAM        "/proc/self/exe" /* the executor */
#define USER           "nobody"
#define CONTAINER_USER "65534"         /* no image says who nobody is */
#define VOLUME_DEST    "/health-check" /* where the task has host volumes */
#define VOLUME_LINE    "volume "

struct driver_check {
	LIST_ENTRY(driver_check) link;
	struct check c;
	struct sup *sup;
	const struct driver_ops *driver;
	struct probe_task *task;
	struct run *run;
	uint64_t call;
	struct sup_timer poll;
	char *dir;           /* of its logs, below logs/ */
	size_t first_volume; /* of the node's, from which on this task has some */
	/* The names of the host volumes that are mounted, in this order. */
	char *volumes[VOLUMES_MAX];
	unsigned n_volumes;
	bool stopping, leaving;
	bool has_hung; /* a process of it hangs in the kernel, so it may never end */
};

static void start_task(struct driver_check *d);

/* --- the end --- */

static void
free_check(struct driver_check *d)
{
	LIST_REMOVE(d, link);
	child_call_cancel(d->sup, d->call);
	sup_timer_cancel(&d->poll);
	for (unsigned i = 0; i < d->n_volumes; i++)
		free(d->volumes[i]);
	free(d->dir);
	free(d);
}

/* Removes what there is; the run first. Each of these events comes back here. */
static void
clean_up(struct driver_check *d)
{
	d->leaving = true;
	child_call_cancel(d->sup, d->call);
	d->call = 0;
	sup_timer_cancel(&d->poll);
	if (d->run) {
		run_stop(d->run, SIGKILL, 0);
		probe_task_leave_run(d->task);
		return;
	}
	probe_task_leave(d->task);
	probe_task_remove(d->task);
	free_check(d);
}

static void
fail(struct driver_check *d, const char *why)
{
	check_end(&d->c, HEALTH_FAILED, "%s: %s", d->c.step, why);
	clean_up(d);
}

static void
on_late(struct check *c)
{
	struct driver_check *d = container_of(c, struct driver_check, c);

	clean_up(d);
}

static void
on_removed(void *arg, const char *why)
{
	struct driver_check *d = arg;

	if (why)
		check_end(&d->c, HEALTH_FAILED, "%s: %s", d->c.step, why);
	else
		check_end(&d->c, HEALTH_OK, NULL);
	free_check(d);
}

static void
on_expired(void *arg)
{
	struct driver_check *d = arg;

	check_end(&d->c, HEALTH_HUNG, "%s: not done after two minutes", d->c.step);
	clean_up(d);
}

/* --- its output --- */

/* A line "volume NAME: WORDS": the result of a host volume. */
static void
take_volume(struct driver_check *d, char *line)
{
	char *name = line + strlen(VOLUME_LINE), *words = strstr(line, ": ");
	cleanup_free char *component = NULL;
	bool hung;

	if (strncmp(line, VOLUME_LINE, strlen(VOLUME_LINE)) != 0 || !words)
		return;
	*words = '\0';
	words += 2;
	if (!map_get(host_volume, &node_get(d->sup)->host_volumes, name))
		return;
	component = mem_printf("host-volume/%s", name);
	hung = strcmp(words, "hung") == 0;
	check_volume_answered(d->sup, component, hung);
	d->has_hung |= hung;
	if (hung)
		check_report(d->sup, component, HEALTH_HUNG,
		    "its file system did not answer within 4 seconds");
	else if (strcmp(words, "ok") == 0)
		check_report(d->sup, component, HEALTH_OK, NULL);
	else
		check_report(d->sup, component, HEALTH_FAILED, "stat its directory: %s", words);
}

/* Returns whether the output is complete. Then *ret_failed is the sentence about what the task
 * could not do, in text, or NULL. */
static bool
read_lines(struct driver_check *d, char *text, char **ret_failed)
{
	char *save = NULL, *line;

	if (!strstr(text, "\ndone\n"))
		return false;
	line = strtok_r(text, "\n", &save);
	*ret_failed = line && strcmp(line, "ok") != 0 ? line : NULL;
	while ((line = strtok_r(NULL, "\n", &save)))
		take_volume(d, line);
	return true;
}

/* buf: for the output, of size bytes. */
static bool
read_output(struct driver_check *d, char *buf, size_t size, char **ret_failed)
{
	cleanup_free char *path = mem_printf("%s/%s.stdout.0", d->dir, probe_task_name(d->task));
	cleanup_close int fd =
	    openat(d->sup->log_dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	return read_lines(d, buf, ret_failed);
}

static void
poll_output(void *arg)
{
	struct driver_check *d = arg;
	char buf[8192], why[ERR_MSG_SIZE], *failed;

	if (!read_output(d, buf, sizeof buf, &failed)) {
		sup_timer_set(d->sup, &d->poll, CLOCK_MONOTONIC, POLL_USEC, poll_output, d);
		return;
	}
	if (failed) {
		(void)utf8_sanitize(why, sizeof why, failed, strlen(failed));
		fail(d, why);
		return;
	}
	if (d->has_hung) {
		check_end(&d->c, HEALTH_OK, NULL);
		clean_up(d);
		return;
	}
	check_step(&d->c, "stop its task", STEP_MS);
	d->stopping = true;
	run_stop(d->run, SIGTERM, KILL_MS);
}

/* --- its run --- */

static void
on_started(void *arg, const struct exe_hello *hello)
{
	struct driver_check *d = arg;

	if (d->leaving)
		return;
	check_step(&d->c, "read the output of its task", STEP_MS);
	poll_output(d);
}

static void
release(struct driver_check *d)
{
	run_release(steal_ptr(&d->run));
}

/* Returns the host volume because of which the start failed: exec-helper names the one that it
 * refuses, and an executor has its number. -1: there is none. */
static int
find_bad_volume(const struct driver_check *d, const char *sentence)
{
	int mount = run_failed_mount(d->run);

	for (unsigned i = 0; i < d->n_volumes; i++) {
		cleanup_free char *name = mem_printf("host volume \"%s\"", d->volumes[i]);

		if (mount == (int)i || strncmp(sentence, name, strlen(name)) == 0)
			return (int)i;
	}
	return -1;
}

/* The driver is judged by a start without the volume. */
static void
leave_volume_out(struct driver_check *d, unsigned i, const char *sentence)
{
	cleanup_free char *name = d->volumes[i];
	cleanup_free char *component = mem_printf("host-volume/%s", name);

	check_report(
	    d->sup, component, HEALTH_FAILED, "no task can be started with it: %s", sentence);
	d->n_volumes--;
	memmove(d->volumes + i, d->volumes + i + 1, (d->n_volumes - i) * sizeof d->volumes[0]);
}

static void
on_failed(void *arg, const char *sentence, enum run_fault fault)
{
	struct driver_check *d = arg;
	int volume = find_bad_volume(d, sentence);

	if (!d->leaving && volume >= 0) {
		leave_volume_out(d, (unsigned)volume, sentence);
		release(d);
		start_task(d);
		return;
	}
	release(d);
	if (d->leaving)
		clean_up(d);
	else
		fail(d, sentence);
}

static void
on_ended(void *arg, const struct run_end *end)
{
	struct driver_check *d = arg;
	char why[128] = "its task ended before it was stopped";

	release(d);
	if (d->leaving) {
		clean_up(d);
	} else if (!end->known) {
		fail(d, end->reason ? end->reason : "how its task ended is unknown");
	} else if (end->exit_signal || end->exit_code || !d->stopping) {
		if (end->exit_signal)
			(void)snprintf(why, sizeof why, "its task was killed by signal %d%s",
			    end->exit_signal,
			    end->flags & EXE_END_OOM ? " when memory ran out" : "");
		else if (end->exit_code)
			(void)snprintf(
			    why, sizeof why, "its task ended with exit code %d", end->exit_code);
		fail(d, why);
	} else {
		check_step(&d->c, "remove its task", STEP_MS);
		probe_task_remove(d->task);
	}
}

static const struct run_events run_events = { on_started, on_failed, on_ended };

/* --- its start --- */

/* Containers must not have every host volume. */
static bool
probes_volumes(const struct driver_ops *driver)
{
	return driver->mounts && !driver->containers;
}

/* Host volumes are checked as a task sees them, because no process of drover may reach them. */
static void
choose_host_volumes(struct driver_check *d)
{
	const struct node *node = node_get(d->sup);

	for (size_t i = d->first_volume;
	     i < node->host_volumes.n && i < d->first_volume + VOLUMES_MAX; i++) {
		const char *name = node->host_volumes.v[i].key;
		cleanup_free char *component = mem_printf("host-volume/%s", name);

		if (probes_volumes(d->driver) &&
		    strlen(name) < sizeof((struct exec_mount *)0)->name &&
		    !check_volume_waits(d->sup, component))
			d->volumes[d->n_volumes++] = mem_strdup(name);
	}
}

static void
add_host_volumes(struct driver_check *d, struct exec_task_start_req *req, struct spec_writer *spec)
{
	for (unsigned i = 0; i < d->n_volumes; i++) {
		struct exec_mount *m = &req->mounts[req->n_mounts++];
		cleanup_free char *arg = NULL;

		(void)IPC_TEXT_SET(m->name, d->volumes[i]);
		m->kind = EXEC_MOUNT_HOST_VOLUME;
		m->read_only = true;
		(void)snprintf(m->dest, sizeof m->dest, VOLUME_DEST "/%u", i);
		arg = mem_printf("%s=%s", d->volumes[i], m->dest);
		spec_add_str(spec, SPEC_ARG, arg);
	}
}

static void
fill_start(struct driver_check *d, struct exec_start *start)
{
	start->alloc = *probe_task_id(d->task);
	(void)IPC_TEXT_SET(start->task, probe_task_name(d->task));
	(void)IPC_TEXT_SET(start->user, USER);
	start->driver = (enum exec_driver)d->driver->id;
	start->memory_bytes = MEMORY_BYTES;
	start->log_max_files = 1;
	start->log_max_bytes = 1 << 20;
	start->kill_signal = SIGTERM;
	start->kill_timeout_ms = KILL_MS;
}

/* As of a task whose image is an empty directory and says which program to run, as which user. */
static int
fill_container(
    struct driver_check *d, struct exec_start *start, struct spec_writer *spec, struct err *e)
{
	cleanup_json json_t *image = json_pack("{s:[s, s, s, s], s:s}", "Entrypoint", PROGRAM,
	    "health-check", "/local", "/alloc/logs", "User", CONTAINER_USER);
	cleanup_done(task) struct task task;
	char no_name[] = "";
	const struct task_net net = { .hostname = no_name, .address = "" };

	task_init(&task);
	str_set(&task.name, probe_task_name(d->task));
	str_set(&task.driver, d->driver->name);
	task.config = json_pack("{s:s, s:s}", "image", "none", "network_mode", "none");
	return d->driver->fill(d->sup->config, &task, image, &net, start, spec, e);
}

static int
fill_program(struct driver_check *d, struct exec_task_start_req *req, struct spec_writer *spec,
    struct err *e)
{
	bool isolated = d->driver->isolates_files;

	if (d->driver->containers)
		return fill_container(d, &req->start, spec, e);
	spec_add_str(spec, SPEC_COMMAND, PROGRAM);
	spec_add_str(spec, SPEC_ARG, "health-check");
	spec_add_str(spec, SPEC_ARG, isolated ? "/local" : "local");
	spec_add_str(spec, SPEC_ARG, isolated ? "/alloc/logs" : "");
	add_host_volumes(d, req, spec);
	return 0;
}

static void
start_task(struct driver_check *d)
{
	cleanup_free struct exec_task_start_req *req = mem_zeroed(1, sizeof *req);
	const struct run_own_stop own_stop = { 0, SIGTERM, KILL_MS };
	struct spec_writer spec = { 0 };
	struct err e = { 0 };
	int fd;

	check_step(&d->c, "start its task", STEP_MS);
	fill_start(d, &req->start);
	if (fill_program(d, req, &spec, &e) < 0) {
		spec_writer_done(&spec);
		fail(d, e.msg);
		return;
	}
	fd = spec_finish(&spec);
	if (fd < 0) {
		fail(d, strerror(-fd));
		return;
	}
	d->run = run_start(
	    d->sup, probe_task_id(d->task), probe_task_name(d->task), req, fd, &run_events, d);
	run_set_own_stop(d->run, &own_stop);
}

static void
on_dirs_made(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct driver_check *d = arg;

	d->call = 0;
	if (r < 0) {
		fail(d, e->msg);
		return;
	}
	choose_host_volumes(d);
	start_task(d);
}

static void
on_planned(void *arg)
{
	struct driver_check *d = arg;
	cleanup_free struct file_alloc_dir_make_req *req = mem_zeroed(1, sizeof *req);

	check_step(&d->c, "make its directory", STEP_MS);
	req->alloc = *probe_task_id(d->task);
	req->raw_exec = !d->driver->isolates_files;
	req->n_tasks = 1;
	(void)IPC_TEXT_SET(req->tasks[0].name, probe_task_name(d->task));
	d->call = file_call_alloc_dir_make(d->sup, req, on_dirs_made, d);
}

static void
begin_task(struct sup *sup, const struct driver_ops *driver, size_t first_volume)
{
	static const struct probe_task_events events = { on_planned, on_expired, on_removed };
	struct driver_check *d = mem_new(struct driver_check);
	cleanup_free char *name = mem_printf("driver/%s", driver->name);
	char uuid[ID_UUID_SIZE];

	*d = (struct driver_check){ .sup = sup, .driver = driver, .first_volume = first_volume };
	LIST_INSERT_HEAD(&check_memory(sup)->drivers, d, link);
	check_begin(&d->c, sup, name, on_late);
	check_step(&d->c, "write the row of its task", STEP_MS);
	d->task = probe_task_plan(sup, &events, d);
	id_to_uuid(probe_task_id(d->task), uuid);
	d->dir = mem_strdup(uuid);
}

/* A task has only some of many host volumes; the worst result of several tasks counts. */
static void
check_driver(struct sup *sup, const struct driver_ops *driver)
{
	size_t volumes = probes_volumes(driver) ? node_get(sup)->host_volumes.n : 0, first = 0;

	do {
		begin_task(sup, driver, first);
		first += VOLUMES_MAX;
	} while (first < volumes);
}

/* A task needs all of these; if one is bad, its own result says so. */
static const char *
find_obstacle(struct sup *sup)
{
	static const char *const needed[] = { "disk", "state", "helper/file-helper",
		"helper/exec-helper", "helper/mount-helper" };

	for (size_t i = 0; i < ELEMENTSOF(needed); i++)
		if (!check_is_well(sup, needed[i]))
			return needed[i];
	return NULL;
}

void
check_drivers(struct sup *sup)
{
	const char *obstacle = find_obstacle(sup), *why;
	unsigned left = probe_tasks_left(sup, &why);
	struct err e = { 0 };

	for (const struct driver_ops *const *driver = drivers; *driver; driver++) {
		cleanup_free char *name = mem_printf("driver/%s", (*driver)->name);

		if (driver_usable(sup->config, *driver, &e) < 0 ||
		    ((*driver)->containers && !driver_lacks_need(sup, (*driver)->name) &&
			!driver_is_suspect(sup, (*driver)->name)))
			continue;
		if (sup->draining)
			check_report(sup, name, HEALTH_UNKNOWN, "not checked: the agent is ending");
		else if (obstacle)
			check_report(
			    sup, name, HEALTH_UNKNOWN, "not checked: a task needs %s", obstacle);
		else if (left > LEFT_MAX)
			check_report(sup, name, HEALTH_FAILED,
			    "not checked: %u tasks of earlier probes cannot be removed: %s", left,
			    why ? why : "they are being removed");
		else if (driver_check_needs(*driver, &e) < 0)
			check_report(sup, name, HEALTH_FAILED, "%s", e.msg);
		else
			check_driver(sup, *driver);
	}
}

void
check_drivers_free(struct sup *sup)
{
	struct driver_check *d;

	while ((d = LIST_FIRST(&check_memory(sup)->drivers)))
		free_check(d);
}
