// SPDX-License-Identifier: Apache-2.0
/* csi_answer.c: decodes a plugin's answers, within limits. Runs in: csi-helper. */
#include "csi-helper/csi_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

enum wire_type { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_LENGTH = 2, WIRE_32BIT = 5 };

struct wire {
	const uint8_t *at;
	size_t left;
};

static int
read_varint(struct wire *w, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && w->left > 0; shift += 7) {
		uint8_t byte = *w->at++;

		w->left--;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return 0;
		}
	}
	return -EPROTO;
}

/* Reads one field from w: its number, wire type and, with WIRE_LENGTH, its bytes. */
static int
read_field(struct wire *w, uint32_t *ret_number, enum wire_type *ret_type, struct wire *ret_bytes)
{
	uint64_t tag, value = 0;

	if (read_varint(w, &tag) < 0 || tag >> 3 == 0 || tag > UINT32_MAX)
		return -EPROTO;
	*ret_number = (uint32_t)tag >> 3;
	*ret_type = (enum wire_type)(tag & 7);
	switch (*ret_type) {
	case WIRE_VARINT:
		return read_varint(w, &value);
	case WIRE_64BIT:
		value = 8;
		break;
	case WIRE_32BIT:
		value = 4;
		break;
	case WIRE_LENGTH:
		if (read_varint(w, &value) < 0)
			return -EPROTO;
		break;
	default:
		return -EPROTO;
	}
	if (value > w->left)
		return -EPROTO;
	*ret_bytes = (struct wire){ .at = w->at, .left = (size_t)value };
	w->at += value;
	w->left -= (size_t)value;
	return 0;
}

/* Checks the bytes before protobuf-c decodes them, because protobuf-c cuts strings at a NUL,
 * accepts strings that are not UTF-8, and merges repeated single fields. The depth of recursion is
 * that of the types. */
static int
check_wire(const ProtobufCMessageDescriptor *desc, struct wire w, struct err *e)
{
	const ProtobufCFieldDescriptor *f;
	enum wire_type type;
	struct wire bytes;
	uint32_t number;
	uint64_t seen = 0;

	while (w.left > 0) {
		if (read_field(&w, &number, &type, &bytes) < 0)
			return err_say(e, -EPROTO, "the bytes of %s are not a valid message",
			    desc->short_name);
		f = protobuf_c_message_descriptor_get_field(desc, number);
		if (!f)
			continue;
		if (f->label != PROTOBUF_C_LABEL_REPEATED) {
			uint64_t bit = 1ull << (f - desc->fields);

			if (seen & bit)
				return err_say(e, -EPROTO, "%s has the field %s twice",
				    desc->short_name, f->name);
			seen |= bit;
		}
		if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (type != WIRE_LENGTH)
			return err_say(e, -EPROTO, "the field %s of %s has another type", f->name,
			    desc->short_name);
		if (f->type == PROTOBUF_C_TYPE_STRING && !utf8_is_text(bytes.at, bytes.left))
			return err_say(e, -EPROTO, "the field %s of %s is not valid text", f->name,
			    desc->short_name);
		if (f->type == PROTOBUF_C_TYPE_MESSAGE && check_wire(f->descriptor, bytes, e) < 0)
			return -EPROTO;
	}
	return 0;
}

static void drop_unknown(ProtobufCMessage *msg);

static void
drop_unknown_below(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f)
{
	const uint8_t *at = (const uint8_t *)msg + f->offset;
	const uint8_t *quantifier = (const uint8_t *)msg + f->quantifier_offset;
	ProtobufCMessage *const *list, *one;
	uint32_t which;
	size_t n;

	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		memcpy(&n, quantifier, sizeof n);
		memcpy(&list, at, sizeof list);
		for (size_t i = 0; i < n; i++)
			drop_unknown(list[i]);
		return;
	}
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		memcpy(&which, quantifier, sizeof which);
		if (which != f->id)
			return;
	}
	memcpy(&one, at, sizeof one);
	if (one)
		drop_unknown(one);
}

/* Drops unknown fields, which a newer plugin may send: the message to the supervisor may have none.
 */
static void
drop_unknown(ProtobufCMessage *msg)
{
	for (unsigned i = 0; i < msg->n_unknown_fields; i++)
		free(msg->unknown_fields[i].data);
	free(msg->unknown_fields);
	msg->n_unknown_fields = 0;
	msg->unknown_fields = NULL;
	for (unsigned i = 0; i < msg->descriptor->n_fields; i++)
		if (msg->descriptor->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			drop_unknown_below(msg, &msg->descriptor->fields[i]);
}

int
csi_answer_decode(const ProtobufCMessageDescriptor *desc, const uint8_t *data, size_t len,
    struct csi_answer *ret, struct err *e)
{
	struct ipc_protobuf_memory memory;
	int r;

	*ret = (struct csi_answer){ 0 };
	r = check_wire(desc, (struct wire){ .at = data, .left = len }, e);
	if (r < 0)
		return r;
	ipc_protobuf_limit(&memory, CSI_ANSWER_MEMORY);
	ret->msg = protobuf_c_message_unpack(desc, &memory.base, len, data);
	if (!ret->msg)
		return err_say(e, -EPROTO, "%s does not decode or is too large", desc->short_name);
	ret->used = CSI_ANSWER_MEMORY - memory.left;
	drop_unknown(ret->msg);
	return 0;
}

void
csi_answer_done(struct csi_answer *a)
{
	if (a->msg)
		protobuf_c_message_free_unpacked(a->msg, NULL);
	*a = (struct csi_answer){ 0 };
}
