/* SPDX-License-Identifier: Apache-2.0 */
/* err.h: one error as a sentence, on its way to a human. Runs in: every process. */
#ifndef DROVER_COMMON_ERR_H
#define DROVER_COMMON_ERR_H

#define ERR_MSG_SIZE 512

/* code is a negative errno, 0 while nothing has been set. msg is valid UTF-8 only if the inputs
 * were. */
struct err {
	int code;
	char msg[ERR_MSG_SIZE];
};

/*
 * Both set *e (which may be NULL) and return code, so that `return err_set(e, -errno, "open %s",
 * name)` is one line. code must be negative. A text that does not fit is cut. errno is kept.
 *
 * err_set() appends ": " and the text of the errno: "open foo: No such file or directory".
 * err_say() is the whole sentence by itself.
 * err_prefix() puts a text and ": " before what *e says already, and returns e->code.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_say(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
