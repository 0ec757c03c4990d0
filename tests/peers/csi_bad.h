/* SPDX-License-Identifier: Apache-2.0 */
/* csi_bad.h: what the files of csi_bad share. Runs in: tests. */
#ifndef DROVER_TESTS_PEERS_CSI_BAD_H
#define DROVER_TESTS_PEERS_CSI_BAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contrib/csi-local/csl_grpc.h"

#define STATUS_INVALID_ARGUMENT 3
#define STATUS_NOT_FOUND        5
#define STATUS_ALREADY_EXISTS   6
#define STATUS_ABORTED          10
#define STATUS_UNIMPLEMENTED    12
#define STATUS_INTERNAL         13
#define STATUS_UNAVAILABLE      14
#define FIELD_1_NUMBER          0x08 /* the tags of fields */
#define FIELD_1_LENGTH          0x0a
#define FIELD_2_LENGTH          0x12

/* An answer in preparation. data is malloc()ed. */
struct answer {
	struct csl_call *call;
	int status;
	const char *message;
	uint8_t *data;
	size_t len;
	unsigned delay_ms;
	bool never;
	bool late;   /* UNAVAILABLE is answered before the delay */
	bool killed; /* the process ends after the effect */
	bool held;   /* until the file "release" */
	const char *name;
	int lost; /* the status after the effect */
	char volume[256];
	/* The effect; its paths are empty if there is none. */
	void (*effect)(const struct answer *a);
	const struct trace *trace; /* NULL: no file changes */
	char staging[1024], target[1024];
	char options[256]; /* for the log */
	int64_t size;
	const uint8_t *request;
	size_t request_len;
};

struct behaviour {
	const char *name;
	void (*apply)(struct answer *a, unsigned long value, unsigned nth);
};

/* The calls that a rule is for. */
struct span {
	unsigned long first, last;
};

/* What the command line and the environment say, without the rules. */
struct bad_options {
	const char *attach_log; /* NULL: the controller does not attach */
	const char *state_dir;  /* NULL: effects leave no files */
	const char *sizes_dir;  /* NULL: sizes are not recorded */
	const char *device;     /* CSI_BAD_DEVICE: is published instead of a file system */
	const char *mounter;    /* CSI_BAD_MOUNTER */
	bool mounts, strict, clocked, grouped, expects, unstaged, echoes_context;
};
extern struct bad_options bad;

/* csi_bad.c: */
/* Adds a line "bad METHOD VOLUME: WHY" to the log. */
void bad_log(const struct answer *a, const char *why);

/* csi_bad_answers.c: */
/* Prepares the correct answer to a->name, and its effect. Returns false if there is no such method.
 */
bool bad_answer(struct answer *a, const uint8_t *data, size_t len);

/* csi_bad_behaviours.c: */
/* Returns the behaviour of the rule "Method=[at:K:|first:K:]NAME[:VALUE]", its value, and for which
 * calls it is; NULL if it is no rule. */
const struct behaviour *bad_find_behaviour(
    const char *rule, unsigned long *ret_value, struct span *ret_span);

/* csi_bad_expect.c: */
/*
 * Returns what is wrong with a request, in one sentence, or NULL. A request that has secrets must
 * have only key="secret of VOLUME"; a capability of a file system must have the type "storm" and
 * mount flags that end with "-VOLUME", of which NodeExpandVolume has none. With attach=FILE a mount
 * must have the context of its attachment.
 */
const char *bad_check_request(
    const char *method, const char *volume, const uint8_t *data, size_t len);

#endif
