// SPDX-License-Identifier: Apache-2.0
/* ipc_protobuf.c: packs and unpacks protobuf messages. Runs in: supervisor and the helpers without
 * capabilities. */
#include "common/ipc_protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"

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

/* Sets *ret, which may be NULL after an error too. Returns NULL, or what is wrong with the bytes.
 */
static const char *
unpack_strictly(const ProtobufCMessageDescriptor *desc, ProtobufCAllocator *memory,
    const uint8_t *buf, size_t len, ProtobufCMessage **ret)
{
	struct comparing again = { .base.append = compare_append, .want = buf, .left = len };
	const ProtobufCMessage *msg = *ret = protobuf_c_message_unpack(desc, memory, len, buf);

	if (!msg)
		return "that does not decode";
	if (check_known(msg) < 0)
		return "with unknown fields";
	(void)protobuf_c_message_pack_to_buffer(msg, &again.base);
	return again.differs || again.left != 0 ? "in a form that is not the canonical one" : NULL;
}

static const char *
unpack_message(struct ipc_packet *p, const uint8_t *buf, size_t len)
{
	ProtobufCAllocator arena = {
		.alloc = arena_alloc, .free = arena_free, .allocator_data = p
	};
	ProtobufCMessage *msg;
	const char *wrong;

	p->arena_used = 0;
	wrong = unpack_strictly(ipc_protobuf_desc(p->type), &arena, buf, len, &msg);
	p->msg = msg;
	return wrong;
}

int
ipc_protobuf_put(const ProtobufCMessage *msg, size_t max, struct err *e)
{
	size_t size = protobuf_c_message_get_packed_size(msg);
	cleanup_free uint8_t *bytes = NULL;
	int fd;

	if (size > max)
		return err_say(e, -EMSGSIZE, "%s would have %zu bytes, %zu are allowed",
		    msg->descriptor->short_name, size, max);
	bytes = mem_zeroed(1, size + 1);
	(void)protobuf_c_message_pack(msg, bytes);
	fd = fd_memfd_sealed(msg->descriptor->short_name, bytes, size);
	explicit_bzero(bytes, size);
	return fd < 0 ? err_set(e, fd, "put %s into a memfd", msg->descriptor->short_name) : fd;
}

static void *
limited_alloc(void *data, size_t size)
{
	struct ipc_protobuf_memory *m = data;

	if (size > m->left)
		return NULL;
	m->left -= size;
	return malloc(size);
}

static void
limited_free(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

void
ipc_protobuf_limit(struct ipc_protobuf_memory *m, size_t bytes)
{
	m->base = (ProtobufCAllocator){
		.alloc = limited_alloc, .free = limited_free, .allocator_data = m
	};
	m->left = bytes;
}

ProtobufCMessage *
ipc_protobuf_take(const ProtobufCMessageDescriptor *desc, int fd, size_t max, struct err *e)
{
	struct ipc_protobuf_memory memory;
	ProtobufCMessage *msg = NULL;
	const char *wrong;
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, max, &map, &len);

	if (r < 0) {
		(void)err_set(e, r, "map the memfd of %s", desc->short_name);
		return NULL;
	}
	ipc_protobuf_limit(&memory, IPC_PROTOBUF_MEMORY(max));
	wrong = unpack_strictly(desc, &memory.base, map, len, &msg);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	if (!wrong)
		return msg;
	(void)err_say(e, -EPROTO, "%s in a memfd %s", desc->short_name, wrong);
	if (msg)
		protobuf_c_message_free_unpacked(msg, NULL);
	return NULL;
}

const struct ipc_codec ipc_protobuf = { .pack = pack, .unpack = unpack_message };
