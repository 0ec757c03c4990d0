/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_alloc.c: task events, and the client status from task states. Runs in: unit tests. */
#include <string.h>

#include "common/duration.h"
#include "model/task_event.h"
#include "tests/unit/unit.h"

#define NOW 1700000000123456789

static void
assert_event(struct task_event *ev, const char *type, const char *shown)
{
	ck_assert_str_eq(ev->type, type);
	ck_assert_str_eq(str(ev->display_message), shown);
	ck_assert_int_eq(ev->time, NOW);
}

static const struct {
	enum task_event_type type;
	const char *text, *name, *shown, *detail;
} plain[] = {
	{ EVENT_RECEIVED, NULL, "Received", "Task received by client", NULL },
	{ EVENT_STARTED, NULL, "Started", "Task started by client", NULL },
	{ EVENT_TASK_SETUP, "Building Task Directory", "Task Setup", "Building Task Directory",
	    "message" },
	{ EVENT_SETUP_FAILURE, "no disk", "Setup Failure", "no disk", "setup_error" },
	{ EVENT_SETUP_FAILURE, NULL, "Setup Failure", "Task setup failed", NULL },
	{ EVENT_DRIVER_FAILURE, "x", "Driver Failure", "x", "driver_error" },
	{ EVENT_DRIVER_FAILURE, NULL, "Driver Failure", "Failed to start task", NULL },
	{ EVENT_FAILED_VALIDATION, NULL, "Failed Validation", "Validation of task failed", NULL },
	{ EVENT_FAILED_VALIDATION, "bad", "Failed Validation", "bad", "validation_error" },
	{ EVENT_KILLED, NULL, "Killed", "Task successfully killed", NULL },
	{ EVENT_KILLED, "stuck", "Killed", "stuck", "kill_error" },
	{ EVENT_NOT_RESTARTING, NULL, "Not Restarting", "Task exceeded restart policy", NULL },
	{ EVENT_NOT_RESTARTING, "Error was unrecoverable", "Not Restarting",
	    "Error was unrecoverable", "restart_reason" },
	{ EVENT_RESTART_SIGNALED, NULL, "Restart Signaled", "Task signaled to restart", NULL },
	{ EVENT_SIBLING_FAILED, "web", "Sibling Task Failed", "Task's sibling \"web\" failed",
	    "failed_sibling" },
	{ EVENT_SIBLING_FAILED, NULL, "Sibling Task Failed", "Task's sibling failed", NULL },
	{ EVENT_LEADER_DEAD, NULL, "Leader Task Dead", "Leader Task in Group dead", NULL },
	{ EVENT_MAIN_DEAD, NULL, "Main Tasks Dead", "Main tasks in the group died", NULL },
	{ EVENT_RECONNECTED, NULL, "Reconnected", "Client reconnected", NULL },
	{ EVENT_DRIVER_MESSAGE, "Downloading image", "Driver", "Downloading image",
	    "driver_message" },
	{ EVENT_HOOK_FAILED, "csi: no", "Task hook failed", "csi: no", "message" },
	{ EVENT_ARTIFACT_FAILED, NULL, "Failed Artifact Download", "Failed to download artifacts",
	    NULL },
	{ EVENT_DOWNLOADING_ARTIFACTS, NULL, "Downloading Artifacts",
	    "Client is downloading artifacts", NULL },
	{ EVENT_PLUGIN_HEALTHY, "plugin: p", "Plugin became healthy", "plugin: p", "message" },
	{ EVENT_RESTORE_FAILED, "gone", "Failed Restoring Task", "gone", "kill_reason" },
	{ EVENT_ALLOC_UNHEALTHY, "late", "Alloc Unhealthy", "late", "message" },
};

START_TEST(events_of_a_text)
{
	cleanup_done(task_event) struct task_event ev;

	task_event_make(&ev, plain[_i].type, NOW, plain[_i].text);
	assert_event(&ev, plain[_i].name, plain[_i].shown);
	if (plain[_i].detail)
		ck_assert_str_eq(string_map_get(&ev.details, plain[_i].detail), plain[_i].text);
	else
		ck_assert_uint_eq(ev.details.n, 0);
}
END_TEST

START_TEST(every_type_has_a_name)
{
	ck_assert_ptr_nonnull(task_event_name((enum task_event_type)_i));
}
END_TEST

