// SPDX-License-Identifier: Apache-2.0
/* ipc.c: packets between supervisor and helpers. Runs in: supervisor and all helpers. */
#include "common/ipc.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "proto/check_helper.pb-c.h"
#include "proto/csi_helper.pb-c.h"
#include "proto/exec.pb-c.h"
#include "proto/file.pb-c.h"
#include "proto/heartbeat.pb-c.h"
#include "proto/ids.pb-c.h"
#include "proto/mount.pb-c.h"

/* Descriptors of messages are tables of the generated code: a process that links them all pays only
 * for what it touches. */
static const struct ipc_msg_info infos[IPC_TYPE_MAX] = {
#define IPC_MSG(name_, no, from_, to_, bytes, fds, message, symbol)                                \
	[no] = { .name = #name_,                                                                   \
		.from = IPC_##from_,                                                               \
		.to = IPC_##to_,                                                                   \
		.n_fds = (fds),                                                                    \
		.max_bytes = (bytes),                                                              \
		.desc = &symbol##__descriptor },
#include "proto/ipc_msgs.def"
#undef IPC_MSG
};

const struct ipc_msg_info *
ipc_msg_info(unsigned type)
{
	return type < IPC_TYPE_MAX && infos[type].name ? &infos[type] : NULL;
}

const char *
ipc_peer_name(enum ipc_peer peer)
{
	static const char *const names[IPC_PEERS] = {
		[IPC_SUPERVISOR] = "supervisor",
		[IPC_EXEC_HELPER] = "exec-helper",
		[IPC_MOUNT_HELPER] = "mount-helper",
		[IPC_CSI_HELPER] = "csi-helper",
		[IPC_HEARTBEAT] = "heartbeat",
		[IPC_CHECK_HELPER] = "check-helper",
		[IPC_FILE_HELPER] = "file-helper",
		[IPC_HELPER] = "helper",
	};

	return peer < IPC_PEERS ? names[peer] : "?";
}

static bool
peer_matches(enum ipc_peer in_table, enum ipc_peer peer)
{
	return in_table == peer || (in_table == IPC_HELPER && peer != IPC_SUPERVISOR);
}

static const struct ipc_msg_info *
permitted(enum ipc_peer from, enum ipc_peer to, unsigned type)
{
	const struct ipc_msg_info *info = ipc_msg_info(type);

	return info && peer_matches(info->from, from) && peer_matches(info->to, to) ? info : NULL;
}

ssize_t
ipc_encode(enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const ProtobufCMessage *msg, uint8_t buf[IPC_PACKET_MAX], struct err *e)
{
	const struct ipc_msg_info *info = permitted(from, to, type);
	struct ipc_head head = { .type = (uint16_t)type, .serial = serial };
	size_t size;

	if (!info)
		return err_say(e, -EPERM, "message %u may not go from %s to %s", type,
		    ipc_peer_name(from), ipc_peer_name(to));
	if (msg->descriptor != info->desc)
		return err_say(e, -EINVAL, "%s carries a %s, not a %s", info->name,
		    info->desc->name, msg->descriptor->name);
	size = protobuf_c_message_get_packed_size(msg);
	if (size > info->max_bytes || size > IPC_PACKET_MAX - sizeof head)
		return err_say(e, -EMSGSIZE, "%s would have %zu bytes, %u are allowed", info->name,
		    size, info->max_bytes);
	memcpy(buf, &head, sizeof head);
	protobuf_c_message_pack(msg, buf + sizeof head);
	return (ssize_t)(sizeof head + size);
}

/* An allocator that only ever hands out the packet's own memory: no input can make it grow. */
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

/* protobuf-c keeps what it does not know at each level; here that is an error. */
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

/* Packs again and compares on the way, without a second buffer. */
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

	if (len == 0) /* of an empty field, whose data may be NULL */
		return;
	if (len > c->left || memcmp(c->want, data, len) != 0) {
		c->differs = true;
		return;
	}
	c->want += len;
	c->left -= len;
}

