/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack.h: the structs of the field tables as Nomad's servers and clients exchange them: maps by
 * Go field name, texts and bytes as raw, times as 15 bytes. Runs in: supervisor.
 */
#ifndef DROVER_MODEL_ENGINE_MSGPACK_H
#define DROVER_MODEL_ENGINE_MSGPACK_H

#include "model/engine/field.h"

/*
 * Appends obj to *t, whose text is bytes here. MODEL_COMPACT leaves out what is empty; for Go a key
 * that is not there is the zero value, so it says the same with fewer bytes. A list or map never
 * gets a nil element: servers do not survive one. 0 or -ENOMEM.
 */
int model_to_msgpack(
    const struct type *type, const void *obj, enum model_flags flags, struct text *t);

/* Enough for the largest answer that a node of ours handles: 32 MiB. */
#define WIRE_MEMORY_MAX ((size_t)32 << 20)

/*
 * Decodes the one value in data over an initialised object. Unknown keys are skipped, nil leaves a
 * field as it is (and an element of a list or map out), keys are matched exactly. What it makes may
 * take at most memory_max bytes, whatever the message says. Returns 0; -EINVAL for what is no
 * msgpack or does not fit the table, with `Job.TaskGroups[0].Count: expected a number, found
 * "x"`; -EMSGSIZE for what needs more memory; -ENOMEM. After a failure obj is as after
 * model_done().
 */
int model_from_msgpack(const struct type *type, const void *data, size_t len, void *obj,
    size_t memory_max, struct err *e);

/* A value that is not decoded: bytes of the message it came in, which has to outlive it. */
struct raw {
	const void *data;
	size_t len;
};

struct raws {
	struct raw *v;
	size_t n;
};

#endif
