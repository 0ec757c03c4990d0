// SPDX-License-Identifier: Apache-2.0
/* cli_job_logs.c: drover job logs: the output of all tasks of a job or an allocation, from files
 * and the journal, merged by time. Runs in: cli. */
#include <errno.h>
#include <poll.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli_api.h"
#include "cli/cli_log_source.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/list.h"
#include "common/mem.h"

#define SOURCES_MAX 256  /* the agent has 1,200 connections for all its clients */
#define QUIET_MS    300  /* a source that is silent for so long does not hold up the others */
#define LOOK_MS     2000 /* interval of looking for new allocations and tasks of the job */
#define HELD_LOOKS  2    /* the task of an entry may have started just before the first */

static struct cli_job_logs_options options = { .lines = -1 };

const struct cli_flag cli_job_logs_flags[] = {
	{ "f", CLI_FLAG_BOOL, &options.follow, NULL,
	    "follow: also print what is written from now on, by new allocations too" },
	{ "grep", CLI_FLAG_STRING, &options.grep, "PATTERN",
	    "only lines that match this POSIX extended regular expression" },
	{ "n", CLI_FLAG_NUMBER, &options.lines, "LINES",
	    "only the last lines of all tasks together" },
	{ "plain", CLI_FLAG_BOOL, &options.plain, NULL, "without time, allocation and task" },
	{ "since", CLI_FLAG_STRING, &options.since, "TIME",
	    "only lines since then: 2026-11-28T15:04:05 (local time), or 10m for ten minutes ago" },
	{ "until", CLI_FLAG_STRING, &options.until, "TIME", "only lines until then" },
	{ 0 },
};

static struct {
	struct cli *cli;
	const char *word;
	char **tasks; /* only these; n_tasks 0: all */
	size_t n_tasks;
	char *only; /* the id of an allocation; NULL: word is a job */
	uint64_t since_us, until_us;
	regex_t pattern;
	TAILQ_HEAD(, cli_log_source) sources;
	size_t n_sources;
	char *in_journal[SOURCES_MAX]; /* allocations, for journalctl */
	size_t n_in_journal;
	size_t n_from_journal; /* of these, whose entries are read */
	STAILQ_HEAD(, cli_log_line)
	tail; /* with -n: the last lines before the first one is printed */
	int64_t n_tail;
	bool live;
	const struct cli_log_line *held; /* an entry whose log is not known yet */
	unsigned held_looks;             /* it is printed after so many looks for new logs */
} logs;