/* What is wrong with a packet's body, NULL: nothing; p->msg is set. */
static const char *
unpack(const struct ipc_msg_info *info, const uint8_t *buf, size_t len, unsigned n_fds,
    struct ipc_packet *p)
{
	ProtobufCAllocator arena = {
		.alloc = arena_alloc, .free = arena_free, .allocator_data = p
	};
	struct comparing again = { .base.append = compare_append, .want = buf, .left = len };

	if (len > info->max_bytes)
		return "with too many bytes";
	if (n_fds != info->n_fds)
		return "with another number of descriptors";
	p->arena_used = 0;
	p->msg = protobuf_c_message_unpack(info->desc, &arena, len, buf);
	if (!p->msg)
		return "that does not decode";
	if (check_known(p->msg) < 0)
		return "with unknown fields";
	(void)protobuf_c_message_pack_to_buffer(p->msg, &again.base);
	return again.differs || again.left != 0 ? "in a form that is not the canonical one" : NULL;
}

int
ipc_decode(enum ipc_peer me, enum ipc_peer from, const uint8_t *buf, size_t len, unsigned n_fds,
    struct ipc_packet *p, struct err *e)
{
	const struct ipc_msg_info *info;
	struct ipc_head head;
	const char *wrong;

	if (len < sizeof head)
		return err_say(
		    e, -EPROTO, "%s sent a packet of %zu bytes", ipc_peer_name(from), len);
	memcpy(&head, buf, sizeof head);
	info = permitted(from, me, head.type);
	if (!info || head.zero != 0)
		return err_say(e, -EPROTO, "%s sent message %u, which it may not send to %s",
		    ipc_peer_name(from), head.type, ipc_peer_name(me));
	wrong = unpack(info, buf + sizeof head, len - sizeof head, n_fds, p);
	if (wrong)
		return err_say(e, -EPROTO, "%s sent %s %s", ipc_peer_name(from), info->name, wrong);
	p->type = head.type;
	p->serial = head.serial;
	return 0;
}

int
ipc_send(int sock, enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const ProtobufCMessage *msg, const int *fds, unsigned n_fds, int flags, struct err *e)
{
	uint8_t buf[IPC_PACKET_MAX];
	ssize_t len = ipc_encode(from, to, type, serial, msg, buf, e);
	int r;

	if (len < 0)
		return (int)len;
	if (n_fds != ipc_msg_info(type)->n_fds)
		return err_say(e, -EINVAL, "%s goes with %u descriptors", ipc_msg_info(type)->name,
		    ipc_msg_info(type)->n_fds);
	r = fd_send_msg(sock, buf, (size_t)len, fds, n_fds, flags);
	return r < 0 ? err_set(e, r, "send %s to %s", ipc_msg_info(type)->name, ipc_peer_name(to))
		     : 0;
}

int
ipc_recv(
    int sock, enum ipc_peer me, enum ipc_peer from, struct ipc_packet *p, int flags, struct err *e)
{
	uint8_t buf[IPC_PACKET_MAX];
	size_t n_fds = 0;
	ssize_t n;
	int r;

	p->n_fds = 0;
	n = fd_recv_msg(sock, buf, sizeof buf, p->fds, IPC_FDS_MAX, &n_fds, flags);
	if (n == 0)
		return 0;
	if (n < 0)
		return n == -EAGAIN ? -EAGAIN
				    : err_set(e, (int)n, "receive from %s", ipc_peer_name(from));
	p->n_fds = (unsigned)n_fds;
	r = ipc_decode(me, from, buf, (size_t)n, p->n_fds, p, e);
	if (r < 0) {
		ipc_packet_done(p);
		return r;
	}
	return 1;
}

void
ipc_packet_done(struct ipc_packet *p)
{
	for (unsigned i = 0; i < p->n_fds; i++)
		close_p(&p->fds[i]);
	p->n_fds = 0;
}
