/* SPDX-License-Identifier: Apache-2.0 */
/* log.h: one line per event to stderr, which is journald or a terminal. Runs in: every process but
 * the executor. */
#ifndef DROVER_COMMON_LOG_H
#define DROVER_COMMON_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* The values are those of syslog(3), which journald reads from a "<N>" prefix (sd-daemon(3)). */
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/*
 * Sets the process's name, which is kept and not copied, and the highest level that is printed;
 * until then it is info. If stderr is the journal (JOURNAL_STREAM names its device and inode),
 * lines get the prefix "<N>", else the local time, the process's name and the level.
 */
void log_init(const char *name, enum log_level max);
/* Makes each line on stderr an object of JSON, unless stderr is the journal. */
void log_use_json(void);
/*
 * If stderr is the journal, fn gets the lines instead: len bytes of text without control
 * characters. It returns false if it did not write the line, which then goes to stderr.
 */
typedef bool log_journal_fn(
    enum log_level level, const char *process, const char *text, size_t len);
void log_use_journal(log_journal_fn *fn);
/* Returns the level of one of Nomad's words error, warn, info, debug, trace (which is debug), or
 * -1. */
int log_level_parse(const char *word);
/*
 * Also sends lines to those who follow the agent's log, whatever max is. level_fd is a page whose
 * first int is the highest level that they get (0: nobody follows); each line is one packet on fd,
 * "<N>name: text", and is lost if it does not fit into the socket. fd stays open and is used by
 * this process alone: lines of its children are not sent. Does nothing if level_fd cannot be
 * mapped.
 */
void log_watch(int fd, int level_fd);
void log_print(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_print(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_print(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_print(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
