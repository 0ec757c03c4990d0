// SPDX-License-Identifier: Apache-2.0
/* cli_node_departure.c: drover node land, node retire and node rejoin. Runs in: cli. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/duration.h"
#include "common/mem.h"

#define DATA_DIR_DEFAULT "/var/lib/drover"
#define WAIT_MS          (365ull * 24 * 3600 * 1000) /* the agent answers when it ends */

static struct {
	bool cancel, detach, force, no_deadline, yes;
	uint64_t deadline_ms; /* UINT64_MAX: the agent's */
	const char *data_dir;
} options = { .deadline_ms = UINT64_MAX, .data_dir = DATA_DIR_DEFAULT };

#define DEPARTURE_FLAGS                                                                            \
	{ "cancel", CLI_FLAG_BOOL, &options.cancel, NULL,                                          \
		"end it: the node takes allocations again" },                                      \
	    { "deadline", CLI_FLAG_DURATION, &options.deadline_ms, "TIME",                         \
		    "how long to wait for batch jobs to finish (that of drain_on_shutdown, or "    \
		    "1h)" },                                                                       \
	    { "detach", CLI_FLAG_BOOL, &options.detach, NULL,                                      \
		    "return as soon as the request is accepted" },                                 \
	    { "force", CLI_FLAG_BOOL, &options.force, NULL, "stop all allocations at once" },      \
	    { "no-deadline", CLI_FLAG_BOOL, &options.no_deadline, NULL,                            \
		    "wait indefinitely for batch jobs to finish" },                                \
	{                                                                                          \
		"yes", CLI_FLAG_BOOL, &options.yes, NULL, "do not ask for confirmation"            \
	}

const struct cli_flag cli_node_land_flags[] = { DEPARTURE_FLAGS, { 0 } };
const struct cli_flag cli_node_retire_flags[] = { DEPARTURE_FLAGS, { 0 } };
const struct cli_flag cli_node_rejoin_flags[] = {
	{ "data-dir", CLI_FLAG_STRING, &options.data_dir, "DIR",
	    "the agent's data directory (" DATA_DIR_DEFAULT ")" },
	{ 0 },
};

static int
check_options(const char *what, struct err *e)
{
	bool waits = options.deadline_ms != UINT64_MAX;
	int agreed;

	if (options.force + options.no_deadline + waits > 1)
		return err_say(
		    e, -EINVAL, "only one of -deadline, -force and -no-deadline can be used");
	if (options.cancel && (options.force || options.no_deadline || waits || options.detach))
		return err_say(e, -EINVAL,
		    "-cancel cannot be used with -deadline, -detach, -force or -no-deadline");
	if (options.cancel || options.yes)
		return 0;
	agreed = cli_ask(what);
	if (agreed < 0)
		return err_say(e, -EINVAL,
		    "this stops every allocation of the node and ends its agent: add -yes");
	return agreed ? 0 : err_say(e, -ECANCELED, "cancelled: nothing was changed");
}

static json_t *
make_request(void)
{
	if (options.cancel)
		return json_pack("{s:b}", "Cancel", 1);
	if (options.force)
		return json_pack("{s:i}", "Deadline", -1);
	if (options.no_deadline || options.deadline_ms == 0)
		return json_pack("{s:i}", "Deadline", 0);
	if (options.deadline_ms == UINT64_MAX)
		return json_object();
	return json_pack("{s:I}", "Deadline", (json_int_t)options.deadline_ms * NS_PER_MS);
}

static void
print_result(const struct cli *cli, const json_t *answer)
{
	const char *state = cli_json_str(answer, "State");

	if (strcmp(state, "landed") == 0)
		cli_say(cli, "==> The node has landed; its agent ends, and comes back when it is "
			     "started");
	else if (strcmp(state, "retired") == 0)
		cli_say(cli, "==> The node has retired; its agent ends and does not come back");
	else if (strcmp(state, "returning") == 0 || strcmp(state, "running") == 0)
		cli_say(cli, "==> The node takes allocations again");
	else
		cli_say(cli, "==> The node is %s; allocations that have not ended: %lld", state,
		    (long long)cli_json_int(answer, "Allocations"));
}

static int
depart(struct cli *cli, const char *what, const char *question)
{
	bool waits = !options.detach && !options.cancel;
	cleanup_free char *target =
	    cli_target(waits ? "/v1/agent/%s?wait=true" : "/v1/agent/%s", what);
	cleanup_json json_t *answer = NULL;
	struct err e = { 0 };
	int r = check_options(question, &e);

	if (r == 0 && waits) {
		cli->timeout_ms = WAIT_MS;
		cli_say(cli, "==> Waiting for the node's allocations to end; it goes on if this "
			     "command is interrupted");
	}
	if (r == 0)
		r = cli_api_send_new(cli, "PUT", target, make_request(), &answer, &e);
	if (r == 0 && cli->json)
		r = cli_json_print(answer, &e);
	else if (r == 0)
		print_result(cli, answer);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* Only the agent's own socket takes these requests: no server passes them on. */
int
cli_node_land(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return depart(cli, "land",
	    "This stops every allocation of this node and ends its agent, until it is started "
	    "again. "
	    "Continue?");
}

int
cli_node_retire(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return depart(cli, "retire",
	    "This stops and removes every allocation of this node, ends its agent, and has the "
	    "servers "
	    "forget the node. Continue?");
}

/* The mark is a file beside the state, which only the agent's user and root can write. The agent
 * removes it when it starts. */
static int
mark_rejoin(const char *dir, struct err *e)
{
	cleanup_close int data = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), state = -1, lock = -1,
			  fd = -1;

	if (data < 0)
		return err_set(e, -errno, "open %s", dir);
	lock = openat(data, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
		return err_say(e, -EBUSY, "an agent with %s runs: its node has not retired", dir);
	state = openat(data, "state", O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (state < 0)
		return err_set(e, -errno, "open %s/state", dir);
	fd = openat(state, "rejoin", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 || fsync(state) < 0 ? err_set(e, -errno, "make %s/state/rejoin", dir) : 0;
}

int
cli_node_rejoin(struct cli *cli, int argc, char **argv)
{
	struct err e = { 0 };

	(void)argc;
	(void)argv;
	if (mark_rejoin(options.data_dir, &e) < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "==> A retired agent with this data directory joins as a new node when it is "
		     "started");
	return CLI_OK;
}
