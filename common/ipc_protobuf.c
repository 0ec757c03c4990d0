// SPDX-License-Identifier: Apache-2.0
/* ipc_protobuf.c: packs and unpacks protobuf messages. Runs in: supervisor and the helpers without
 * capabilities. */
#include "common/ipc_protobuf.h"

#include <errno.h>
#include <string.h>

#include "proto/check_helper.pb-c.h"
#include "proto/csi_helper.pb-c.h"
#include "proto/heartbeat.pb-c.h"

/* A message descriptor is a table of the generated code, so a process that links all of them pays
 * only for the pages that it touches. */
const ProtobufCMessageDescriptor *
ipc_protobuf_desc(unsigned type)
{
	static const ProtobufCMessageDescriptor *const descs[IPC_TYPE_MAX] = {
#define IPC_PB_MSG(name, no, from, to, bytes, fds, message, symbol) [no] = &symbol##__descriptor,
#include "proto/ipc_msgs.def"
	};

	return type < IPC_TYPE_MAX ? descs[type] : NULL;
}

static ssize_t
pack(unsigned type, const void *data, uint8_t *buf, size_t max, struct err *e)
{
	const ProtobufCMessageDescriptor *desc = ipc_protobuf_desc(type);
	const ProtobufCMessage *msg = data;
	size_t size;

	if (msg->descriptor != desc)
		return err_say(e, -EINVAL, "%s carries a %s, not a %s", ipc_msg_info(type)->name,
		    desc->name, msg->descriptor->name);
	size = protobuf_c_message_get_packed_size(msg);
	if (size > max)
		return err_say(e, -EMSGSIZE, "%s would have %zu bytes, %zu are allowed",
		    ipc_msg_info(type)->name, size, max);
	return (ssize_t)protobuf_c_message_pack(msg, buf);
}

/* Allocates only from the packet's arena, so no input can make a process's memory grow. */
static void *
arena_alloc(void *data, size_t size)
{
	struct ipc_packet *p = data;
	size_t at = (p->arena_used + 15) & ~(size_t)15;

	if (size > sizeof p->arena || at > sizeof p->arena - size)
		return NULL;
	p->arena_used = at + size;
	return p->arena + at;
}

static void
arena_free(void *data, void *pointer)
{
	(void)data;
	(void)pointer;
}

static int check_known(const ProtobufCMessage *msg);

static int
check_field(const ProtobufCMessage *msg, const ProtobufCFieldDescriptor *f)
{
	const uint8_t *at = (const uint8_t *)msg + f->offset;
	const uint8_t *quantifier = (const uint8_t *)msg + f->quantifier_offset;
	ProtobufCMessage *const *subs;
	size_t n;

	if (f->type != PROTOBUF_C_TYPE_MESSAGE)
		return 0;
	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		memcpy(&n, quantifier, sizeof n);
		memcpy(&subs, at, sizeof subs);
		for (size_t i = 0; i < n; i++)
			if (check_known(subs[i]) < 0)
				return -EPROTO;
		return 0;
	}
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		uint32_t which;

		memcpy(&which, quantifier, sizeof which);
		if (which != f->id)
			return 0;
	}
	subs = (ProtobufCMessage *const *)(const void *)at;
	return *subs ? check_known(*subs) : 0;
}

/* protobuf-c accepts unknown fields at each level; here they are an error. */
static int
check_known(const ProtobufCMessage *msg)
{
	if (msg->n_unknown_fields > 0)
		return -EPROTO;
	for (unsigned i = 0; i < msg->descriptor->n_fields; i++)
		if (check_field(msg, &msg->descriptor->fields[i]) < 0)
			return -EPROTO;
	return 0;
}

/* Packs the message again and compares it on the way, without a second buffer. */
struct comparing {
	ProtobufCBuffer base;
	const uint8_t *want;
	size_t left;
	bool differs;
};

static void
compare_append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	struct comparing *c = (struct comparing *)(void *)buffer;

	if (len == 0) /* an empty field: data may be NULL */
		return;
	if (len > c->left || memcmp(c->want, data, len) != 0) {
		c->differs = true;
		return;
	}
	c->want += len;
	c->left -= len;
}

static const char *
unpack_message(struct ipc_packet *p, const uint8_t *buf, size_t len)
{
	ProtobufCAllocator arena = {
		.alloc = arena_alloc, .free = arena_free, .allocator_data = p
	};
	struct comparing again = { .base.append = compare_append, .want = buf, .left = len };
	const ProtobufCMessage *msg;

	p->arena_used = 0;
	p->msg = msg = protobuf_c_message_unpack(ipc_protobuf_desc(p->type), &arena, len, buf);
	if (!msg)
		return "that does not decode";
	if (check_known(msg) < 0)
		return "with unknown fields";
	(void)protobuf_c_message_pack_to_buffer(msg, &again.base);
	return again.differs || again.left != 0 ? "in a form that is not the canonical one" : NULL;
}

const struct ipc_codec ipc_protobuf = { .pack = pack, .unpack = unpack_message };
