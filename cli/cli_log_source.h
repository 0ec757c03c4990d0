/* SPDX-License-Identifier: Apache-2.0 */
/* cli_log_source.h: lines of tasks with the time when they were written, from the API (log files)
 * or from journalctl. Runs in: cli. */
#ifndef DROVER_CLI_CLI_LOG_SOURCE_H
#define DROVER_CLI_CLI_LOG_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "cli/cli_http.h"
#include "model/engine/text.h"

struct cli_log_line {
	STAILQ_ENTRY(cli_log_line) link;
	uint64_t time_us; /* since 1970; 0: unknown */
	char alloc[9];    /* the first digits of its id */
	char *task, *stream, *text;
	size_t len; /* of text, which may contain NULs; without the newline */
};
void cli_log_line_free(struct cli_log_line *line);

/* One log of one task, or the journal of all allocations that log there. */
struct cli_log_source {
	TAILQ_ENTRY(cli_log_source) link;
	STAILQ_HEAD(, cli_log_line)
	lines; /* complete lines that are not printed yet, oldest first */
	char *alloc, *task;
	const char *stream; /* "stdout"; NULL: it is the journal */
	int fd;
	pid_t pid; /* of journalctl */
	struct cli_http_parser parser;
	struct text raw, partial; /* bytes of an incomplete frame, and of an incomplete line */
	STAILQ_HEAD(, cli_log_line) begun; /* of the journal: lines that go on in another entry */
	uint64_t partial_us, last_us;
	int64_t file, offset;        /* where it goes on after a lost connection; file -1: start */
	bool over, idle, in_journal; /* idle: nothing came for a moment */
};

/* Opens a task's log. Returns 0; 1 if there is none, or only in the journal (then in_journal); or
 * -errno with *e. */
int cli_log_source_open(struct cli *cli, struct cli_log_source *s, bool follow, struct err *e);
/* Starts journalctl for these allocations. */
int cli_log_source_journal(
    struct cli_log_source *s, char *const *allocs, size_t n, bool follow, struct err *e);
/* Reads what is there; a connection that was lost is made again. Returns 0 or -errno. */
int cli_log_source_read(struct cli *cli, struct cli_log_source *s, bool follow, struct err *e);
struct cli_log_source *cli_log_source_new(const char *alloc, const char *task, const char *stream);
void cli_log_source_free(struct cli_log_source *s);

/* The flags of `drover job logs`, and of `drover alloc logs` for lines of several tasks. */
struct cli_job_logs_options {
	bool follow, plain;
	int64_t lines; /* -1: all */
	const char *since, *until, *grep;
};
/* Prints the lines of a job or an allocation (argv[0]), of all tasks or those that follow it, by
 * time. Returns the exit code. */
int cli_job_logs_show(struct cli *cli, const struct cli_job_logs_options *o, int argc, char **argv);

/* For streams of frames, which are flat JSON objects one after the other: returns the length of the
 * first one with the bytes before it, 0 if it is incomplete. */
size_t cli_frame_length(const char *text, size_t len);

#endif
