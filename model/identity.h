/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h: the tokens that servers sign for tasks and services. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_IDENTITY_H
#define DROVER_MODEL_IDENTITY_H

#include "model/engine/field.h"

/* A token that servers sign for a task, and how the task gets it. */
struct workload_identity {
	char *name; /* "default": the one that every task has, for calls to the servers */
	struct strings audience;
	enum identity_change {
		IDENTITY_CHANGE_NONE,
		IDENTITY_NOOP,
		IDENTITY_SIGNAL,
		IDENTITY_RESTART
	} change_mode;
	char *change_signal;
	bool env, file;
	char *filepath; /* below the task's directory; NULL: its name, in the secrets directory */
	char *service_name;
	int64_t ttl; /* 0: it does not expire */
	struct strings extra_claims;
};

#define IDENTITY_DEFAULT "default"

MODEL_DECLARE(workload_identity);

extern const char *const identity_change_names[IDENTITY_RESTART + 1];

/*
 * Writes the path of the token's file: "secrets/NAME" or "local/NAME".
 * Returns 0, or -EINVAL with *e for a path that is outside these directories.
 */
#define IDENTITY_FILE_SIZE 138
int identity_file(
    const struct workload_identity *identity, char ret[IDENTITY_FILE_SIZE], struct err *e);

#endif
