/* SPDX-License-Identifier: Apache-2.0 */
/* log.h: one line per event to stderr, which is journald or a terminal. Runs in: every process but
 * the executor. */
#ifndef DROVER_COMMON_LOG_H
#define DROVER_COMMON_LOG_H

/* The values are those of syslog(3), which journald reads from a "<N>" prefix (sd-daemon(3)). */
enum log_level { LOG_LEVEL_ERROR = 3, LOG_LEVEL_WARN = 4, LOG_LEVEL_INFO = 6, LOG_LEVEL_DEBUG = 7 };

/*
 * name is kept, not copied. When stderr is the journal (JOURNAL_STREAM names its device and inode)
 * lines carry the prefix, else they start with the process's name and level. Until log_init() has
 * run nothing below info is printed.
 */
void log_init(const char *name, enum log_level max);
/* -1 for a word that is none of error, warn, info, debug, trace (Nomad's words; trace is debug). */
int log_level_parse(const char *word);
/*
 * Lines up to a level go to whoever watches, too, whatever max is: level_fd is a page whose first
 * int says up to which (0: nobody watches), and each line is one packet on fd, "<N>name: text".
 * What does not fit there is lost. fd stays open and is this process's alone: its children are not
 * watched. Nothing happens where the descriptors are not those.
 */
void log_watch(int fd, int level_fd);
void log_print(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_print(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_print(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_print(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