START_TEST(terminated)
{
	static const struct {
		int code, signal;
		bool oom;
		const char *message, *shown;
	} ends[] = { { 0, 0, false, NULL, "Exit Code: 0" },
		{ 130, 2, false, NULL, "Exit Code: 130, Signal: 2" },
		{ 137, 9, true, "OOM Killed",
		    "Exit Code: 137, Signal: 9, Exit Message: \"OOM Killed\"" } };
	cleanup_done(task_event) struct task_event ev;
	char code[8];

	task_event_terminated(
	    &ev, NOW, ends[_i].code, ends[_i].signal, ends[_i].oom, ends[_i].message);
	assert_event(&ev, "Terminated", ends[_i].shown);
	(void)snprintf(code, sizeof(code), "%d", ends[_i].code);
	ck_assert_int_eq(ev.exit_code, ends[_i].code);
	ck_assert_str_eq(string_map_get(&ev.details, "exit_code"), code);
	ck_assert_str_eq(
	    string_map_get(&ev.details, "oom_killed"), ends[_i].oom ? "true" : "false");
	ck_assert_int_eq(
	    string_map_get(&ev.details, "exit_message") != NULL, ends[_i].message != NULL);
}
END_TEST

START_TEST(killing)
{
	cleanup_done(task_event) struct task_event ev;

	if (_i == 0) {
		task_event_killing(&ev, NOW, NULL, 90 * NS_PER_S);
		assert_event(&ev, "Killing", "Sent interrupt. Waiting 1m30s before force killing");
		ck_assert_str_eq(string_map_get(&ev.details, "kill_timeout"), "1m30s");
		ck_assert_int_eq(ev.kill_timeout, 90 * NS_PER_S);
	} else if (_i == 1) {
		task_event_killing(&ev, NOW, "lease over", 5 * NS_PER_S);
		assert_event(&ev, "Killing", "lease over");
		ck_assert_str_eq(string_map_get(&ev.details, "kill_reason"), "lease over");
		ck_assert_str_eq(string_map_get(&ev.details, "kill_timeout"), "5s");
	} else {
		task_event_killing(&ev, NOW, NULL, 0);
		assert_event(&ev, "Killing", "Sent interrupt");
		ck_assert_uint_eq(ev.details.n, 0);
	}
	task_event_set_fails(&ev);
	ck_assert(ev.fails_task);
	ck_assert_str_eq(string_map_get(&ev.details, "fails_task"), "true");
}
END_TEST

START_TEST(restarting)
{
	static const struct {
		const char *reason, *shown;
	} again[] = { { "", "Task restarting in 15.25s" },
		{ "Restart within policy", "Task restarting in 15.25s" },
		{ "Exceeded allowed attempts, applying a delay",
		    "Exceeded allowed attempts, applying a delay - Task restarting in 15.25s" } };
	cleanup_done(task_event) struct task_event ev;

	task_event_restarting(&ev, NOW, again[_i].reason, 15250 * NS_PER_MS);
	assert_event(&ev, "Restarting", again[_i].shown);
	ck_assert_str_eq(string_map_get(&ev.details, "start_delay"), "15250000000");
	ck_assert_str_eq(string_map_get(&ev.details, "restart_reason"), again[_i].reason);
	ck_assert_int_eq(ev.start_delay, 15250 * NS_PER_MS);
}
END_TEST

START_TEST(signaling)
{
	static const struct {
		const char *signal, *reason, *shown;
	} signals[] = { { NULL, NULL, "Task being sent a signal" }, { NULL, "why", "why" },
		{ "SIGHUP", NULL, "Task being sent signal SIGHUP" },
		{ "SIGHUP", "why", "Task being sent signal SIGHUP: why" } };
	cleanup_done(task_event) struct task_event ev;

	task_event_signaling(&ev, NOW, signals[_i].signal, signals[_i].reason);
	assert_event(&ev, "Signaling", signals[_i].shown);
}
END_TEST

START_TEST(delays_and_disk)
{
	cleanup_done(task_event) struct task_event ev;

	task_event_shutdown_delay(&ev, NOW, 5 * NS_PER_S, false);
	assert_event(&ev, "Waiting for shutdown delay",
	    "Waiting for shutdown_delay of 5s before killing the task.");
	task_event_done(&ev);
	task_event_shutdown_delay(&ev, NOW, 5 * NS_PER_S, true);
	assert_event(&ev, "Skipping shutdown delay",
	    "Skipping shutdown_delay of 5s before killing the task.");
	task_event_done(&ev);
	task_event_disk_exceeded(&ev, NOW, "full", 300);
	assert_event(&ev, "Disk Resources Exceeded", "full");
	ck_assert_str_eq(string_map_get(&ev.details, "disk_limit"), "300");
}
END_TEST

