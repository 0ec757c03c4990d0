/* SPDX-License-Identifier: Apache-2.0 */
/* task_event.c: makes task events with Nomad's type names, details and texts. Runs in:
 * supervisor. */
#include "model/task_event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "model/engine/table.h"

/*
 * The display message of each type: always `fixed`, or the text that the caller gave, or
 * `otherwise` if it gave none. The caller's text is also stored in `detail` and in its legacy
 * field.
 */
static const struct event_kind {
	const char *name;
	const char *fixed, *otherwise;
	const char *detail;
	size_t field; /* 1 + offset of a char *; 0 if there is none */
} kinds[EVENT_TYPES] = {
#define EVENT_FIELD(member) (1 + offsetof(struct task_event, member))
	[EVENT_RECEIVED] = { "Received", .fixed = "Task received by client" },
	[EVENT_TASK_SETUP] = { "Task Setup", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_SETUP_FAILURE] = { "Setup Failure", .otherwise = "Task setup failed",
	    .detail = "setup_error", .field = EVENT_FIELD(setup_error) },
	[EVENT_DRIVER_FAILURE] = { "Driver Failure", .otherwise = "Failed to start task",
	    .detail = "driver_error", .field = EVENT_FIELD(driver_error) },
	[EVENT_FAILED_VALIDATION] = { "Failed Validation", .otherwise = "Validation of task failed",
	    .detail = "validation_error", .field = EVENT_FIELD(validation_error) },
	[EVENT_STARTED] = { "Started", .fixed = "Task started by client" },
	[EVENT_TERMINATED] = { "Terminated", .otherwise = "", .detail = "exit_message",
	    .field = EVENT_FIELD(message) },
	[EVENT_KILLING] = { "Killing", .otherwise = "Sent interrupt", .detail = "kill_reason",
	    .field = EVENT_FIELD(kill_reason) },
	[EVENT_KILLED] = { "Killed", .otherwise = "Task successfully killed",
	    .detail = "kill_error", .field = EVENT_FIELD(kill_error) },
	[EVENT_RESTARTING] = { "Restarting", .otherwise = "", .detail = "restart_reason",
	    .field = EVENT_FIELD(restart_reason) },
	[EVENT_NOT_RESTARTING] = { "Not Restarting", .otherwise = "Task exceeded restart policy",
	    .detail = "restart_reason", .field = EVENT_FIELD(restart_reason) },
	[EVENT_RESTART_SIGNALED] = { "Restart Signaled", .otherwise = "Task signaled to restart",
	    .detail = "restart_reason", .field = EVENT_FIELD(restart_reason) },
	[EVENT_SIGNALING] = { "Signaling", .otherwise = "Task being sent a signal",
	    .detail = "task_signal_reason", .field = EVENT_FIELD(task_signal_reason) },
	[EVENT_DOWNLOADING_ARTIFACTS] = { "Downloading Artifacts",
	    .fixed = "Client is downloading artifacts" },
	[EVENT_ARTIFACT_FAILED] = { "Failed Artifact Download",
	    .otherwise = "Failed to download artifacts", .detail = "download_error",
	    .field = EVENT_FIELD(download_error) },
	[EVENT_DISK_EXCEEDED] = { "Disk Resources Exceeded", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_SIBLING_FAILED] = { "Sibling Task Failed", .otherwise = "Task's sibling failed",
	    .detail = "failed_sibling", .field = EVENT_FIELD(failed_sibling) },
	[EVENT_DRIVER_MESSAGE] = { "Driver", .otherwise = "", .detail = "driver_message",
	    .field = EVENT_FIELD(driver_message) },
	[EVENT_LEADER_DEAD] = { "Leader Task Dead", .fixed = "Leader Task in Group dead" },
	[EVENT_MAIN_DEAD] = { "Main Tasks Dead", .fixed = "Main tasks in the group died" },
	[EVENT_HOOK_FAILED] = { "Task hook failed", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_HOOK_MESSAGE] = { "Task hook message", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_RESTORE_FAILED] = { "Failed Restoring Task", .otherwise = "",
	    .detail = "kill_reason", .field = EVENT_FIELD(kill_reason) },
	[EVENT_PLUGIN_WAITS] = { "Plugin is not ready", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_PLUGIN_UNHEALTHY] = { "Plugin became unhealthy", .otherwise = "",
	    .detail = "message", .field = EVENT_FIELD(message) },
	[EVENT_PLUGIN_HEALTHY] = { "Plugin became healthy", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_RECONNECTED] = { "Reconnected", .fixed = "Client reconnected" },
	[EVENT_WAITING_SHUTDOWN_DELAY] = { "Waiting for shutdown delay", .otherwise = "" },
	[EVENT_SKIPPING_SHUTDOWN_DELAY] = { "Skipping shutdown delay", .otherwise = "" },
	[EVENT_ALLOC_UNHEALTHY] = { "Alloc Unhealthy", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
	[EVENT_TEMPLATE] = { "Template", .otherwise = "", .detail = "message",
	    .field = EVENT_FIELD(message) },
};

const char *
task_event_name(enum task_event_type type)
{
	return kinds[type].name;
}

void
task_event_detail(struct task_event *ev, const char *key, const char *value)
{
	string_map_set(&ev->details, key, value);
}

static void
set_detail_int(struct task_event *ev, const char *key, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	task_event_detail(ev, key, text);
}

/* Stores a text in its detail and in its legacy field, unless it is empty. */
static void
put_text(struct task_event *ev, const char *detail, size_t field, const char *text)
{
	if (!*str(text))
		return;
	if (field)
		str_set((char **)((char *)ev + field - 1), text);
	if (detail)
		task_event_detail(ev, detail, text);
}

/* Fills everything but the display message. */
static void
start_event(struct task_event *ev, enum task_event_type type, int64_t now_ns, const char *text)
{
	const struct event_kind *k = &kinds[type];

	task_event_init(ev);
	ev->time = now_ns;
	str_set(&ev->type, k->name);
	put_text(ev, k->detail, k->field, text);
}

void
task_event_make(struct task_event *ev, enum task_event_type type, int64_t now_ns, const char *text)
{
	const struct event_kind *k = &kinds[type];

	start_event(ev, type, now_ns, text);
	if (type == EVENT_SIBLING_FAILED && *str(text))
		str_setf(&ev->display_message, "Task's sibling \"%s\" failed", text);
	else
		str_set(&ev->display_message, k->fixed     ? k->fixed
					      : *str(text) ? text
							   : k->otherwise);
}

void
task_event_terminated(struct task_event *ev, int64_t now_ns, int exit_code, int signal,
    bool oom_killed, const char *message)
{
	struct text t = { 0 };

	start_event(ev, EVENT_TERMINATED, now_ns, message);
	ev->exit_code = exit_code;
	ev->signal = signal;
	text_printf(&t, "Exit Code: %d", exit_code);
	if (signal)
		text_printf(&t, ", Signal: %d", signal);
	if (*str(message))
		text_printf(&t, ", Exit Message: \"%s\"", message);
	ev->display_message = t.text;
	set_detail_int(ev, "exit_code", exit_code);
	set_detail_int(ev, "signal", signal);
	task_event_detail(ev, "oom_killed", oom_killed ? "true" : "false");
}

void
task_event_killing(
    struct task_event *ev, int64_t now_ns, const char *reason, int64_t kill_timeout_ns)
{
	char timeout[DURATION_SIZE];

	start_event(ev, EVENT_KILLING, now_ns, reason);
	if (kill_timeout_ns > 0) {
		ev->kill_timeout = kill_timeout_ns;
		duration_format(kill_timeout_ns, timeout);
		task_event_detail(ev, "kill_timeout", timeout);
	}
	if (*str(reason))
		str_set(&ev->display_message, reason);
	else if (kill_timeout_ns > 0)
		str_setf(&ev->display_message, "Sent interrupt. Waiting %s before force killing",
		    timeout);
	else
		str_set(&ev->display_message, kinds[EVENT_KILLING].otherwise);
}

#define REASON_WITHIN_POLICY "Restart within policy"

void
task_event_restarting(struct task_event *ev, int64_t now_ns, const char *reason, int64_t delay_ns)
{
	bool plain = !*str(reason) || !strcmp(reason, REASON_WITHIN_POLICY);
	char delay[DURATION_SIZE];

	start_event(ev, EVENT_RESTARTING, now_ns, reason);
	ev->start_delay = delay_ns;
	duration_format(delay_ns, delay);
	set_detail_int(ev, "start_delay", delay_ns);
	task_event_detail(ev, "restart_reason", reason);
	str_setf(&ev->display_message, "%s%sTask restarting in %s", plain ? "" : reason,
	    plain ? "" : " - ", delay);
}

void
task_event_signaling(struct task_event *ev, int64_t now_ns, const char *signal, const char *reason)
{
	start_event(ev, EVENT_SIGNALING, now_ns, reason);
	put_text(ev, "task_signal", EVENT_FIELD(task_signal), signal);
	if (!*str(signal))
		str_set(
		    &ev->display_message, *str(reason) ? reason : kinds[EVENT_SIGNALING].otherwise);
	else
		str_setf(&ev->display_message, "Task being sent signal %s%s%s", signal,
		    *str(reason) ? ": " : "", str(reason));
}

void
task_event_shutdown_delay(struct task_event *ev, int64_t now_ns, int64_t delay_ns, bool skipped)
{
	char delay[DURATION_SIZE];

	start_event(ev, skipped ? EVENT_SKIPPING_SHUTDOWN_DELAY : EVENT_WAITING_SHUTDOWN_DELAY,
	    now_ns, NULL);
	duration_format(delay_ns, delay);
	str_setf(&ev->display_message, "%s shutdown_delay of %s before killing the task.",
	    skipped ? "Skipping" : "Waiting for", delay);
}

void
task_event_disk_exceeded(
    struct task_event *ev, int64_t now_ns, const char *text, int64_t limit_bytes)
{
	task_event_make(ev, EVENT_DISK_EXCEEDED, now_ns, text);
	ev->disk_limit = limit_bytes;
	set_detail_int(ev, "disk_limit", limit_bytes);
}

void
task_event_set_fails(struct task_event *ev)
{
	ev->fails_task = true;
	task_event_detail(ev, "fails_task", "true");
}