static int
parse_time(const char *word, uint64_t *ret_us, struct err *e)
{
	struct tm tm = { .tm_isdst = -1 };
	const char *end = strptime(word, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t ago_ns;
	struct err ignored;

	if (!end)
		end = strptime(word, "%Y-%m-%d %H:%M:%S", &tm);
	if (end && *end == '\0') {
		*ret_us = (uint64_t)mktime(&tm) * 1000000;
	} else if (end && strcmp(end, "Z") == 0) {
		*ret_us = (uint64_t)timegm(&tm) * 1000000;
	} else if (duration_parse(word, &ago_ns, &ignored) == 0 && ago_ns >= 0) {
		*ret_us = (uint64_t)(clock_real_ns() - ago_ns) / 1000;
	} else {
		return err_say(e, -EINVAL,
		    "\"%.64s\" is no time: write 2026-11-28T15:04:05, or 10m for ten minutes ago",
		    word);
	}
	return 0;
}

static void
print_line(struct cli_log_line *line)
{
	char when[32] = "-";
	time_t s = (time_t)(line->time_us / 1000000);
	struct tm tm;

	if (line->time_us && localtime_r(&s, &tm))
		(void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	if (!options.plain)
		(void)printf("%s.%03u %s %s%s: ", when, (unsigned)(line->time_us / 1000 % 1000),
		    line->alloc, line->task, strcmp(line->stream, "stderr") == 0 ? " stderr" : "");
	(void)fwrite(line->text, 1, line->len, stdout);
	(void)putchar('\n');
	cli_log_line_free(line);
}

static bool
is_wanted(const struct cli_log_line *line)
{
	if (logs.since_us && line->time_us < logs.since_us)
		return false;
	if (logs.until_us && line->time_us > logs.until_us)
		return false;
	return !options.grep || regexec(&logs.pattern, line->text, 0, NULL, 0) == 0;
}

static void
show_tail(void)
{
	struct cli_log_line *line;

	logs.live = true;
	while ((line = STAILQ_FIRST(&logs.tail))) {
		STAILQ_REMOVE_HEAD(&logs.tail, link);
		print_line(line);
	}
}

static void
show_line(struct cli_log_line *line)
{
	if (!is_wanted(line)) {
		cli_log_line_free(line);
		return;
	}
	if (options.lines < 0 || logs.live) {
		print_line(line);
		return;
	}
	STAILQ_INSERT_TAIL(&logs.tail, line, link);
	if (++logs.n_tail <= options.lines)
		return;
	logs.n_tail--;
	line = STAILQ_FIRST(&logs.tail);
	STAILQ_REMOVE_HEAD(&logs.tail, link);
	cli_log_line_free(line);
}

/* --- which logs --- */

static void
note_journal(const char *alloc)
{
	for (size_t i = 0; i < logs.n_in_journal; i++)
		if (strcmp(logs.in_journal[i], alloc) == 0)
			return;
	if (logs.n_in_journal < SOURCES_MAX)
		logs.in_journal[logs.n_in_journal++] = mem_strdup(alloc);
}

static bool
is_known(const char *alloc, const char *task)
{
	struct cli_log_source *s;

	TAILQ_FOREACH (s, &logs.sources, link)
		if (strcmp(s->alloc, alloc) == 0 && strcmp(s->task, task) == 0)
			return true;
	return false;
}

static int
add_source(const char *alloc, const char *task, const char *stream, struct err *e)
{
	struct cli_log_source *s = cli_log_source_new(alloc, task, stream);
	int r;

	if (++logs.n_sources > SOURCES_MAX) {
		cli_log_source_free(s);
		return err_say(e, -E2BIG,
		    "these are more than %d logs: name an allocation or tasks", SOURCES_MAX);
	}
	TAILQ_INSERT_TAIL(&logs.sources, s, link);
	r = cli_log_source_open(logs.cli, s, options.follow, e);
	s->over |= r == 1;
	return r < 0 ? r : 0;
}

static bool
is_chosen(const char *task)
{
	for (size_t i = 0; i < logs.n_tasks; i++)
		if (strcmp(logs.tasks[i], task) == 0)
			return true;
	return logs.n_tasks == 0;
}

static int
add_alloc(const json_t *alloc, struct err *e)
{
	const char *id = cli_json_str(alloc, "ID"), *task;
	const json_t *state;
	int r = 0;

	json_object_foreach (cli_json_get(alloc, "TaskStates"), task, state) {
		if (r < 0 || !is_chosen(task) || is_known(id, task) ||
		    *cli_json_str(state, "StartedAt") == '\0')
			continue;
		r = add_source(id, task, "stdout", e);
		if (r == 0)
			r = add_source(id, task, "stderr", e);
	}
	return r;
}

/* Adds the tasks that are not known yet. */
static int
add_logs(struct err *e)
{
	cleanup_free char *target = logs.only
					? cli_target("/v1/allocation/%s", logs.only)
					: cli_target("/v1/job/%s/allocations?all=true", logs.word);
	cleanup_json json_t *answer = NULL;
	json_t *alloc;
	size_t i;
	int r = cli_api_get(logs.cli, target, &answer, e);

	if (r < 0)
		return r;
	if (logs.only)
		return add_alloc(answer, e);
	json_array_foreach (answer, i, alloc)
		if ((r = add_alloc(alloc, e)) < 0)
			return r;
	return 0;
}

/* Reads the journal's entries of the allocations that were not known to have some. A log that was
 * open before its task printed anything says later where its lines are. */
static int
add_journal(struct err *e)
{
	size_t n = logs.n_from_journal;
	struct cli_log_source *s;

	TAILQ_FOREACH (s, &logs.sources, link)
		if (s->in_journal)
			note_journal(s->alloc);
	if (logs.n_in_journal == n)
		return 0;
	logs.n_from_journal = logs.n_in_journal;
	s = cli_log_source_new("", "", NULL);
	TAILQ_INSERT_TAIL(&logs.sources, s, link);
	return cli_log_source_journal(
	    s, logs.in_journal + n, logs.n_in_journal - n, options.follow, e);
}

/* --- the merge --- */

/* Returns the source with the oldest line; NULL if there is none, or if a source that may still
 * have an older one is waited for. */
static struct cli_log_source *
find_oldest(void)
{
	struct cli_log_source *s, *oldest = NULL;

	TAILQ_FOREACH (s, &logs.sources, link) {
		if (STAILQ_EMPTY(&s->lines)) {
			if (!s->over && !s->idle)
				return NULL;
			continue;
		}
		if (!oldest ||
		    STAILQ_FIRST(&s->lines)->time_us < STAILQ_FIRST(&oldest->lines)->time_us)
			oldest = s;
	}
	return oldest;
}

static const struct cli_log_source *
find_log(const struct cli_log_line *entry)
{
	const struct cli_log_source *s;

	TAILQ_FOREACH (s, &logs.sources, link)
		if (s->stream && strncmp(s->alloc, entry->alloc, strlen(entry->alloc)) == 0 &&
		    strcmp(s->task, entry->task) == 0 && strcmp(s->stream, entry->stream) == 0)
			return s;
	return NULL;
}

/* Returns whether it is known where the lines of this task are read from. A task that has just
 * started is found by the next look. */
static bool
is_settled(const struct cli_log_line *entry)
{
	if (!options.follow || find_log(entry))
		return true;
	if (logs.held != entry) {
		logs.held = entry;
		logs.held_looks = HELD_LOOKS;
	}
	return logs.held_looks == 0;
}

/* With destination "both" a line is in the files too, from where it is printed. */
static bool
is_printed_from_files(const struct cli_log_line *entry)
{
	const struct cli_log_source *s = find_log(entry);

	return s && !s->in_journal;
}

static void
show_ready(void)
{
	struct cli_log_source *s;
	struct cli_log_line *line;

	while ((s = find_oldest())) {
		line = STAILQ_FIRST(&s->lines);
		if (!s->stream && is_chosen(line->task) && !is_settled(line))
			break;
		STAILQ_REMOVE_HEAD(&s->lines, link);
		logs.held = NULL;
		if (s->stream || (is_chosen(line->task) && !is_printed_from_files(line)))
			show_line(line);
		else
			cli_log_line_free(line);
	}
	(void)fflush(stdout);
}

/* Waits for those that have no line. Returns how many are not over, or -errno. */
static int
read_sources(struct err *e)
{
	struct pollfd p[2 * SOURCES_MAX]; /* each log, and the journal for each allocation */
	struct cli_log_source *of[2 * SOURCES_MAX], *s;
	size_t n = 0;
	int ready, r = 0;

	TAILQ_FOREACH (s, &logs.sources, link)
		if (!s->over && STAILQ_EMPTY(&s->lines)) {
			p[n] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
			of[n++] = s;
		}
	if (n == 0)
		return 0;
	ready = poll(p, n, QUIET_MS);
	if (ready < 0)
		return errno == EINTR ? (int)n : err_set(e, -errno, "wait for the logs");
	for (size_t i = 0; i < n && r >= 0; i++) {
		if (p[i].revents)
			r = cli_log_source_read(logs.cli, of[i], options.follow, e);
		else if (ready == 0 && options.follow)
			of[i]->idle = true;
	}
	return r < 0 ? r : (int)n;
}

static bool
all_are_idle(void)
{
	struct cli_log_source *s;

	TAILQ_FOREACH (s, &logs.sources, link)
		if (!STAILQ_EMPTY(&s->lines) || (!s->over && !s->idle))
			return false;
	return true;
}

static int
show_all(struct err *e)
{
	uint64_t look_at_ms = clock_ms() + LOOK_MS;
	int r;

	for (;;) {
		show_ready();
		r = read_sources(e);
		if (r < 0 || (r == 0 && !options.follow && all_are_idle()))
			return r;
		if (!options.follow)
			continue;
		if (!logs.live && all_are_idle())
			show_tail();
		if (r == 0)
			(void)poll(NULL, 0, QUIET_MS);
		if (clock_ms() >= look_at_ms) {
			look_at_ms = clock_ms() + LOOK_MS;
			logs.held_looks -= logs.held_looks > 0;
			if ((r = add_logs(e)) < 0 || (r = add_journal(e)) < 0)
				return r;
		}
	}
}

static int
begin(int argc, char **argv, struct err *e)
{
	struct err ignored;
	int r = 0;

	TAILQ_INIT(&logs.sources);
	STAILQ_INIT(&logs.tail);
	logs.word = argv[0];
	logs.tasks = argv + 1;
	logs.n_tasks = (size_t)argc - 1;
	if (options.since)
		r = parse_time(options.since, &logs.since_us, e);
	if (r == 0 && options.until)
		r = parse_time(options.until, &logs.until_us, e);
	if (r < 0)
		return r;
	if (options.grep && regcomp(&logs.pattern, options.grep, REG_EXTENDED | REG_NOSUB) != 0)
		return err_say(
		    e, -EINVAL, "\"%.64s\" is no extended regular expression", options.grep);
	/* The exact name of a job first, else an allocation. */
	cleanup_free char *target = cli_target("/v1/job/%s", argv[0]);
	r = cli_api_get(logs.cli, target, NULL, &ignored);
	if (r < 0 && r != -ENOENT) {
		*e = ignored;
		return r;
	}
	return r == 0 ? 0 : cli_id_resolve(logs.cli, &cli_kind_alloc, argv[0], &logs.only, e);
}

int
cli_job_logs(struct cli *cli, int argc, char **argv)
{
	struct cli_log_source *s, *next;
	struct err e = { 0 };
	int r;

	logs.cli = cli;
	if ((r = begin(argc, argv, &e)) == 0 && (r = add_logs(&e)) == 0 &&
	    (r = add_journal(&e)) == 0)
		r = show_all(&e);
	if (r == 0)
		show_tail();
	TAILQ_FOREACH_SAFE (s, &logs.sources, link, next)
		cli_log_source_free(s);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

int
cli_job_logs_show(struct cli *cli, const struct cli_job_logs_options *o, int argc, char **argv)
{
	options = *o;
	return cli_job_logs(cli, argc, argv);
}
