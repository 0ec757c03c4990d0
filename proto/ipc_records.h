/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc_records.h: the structs of proto/ipc_records.def. A struct that starts as "= { 0 }" is sent as
 * it is after it was filled. Runs in: every process.
 */
#ifndef DROVER_PROTO_IPC_RECORDS_H
#define DROVER_PROTO_IPC_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/id_bytes.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* The values of `enum x` are the integers below x_values. */
#define IPC_ENUM(name, ...)                                                                        \
	enum name { __VA_ARGS__ };                                                                 \
	enum { name##_values = sizeof((int[]){ __VA_ARGS__ }) / sizeof(int) };
#define IPC_RECORD(name, ...)                                                                      \
	struct name {                                                                              \
		__VA_ARGS__                                                                        \
	};
#define REC_ID(field)             struct id field;
#define REC_U32(field)            uint32_t field;
#define REC_I32(field)            int32_t field;
#define REC_U64(field)            uint64_t field;
#define REC_I64(field)            int64_t field;
#define REC_BITS(words, field)    uint64_t field[words];
#define REC_BOOL(field)           bool field;
#define REC_ENUM(type, field)     enum type field;
#define REC_TEXT(size, field)     char field[size];
#define REC_ZERO(size, field)     uint8_t field[size];
#define REC_RECORD(record, field) struct record field;
#define REC_LIST(max, record, field)                                                               \
	uint32_t n_##field;                                                                        \
	struct record field[max];
#include "proto/ipc_records.def"

#pragma GCC diagnostic pop

#endif