START_TEST(ten_events_are_kept)
{
	cleanup_done(task_state) struct task_state s;
	struct task_event ev;
	char text[16];
	int i;

	task_state_init(&s);
	for (i = 0; i < 13; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		task_event_make(&ev, EVENT_HOOK_MESSAGE, NOW, text);
		task_state_add_event(&s, &ev);
		ck_assert_ptr_null(ev.type);
	}
	ck_assert_uint_eq(s.events.n, 10);
	ck_assert_str_eq(s.events.v[0].message, "3");
	ck_assert_str_eq(s.events.v[9].message, "12");
}
END_TEST

/* One letter per task: - no state, p pending, r running, d dead, f dead and failed. */
static const struct {
	const char *tasks;
	enum client_status status;
	const char *description;
} statuses[] = {
	{ "", CLIENT_NONE, "" },
	{ "-", CLIENT_PENDING, "No tasks have started" },
	{ "pd", CLIENT_PENDING, "No tasks have started" },
	{ "rp", CLIENT_RUNNING, "Tasks are running" },
	{ "d-", CLIENT_PENDING, "No tasks have started" },
	{ "dr", CLIENT_RUNNING, "Tasks are running" },
	{ "rf", CLIENT_FAILED, "Failed tasks" },
	{ "fp", CLIENT_FAILED, "Failed tasks" },
	{ "dd", CLIENT_COMPLETE, "All tasks have completed" },
};

START_TEST(tasks_make_the_status)
{
	cleanup_done(task_group) struct task_group group;
	cleanup_done(alloc) struct alloc a;
	const char *description = NULL, *c;
	struct task_state *s;
	char name[2] = "a";

	task_group_init(&group);
	alloc_init(&a);
	for (c = statuses[_i].tasks; *c; c++, name[0]++) {
		str_set(&list_add(task, &group.tasks)->name, name);
		if (*c == '-')
			continue;
		s = map_put(task_state, &a.task_states, name);
		s->state = *c == 'p'   ? TASK_STATE_PENDING
			   : *c == 'r' ? TASK_STATE_RUNNING
				       : TASK_STATE_DEAD;
		s->failed = *c == 'f';
	}
	ck_assert_int_eq(alloc_client_status(&a, &group, &description), statuses[_i].status);
	ck_assert_str_eq(description, statuses[_i].description);
}
END_TEST

START_TEST(terminal_or_not)
{
	struct alloc a = { .desired_status = DESIRED_RUN, .client_status = CLIENT_RUNNING };

	ck_assert(!alloc_terminal(&a));
	a.desired_status = DESIRED_STOP;
	ck_assert(alloc_terminal(&a) && alloc_server_terminal(&a) && !alloc_client_terminal(&a));
	a.desired_status = DESIRED_RUN;
	a.client_status = CLIENT_LOST;
	ck_assert(alloc_terminal(&a) && alloc_client_terminal(&a));
	a.client_status = CLIENT_UNKNOWN;
	ck_assert(!alloc_terminal(&a));
}
END_TEST

START_TEST(index_of_a_name)
{
	ck_assert_int_eq(alloc_name_index("job.group[0]"), 0);
	ck_assert_int_eq(alloc_name_index("a[1].b[12]"), 12);
	ck_assert_int_eq(alloc_name_index("job.group"), -1);
	ck_assert_int_eq(alloc_name_index("job.group[-1]"), -1);
	ck_assert_int_eq(alloc_name_index("job.group[1]x"), -1);
	ck_assert_int_eq(alloc_name_index("job.group[99999999999999999999]"), -1);
	ck_assert_int_eq(alloc_name_index(NULL), -1);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, events_of_a_text, 0, ELEMENTSOF(plain));
	tcase_add_loop_test(tc, every_type_has_a_name, 0, EVENT_TYPES);
	tcase_add_loop_test(tc, terminated, 0, 3);
	tcase_add_loop_test(tc, killing, 0, 3);
	tcase_add_loop_test(tc, restarting, 0, 3);
	tcase_add_loop_test(tc, signaling, 0, 4);
	tcase_add_test(tc, delays_and_disk);
	tcase_add_test(tc, ten_events_are_kept);
	tcase_add_loop_test(tc, tasks_make_the_status, 0, ELEMENTSOF(statuses));
	tcase_add_test(tc, terminal_or_not);
	tcase_add_test(tc, index_of_a_name);
}

int
main(void)
{
	return unit_run("model_alloc", add);
}
