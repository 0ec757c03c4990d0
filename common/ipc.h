/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc.h: one packet = an 8-byte head and one message, over a SOCK_SEQPACKET pair between the
 * supervisor and a helper. proto/ipc_msgs.def says what may travel: records, and for processes
 * without capabilities protobuf messages. Runs in: supervisor and all helpers.
 */
#ifndef DROVER_COMMON_IPC_H
#define DROVER_COMMON_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/ipc_record.h"

#define IPC_PACKET_MAX 65536
#define IPC_ARENA_SIZE (256 * 1024)
#define IPC_FDS_MAX    1

/* HELPER in the table stands for any of the helpers. */
enum ipc_peer {
	IPC_SUPERVISOR,
	IPC_EXEC_HELPER,
	IPC_MOUNT_HELPER,
	IPC_CSI_HELPER,
	IPC_HEARTBEAT,
	IPC_CHECK_HELPER,
	IPC_FILE_HELPER,
	IPC_HELPER,
	IPC_PEERS
};

enum ipc_type {
#define IPC_RECORD_MSG(name, no, from, to, fds, deadline_ms, record) name = no,
#define IPC_PB_MSG(name, no, from, to, bytes, fds, message, symbol)  name = no,
#include "proto/ipc_msgs.def"
	IPC_TYPE_MAX = 128
};

struct ipc_msg_info {
	const char *name;
	uint8_t from, to; /* enum ipc_peer */
	uint8_t n_fds;    /* exactly */
	uint32_t max_bytes;
	uint32_t deadline_ms;            /* of the handler: 0 in what is no request of a record */
	const struct ipc_record *record; /* NULL: it is a protobuf message */
};

/* NULL for a number that is not in the table. */
const struct ipc_msg_info *ipc_msg_info(unsigned type);
const char *ipc_peer_name(enum ipc_peer peer);

/* Serial numbers are the requester's; a reply carries its request's. */
struct ipc_head {
	uint16_t type;
	uint16_t zero;
	uint32_t serial;
};

/* A received packet. msg is the struct of its type; it lives in arena, so it is valid as long as
 * the packet is. fds are the holder's to close. */
struct ipc_packet {
	unsigned type;
	uint32_t serial;
	const void *msg;
	int fds[IPC_FDS_MAX];
	unsigned n_fds;
	size_t arena_used;
	_Alignas(16) uint8_t arena[IPC_ARENA_SIZE];
};

/* How a process packs and unpacks messages that are no records; ipc_protobuf.h has the only one. */
struct ipc_codec {
	/* Packs at most max bytes into buf. Returns the size; -EINVAL for a message of another
	 * type, -EMSGSIZE. */
	ssize_t (*pack)(unsigned type, const void *msg, uint8_t *buf, size_t max, struct err *e);
	/* Sets p->msg to the message of p->type. Returns NULL, or what is wrong with it. */
	const char *(*unpack)(struct ipc_packet *p, const uint8_t *buf, size_t len);
};

/* Before the first packet, in a process that has such messages. */
void ipc_use_codec(const struct ipc_codec *codec);

/*
 * Packs into buf (IPC_PACKET_MAX). Returns the size; -EPERM if from may not send this to `to`,
 * -EMSGSIZE beyond the table's limit or for a record that is not valid (a text that did not fit),
 * -EINVAL for a protobuf message of another type or a number that is not in the table.
 */
ssize_t ipc_encode(enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const void *msg, uint8_t buf[IPC_PACKET_MAX], struct err *e);

/*
 * Decodes one packet that came from `from` to `me` with n_fds descriptors: the permit check, then
 * the message's, which accepts exactly what ipc_encode() makes; it is copied into the arena.
 * -EPROTO with the reason in *e; the peer is then to be cut off. Does not touch descriptors.
 */
int ipc_decode(enum ipc_peer me, enum ipc_peer from, const uint8_t *buf, size_t len, unsigned n_fds,
    struct ipc_packet *p, struct err *e);

/* Encodes and sends in one call. flags as for send(2): MSG_DONTWAIT gives -EAGAIN. */
int ipc_send(int sock, enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const void *msg, const int *fds, unsigned n_fds, int flags, struct err *e);

/* Receives one. 1 got one, 0 end of file, -EAGAIN with MSG_DONTWAIT, -EPROTO (descriptors closed),
 * or another -errno. */
int ipc_recv(
    int sock, enum ipc_peer me, enum ipc_peer from, struct ipc_packet *p, int flags, struct err *e);

/* Closes the descriptors that nobody took out of p->fds (taken ones are set to -1). */
void ipc_packet_done(struct ipc_packet *p);

#endif
