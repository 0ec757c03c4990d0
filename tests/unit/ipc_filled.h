/* SPDX-License-Identifier: Apache-2.0 */
/* ipc_filled.h: messages in which every field has a value that is not its default, made from the
 * descriptor of a protobuf message or the fields of a record. Runs in: tests. */
#ifndef DROVER_TESTS_UNIT_IPC_FILLED_H
#define DROVER_TESTS_UNIT_IPC_FILLED_H

#include <stdalign.h>
#include <string.h>

#include "common/ipc_protobuf.h"
#include "tests/unit/unit.h"

#define TEXT "Q@Q" /* in every field with a text */

static alignas(16) uint8_t pool[1 << 20];
static size_t pool_used;

/* Messages that were filled, for the test that adds something unknown to each of them. */
static ProtobufCMessage *filled[4096];
static size_t n_filled;

static void *
take(size_t size)
{
	void *at = pool + pool_used;

	pool_used += (size + 15) & ~(size_t)15;
	ck_assert_uint_le(pool_used, sizeof pool);
	return memset(at, 0, size);
}

static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *d, unsigned k);

/* Returns whether f is the k-th (modulo their number) member of its oneof. */
static bool
is_chosen(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f, unsigned k)
{
	unsigned n = 0, index = 0;

	for (unsigned i = 0; i < d->n_fields; i++) {
		if (!(d->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
		    d->fields[i].quantifier_offset != f->quantifier_offset)
			continue;
		if (&d->fields[i] == f)
			index = n;
		n++;
	}
	return index == k % n;
}

static int32_t
some_enum_value(const ProtobufCEnumDescriptor *d)
{
	return d->values[d->n_values - 1].value;
}

/* Writes a value that is not the default. Returns its size. */
static size_t
put_value(const ProtobufCFieldDescriptor *f, void *at, unsigned k)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		*(const char **)at = TEXT;
		return sizeof(char *);
	case PROTOBUF_C_TYPE_BYTES:
		*(ProtobufCBinaryData *)at = (ProtobufCBinaryData){ 16, memset(take(16), 'z', 16) };
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)at = fill(f->descriptor, k);
		return sizeof(ProtobufCMessage *);
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at = 1;
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		*(int32_t *)at = some_enum_value(f->descriptor);
		return sizeof(int32_t);
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
		*(int32_t *)at = -5;
		return sizeof(int32_t);
	case PROTOBUF_C_TYPE_UINT32:
		*(uint32_t *)at = 0xfedcba98u;
		return sizeof(uint32_t);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
		*(int64_t *)at = -5;
		return sizeof(int64_t);
	case PROTOBUF_C_TYPE_UINT64:
		*(uint64_t *)at = 0xfedcba9876543210u;
		return sizeof(uint64_t);
	default:
		ck_abort_msg(
		    "field %s has type %d, which this test does not know", f->name, f->type);
	}
	return 0;
}

static ProtobufCMessage *
fill(const ProtobufCMessageDescriptor *d, unsigned k)
{
	ProtobufCMessage *msg = take(d->sizeof_message);

	d->message_init(msg);
	ck_assert_uint_lt(n_filled, ELEMENTSOF(filled));
	filled[n_filled++] = msg;
	for (unsigned i = 0; i < d->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &d->fields[i];
		uint8_t *at = (uint8_t *)msg + f->offset,
			*quantifier = (uint8_t *)msg + f->quantifier_offset;

		if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
			if (!is_chosen(d, f, k))
				continue;
			memcpy(quantifier, &f->id, sizeof f->id);
		}
		if (f->label == PROTOBUF_C_LABEL_REPEATED) {
			size_t two = 2;
			uint8_t *values = take(64);
			size_t size = put_value(f, values, k);

			(void)put_value(f, values + size, k);
			memcpy(at, &values, sizeof values);
			memcpy(quantifier, &two, sizeof two);
		} else {
			(void)put_value(f, at, k);
		}
	}
	return msg;
}

static ProtobufCMessage *
fill_anew(const ProtobufCMessageDescriptor *d, unsigned k)
{
	pool_used = 0;
	n_filled = 0;
	return fill(d, k);
}

/* Fills a record with values that are not zero. Returns the byte after it. */
static uint8_t *
fill_record(const struct ipc_record *record, uint8_t *at)
{
	for (uint32_t i = 0; i < record->n_fields; i++) {
		const struct ipc_field *f = &record->fields[i];
		uint32_t n = f->kind == IPC_FIELD_LIST ? 2 : f->kind == IPC_FIELD_ENUM ? f->max : 1;

		memset(at, f->kind == IPC_FIELD_PLAIN ? 'z' : 0, f->size);
		if (f->kind == IPC_FIELD_TEXT)
			memcpy(at, TEXT, sizeof TEXT);
		else if (f->kind == IPC_FIELD_BOOL)
			at[0] = 1;
		else if (f->kind == IPC_FIELD_ENUM || f->kind == IPC_FIELD_LIST)
			memcpy(at, &n, sizeof n);
		at += f->size;
		for (uint32_t k = 0; f->record && k < n; k++)
			at = fill_record(f->record, at);
	}
	return at;
}

/* Returns a message of this type, valid until the next call. It has the k-th member (modulo their
 * number) of each oneof. */
static const void *
fill_message(unsigned type, unsigned k)
{
	const struct ipc_record *record = ipc_msg_info(type)->record;
	void *at;

	if (!record)
		return fill_anew(ipc_protobuf_desc(type), k);
	pool_used = 0;
	at = take(record->size);
	(void)fill_record(record, at);
	return at;
}

#endif
