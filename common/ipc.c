// SPDX-License-Identifier: Apache-2.0
/* ipc.c: packets between supervisor and helpers. Runs in: supervisor and all helpers. */
#include "common/ipc.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"

static const struct ipc_msg_info infos[IPC_TYPE_MAX] = {
#define IPC_RECORD_MSG(name_, no, from_, to_, fds, deadline, record_)                              \
	[no] = { .name = #name_,                                                                   \
		.from = IPC_##from_,                                                               \
		.to = IPC_##to_,                                                                   \
		.n_fds = (fds),                                                                    \
		.max_bytes = sizeof(struct record_),                                               \
		.deadline_ms = (deadline),                                                         \
		.record = &record_##_record },
#define IPC_PB_MSG(name_, no, from_, to_, bytes, fds, message, symbol)                             \
	[no] = { .name = #name_,                                                                   \
		.from = IPC_##from_,                                                               \
		.to = IPC_##to_,                                                                   \
		.n_fds = (fds),                                                                    \
		.max_bytes = (bytes) },
#include "proto/ipc_msgs.def"
};

#define IPC_RECORD_MSG(name, no, from, to, fds, deadline_ms, record)                               \
	_Static_assert(sizeof(struct ipc_head) + sizeof(struct record) <= IPC_PACKET_MAX, #name);
#include "proto/ipc_msgs.def"

static const struct ipc_codec *codec; /* NULL in a process that receives only records */

void
ipc_use_codec(const struct ipc_codec *used)
{
	codec = used;
}

const struct ipc_msg_info *
ipc_msg_info(unsigned type)
{
	return type < IPC_TYPE_MAX && infos[type].name ? &infos[type] : NULL;
}

static const char *const peer_names[IPC_PEERS] = {
	[IPC_SUPERVISOR] = "supervisor",
	[IPC_EXEC_HELPER] = "exec-helper",
	[IPC_MOUNT_HELPER] = "mount-helper",
	[IPC_CSI_HELPER] = "csi-helper",
	[IPC_HEARTBEAT] = "heartbeat",
	[IPC_CHECK_HELPER] = "check-helper",
	[IPC_FILE_HELPER] = "file-helper",
	[IPC_JOB_PARSER] = "job-parser",
	[IPC_FETCHER] = "fetcher",
	[IPC_TEMPLATE_RENDERER] = "template-renderer",
	[IPC_LISTENER] = "listener",
	[IPC_IMAGE_FETCHER] = "image-fetcher",
	[IPC_IMAGE_UNPACKER] = "image-unpacker",
	[IPC_NETWORK_HELPER] = "network-helper",
	[IPC_HELPER] = "helper",
};

const char *
ipc_peer_name(enum ipc_peer peer)
{
	return peer < IPC_PEERS ? peer_names[peer] : "?";
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
ipc_encode(enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial, const void *msg,
    uint8_t buf[IPC_PACKET_MAX], struct err *e)
{
	const struct ipc_msg_info *info = permitted(from, to, type);
	struct ipc_head head = { .type = (uint16_t)type, .serial = serial };
	ssize_t n;

	if (!info)
		return err_say(e, -EPERM, "message %u may not go from %s to %s", type,
		    ipc_peer_name(from), ipc_peer_name(to));
	memcpy(buf, &head, sizeof head);
	if (!info->record) {
		n = codec->pack(type, msg, buf + sizeof head, info->max_bytes, e);
		return n < 0 ? n : (ssize_t)sizeof head + n;
	}
	n = ipc_record_check(info->record, msg, info->record->size);
	if (n < 0)
		return err_say(
		    e, -EMSGSIZE, "%s has a value that does not fit its field", info->name);
	memcpy(buf + sizeof head, msg, (size_t)n);
	return (ssize_t)sizeof head + n;
}

/* Checks a packet's body and sets p->msg. Returns NULL, or what is wrong with the body. */
static const char *
unpack_body(const struct ipc_msg_info *info, const uint8_t *buf, size_t len, unsigned n_fds,
    struct ipc_packet *p)
{
	if (len > info->max_bytes)
		return "that is too large";
	if (n_fds != info->n_fds)
		return "with the wrong number of descriptors";
	if (!info->record)
		return codec->unpack(p, buf, len);
	if (ipc_record_check(info->record, buf, len) != (ssize_t)len)
		return "in a form that is not valid";
	p->arena_used = len;
	p->msg = memcpy(p->arena, buf, len);
	return NULL;
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
	p->type = head.type;
	p->serial = head.serial;
	wrong = unpack_body(info, buf + sizeof head, len - sizeof head, n_fds, p);
	if (wrong)
		return err_say(e, -EPROTO, "%s sent %s %s", ipc_peer_name(from), info->name, wrong);
	return 0;
}

int
ipc_send(int sock, enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const void *msg, const int *fds, unsigned n_fds, int flags, struct err *e)
{
	uint8_t buf[IPC_PACKET_MAX];
	ssize_t len = ipc_encode(from, to, type, serial, msg, buf, e);
	int r;

	if (len < 0)
		return (int)len;
	if (n_fds != ipc_msg_info(type)->n_fds)
		return err_say(e, -EINVAL, "%s needs %u descriptors", ipc_msg_info(type)->name,
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
