/* SPDX-License-Identifier: Apache-2.0 */
/* err.h: an error as a code and a sentence for people. Runs in: every process. */
#ifndef DROVER_COMMON_ERR_H
#define DROVER_COMMON_ERR_H

#define ERR_MSG_SIZE 512

/* code is a negative errno, or 0 if no error is set. msg is valid UTF-8 only if its inputs were. */
struct err {
	int code;
	char msg[ERR_MSG_SIZE];
};

/*
 * Set *e (which may be NULL) and return code, so that `return err_set(e, -errno, "open %s", name)`
 * is one line. code must be negative. A text that is too long is truncated. errno is kept.
 *
 * err_set() appends ": " and the text of the errno: "open foo: No such file or directory".
 * err_say() appends nothing. err_prefix() puts a text and ": " before the message in *e, and
 * returns e->code.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_say(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
