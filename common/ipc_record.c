// SPDX-License-Identifier: Apache-2.0
/* ipc_record.c: checks fixed records. Runs in: supervisor and all helpers. */
#include "common/ipc_record.h"

#include <string.h>

#define IPC_ENUM(name, ...)
#define IPC_RECORD(name, ...)                                                                      \
	static const struct ipc_field name##_fields[] = { __VA_ARGS__ };                           \
	const struct ipc_record name##_record = { name##_fields,                                   \
		sizeof name##_fields / sizeof(struct ipc_field), sizeof(struct name) };
#define REC_PLAIN(size)              { IPC_FIELD_PLAIN, size, 0, NULL },
#define REC_ID(field)                REC_PLAIN(sizeof(struct id))
#define REC_U32(field)               REC_PLAIN(sizeof(uint32_t))
#define REC_I32(field)               REC_PLAIN(sizeof(int32_t))
#define REC_U64(field)               REC_PLAIN(sizeof(uint64_t))
#define REC_I64(field)               REC_PLAIN(sizeof(int64_t))
#define REC_BITS(words, field)       REC_PLAIN((words) * sizeof(uint64_t))
#define REC_BOOL(field)              { IPC_FIELD_BOOL, sizeof(bool), 1, NULL },
#define REC_ENUM(type, field)        { IPC_FIELD_ENUM, sizeof(enum type), type##_values - 1, NULL },
#define REC_TEXT(size, field)        { IPC_FIELD_TEXT, size, 0, NULL },
#define REC_ZERO(size, field)        { IPC_FIELD_ZERO, size, 0, NULL },
#define REC_RECORD(record, field)    { IPC_FIELD_RECORD, 0, 1, &record##_record },
#define REC_LIST(max, record, field) { IPC_FIELD_LIST, sizeof(uint32_t), max, &record##_record },
#include "proto/ipc_records.def"

static bool
is_zero(const uint8_t *at, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (at[i] != 0)
			return false;
	return true;
}

/* As ipc_record_check(), for one field. The caller has checked that len covers f->size. */
static ssize_t
check_field(const struct ipc_field *f, const uint8_t *at, size_t len)
{
	size_t size = f->size, text;
	uint32_t n = 1;

	switch (f->kind) {
	case IPC_FIELD_PLAIN:
		return (ssize_t)size;
	case IPC_FIELD_BOOL:
		return at[0] <= 1 ? (ssize_t)size : -1;
	case IPC_FIELD_TEXT:
		text = strnlen((const char *)at, size);
		return text < size && is_zero(at + text, size - text) ? (ssize_t)size : -1;
	case IPC_FIELD_ZERO:
		return is_zero(at, size) ? (ssize_t)size : -1;
	case IPC_FIELD_ENUM:
	case IPC_FIELD_LIST:
		memcpy(&n, at, sizeof n);
		/* fall through */
	case IPC_FIELD_RECORD:
		break;
	}
	if (n > f->max)
		return -1;
	for (uint32_t i = 0; f->record && i < n; i++) {
		ssize_t one = ipc_record_check(f->record, at + size, len - size);

		if (one < 0)
			return -1;
		size += (size_t)one;
	}
	return (ssize_t)size;
}

ssize_t
ipc_record_check(const struct ipc_record *record, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	size_t at = 0;

	for (uint32_t i = 0; i < record->n_fields; i++) {
		const struct ipc_field *f = &record->fields[i];
		ssize_t n = len - at < f->size ? -1 : check_field(f, bytes + at, len - at);

		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

bool
ipc_text_set(char *field, size_t size, const char *text)
{
	size_t len = strlen(text);

	memset(field, len < size ? 0 : '?', size);
	memcpy(field, text, len < size ? len : size);
	return len < size;
}

void
ipc_bit_set(uint64_t *words, unsigned bit)
{
	words[bit / 64] |= 1ull << bit % 64;
}

bool
ipc_bit_get(const uint64_t *words, unsigned bit)
{
	return words[bit / 64] >> bit % 64 & 1;
}
