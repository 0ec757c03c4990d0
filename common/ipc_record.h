/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc_record.h: fixed records, the messages of the processes with capabilities
 * (proto/ipc_records.def), checked and filled. Runs in: supervisor and all helpers.
 */
#ifndef DROVER_COMMON_IPC_RECORD_H
#define DROVER_COMMON_IPC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/ipc_records.h"

enum ipc_field_kind {
	IPC_FIELD_PLAIN, /* any bytes */
	IPC_FIELD_BOOL,
	IPC_FIELD_ENUM,
	IPC_FIELD_TEXT,
	IPC_FIELD_ZERO,
	IPC_FIELD_RECORD,
	IPC_FIELD_LIST,
};

/* Fields lie one behind the other. */
struct ipc_field {
	enum ipc_field_kind kind;
	uint32_t
	    size;     /* of a record 0, of a list that of its count: what is in them comes on top */
	uint32_t max; /* the highest value, of a list the highest count */
	const struct ipc_record *record;
};

struct ipc_record {
	const struct ipc_field *fields;
	uint32_t n_fields;
	uint32_t size; /* of the struct: with the longest list */
};

/* x_record describes struct x. */
#define IPC_ENUM(name, ...)
#define IPC_RECORD(name, ...) extern const struct ipc_record name##_record;
#include "proto/ipc_records.def"

/*
 * How many of the len bytes at data are a valid encoding of the record; -1: they do not begin with
 * one. Reads nothing behind them. A struct is valid if this says so with its own size.
 */
ssize_t ipc_record_check(const struct ipc_record *record, const void *data, size_t len);

/*
 * Fills a REC_TEXT field, zeros behind the text. False: it does not fit, and the field is such that
 * no message with it can be sent (ipc_encode() says -EMSGSIZE), for it must never be cut.
 */
#define IPC_TEXT_SET(field, text) ipc_text_set(field, sizeof(field), text)
bool ipc_text_set(char *field, size_t size, const char *text);

/* Sets of numbers, REC_BITS. */
void ipc_bit_set(uint64_t *words, unsigned bit);
bool ipc_bit_get(const uint64_t *words, unsigned bit);

#endif
