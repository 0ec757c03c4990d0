/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msgpack.h: encodes and decodes structs in the form that Nomad's servers and clients exchange:
 * maps by Go field name, strings and bytes as raw, times as 15 bytes. Runs in: supervisor.
 */
#ifndef DROVER_MODEL_ENGINE_MSGPACK_H
#define DROVER_MODEL_ENGINE_MSGPACK_H

#include "model/engine/field.h"

/*
 * Appends obj to *t, whose text is bytes here. MODEL_COMPACT leaves out empty fields; for Go a
 * missing key is the zero value, so the meaning is the same. A list or map never gets a nil
 * element, because servers crash at one.
 */
void model_to_msgpack(
    const struct type *type, const void *obj, enum model_flags flags, struct text *t);

/* Memory for the largest answer that a node handles: 32 MiB. */
#define WIRE_MEMORY_MAX ((size_t)32 << 20)

/*
 * Decodes the one value in data into an initialised object. Unknown keys are skipped; nil leaves a
 * field unchanged and is left out of a list or map; keys match exactly. Allocates at most
 * memory_max bytes, whatever the message announces. Returns 0; -EINVAL for invalid msgpack or a
 * value that does not match the table, with `Job.TaskGroups[0].Count: expected a number, found
 * "x"`; or -EMSGSIZE if it needs more memory. After a failure obj is as after model_done().
 */
int model_from_msgpack(const struct type *type, const void *data, size_t len, void *obj,
    size_t memory_max, struct err *e);

/* A value that is not decoded: points into its message, which must outlive it. */
struct raw {
	const void *data;
	size_t len;
};

struct raws {
	struct raw *v;
	size_t n;
};

#endif
