/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc_record.h: checks and fills fixed records, the messages of the processes with capabilities
 * (proto/ipc_records.def). Runs in: supervisor and all helpers.
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

/* The fields of a record in order, without gaps. */
struct ipc_field {
	enum ipc_field_kind kind;
	uint32_t size; /* in bytes, without nested records: a record has 0, a list the size of its
			  count */
	uint32_t max;  /* the highest valid value; of a list, the highest count */
	const struct ipc_record *record;
};

struct ipc_record {
	const struct ipc_field *fields;
	uint32_t n_fields;
	uint32_t size; /* of the struct, with the longest list */
};

/* For each record struct x there is x_record, its description. */
#define IPC_ENUM(name, ...)
#define IPC_RECORD(name, ...) extern const struct ipc_record name##_record;
#include "proto/ipc_records.def"

/*
 * Returns how many of the len bytes at data are a valid encoding of the record, or -1 if they do
 * not begin with one. Reads nothing after those bytes. A struct is valid if this returns its own
 * size.
 */
ssize_t ipc_record_check(const struct ipc_record *record, const void *data, size_t len);

/*
 * Copies text to a REC_TEXT field and fills the rest with zeros. Text is never truncated: if it
 * does not fit, returns false and makes the field invalid, so that ipc_encode() of the message
 * fails with -EMSGSIZE.
 */
#define IPC_TEXT_SET(field, text) ipc_text_set(field, sizeof(field), text)
bool ipc_text_set(char *field, size_t size, const char *text);

/* Set and read one number of a REC_BITS set. */
void ipc_bit_set(uint64_t *words, unsigned bit);
bool ipc_bit_get(const uint64_t *words, unsigned bit);

#endif
