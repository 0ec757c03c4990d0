/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipc.h: packets of an 8-byte head and one message, over a SOCK_SEQPACKET pair between the
 * supervisor and a helper. proto/ipc_msgs.def lists the messages: fixed records, and protobuf
 * messages for processes without capabilities. Runs in: supervisor and all helpers.
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

/* HELPER stands for any of the helpers in the table. */
enum ipc_peer {
	IPC_SUPERVISOR,
	IPC_EXEC_HELPER,
	IPC_MOUNT_HELPER,
	IPC_CSI_HELPER,
	IPC_HEARTBEAT,
	IPC_CHECK_HELPER,
	IPC_FILE_HELPER,
	IPC_JOB_PARSER,
	IPC_FETCHER,
	IPC_TEMPLATE_RENDERER,
	IPC_LISTENER,
	IPC_IMAGE_FETCHER,
	IPC_IMAGE_UNPACKER,
	IPC_NETWORK_HELPER,
	IPC_HELPER,
	IPC_PEERS
};

enum ipc_type {
#define IPC_RECORD_MSG(name, no, from, to, fds, deadline_ms, record) name = no,
#define IPC_PB_MSG(name, no, from, to, bytes, fds, message, symbol)  name = no,
#include "proto/ipc_msgs.def"
	IPC_TYPE_MAX = 200
};

struct ipc_msg_info {
	const char *name;
	uint8_t from, to; /* values of enum ipc_peer */
	uint8_t n_fds;    /* exact number of descriptors */
	uint32_t max_bytes;
	uint32_t deadline_ms;            /* of the handler; 0 unless it is a request record */
	const struct ipc_record *record; /* NULL for a protobuf message */
};

/* Returns the entry of a message number, or NULL for an unknown one. */
const struct ipc_msg_info *ipc_msg_info(unsigned type);
const char *ipc_peer_name(enum ipc_peer peer);

/* The requester chooses the serial number; a reply has that of its request. */
struct ipc_head {
	uint16_t type;
	uint16_t zero;
	uint32_t serial;
};

/* A received packet. msg points into arena and has the struct of its type, so it is valid as long
 * as the packet is. The receiver closes fds. */
struct ipc_packet {
	unsigned type;
	uint32_t serial;
	const void *msg;
	int fds[IPC_FDS_MAX];
	unsigned n_fds;
	size_t arena_used;
	_Alignas(16) uint8_t arena[IPC_ARENA_SIZE];
};

/* Packs and unpacks the messages that are not records. The only codec is in ipc_protobuf.h. */
struct ipc_codec {
	/* Packs at most max bytes into buf. Returns the size, -EINVAL for a message of another
	 * type, or -EMSGSIZE. */
	ssize_t (*pack)(unsigned type, const void *msg, uint8_t *buf, size_t max, struct err *e);
	/* Sets p->msg to the message of p->type. Returns NULL, or what is wrong with it. */
	const char *(*unpack)(struct ipc_packet *p, const uint8_t *buf, size_t len);
};

/* Sets the codec. To be called before the first packet, in a process that has such messages. */
void ipc_use_codec(const struct ipc_codec *codec);

/*
 * Packs a message into buf (IPC_PACKET_MAX). Returns the size, or -errno with *e: -EPERM if `from`
 * may not send it to `to`; -EMSGSIZE if it is larger than the table allows, or is a record that is
 * not valid (a text did not fit); -EINVAL for a protobuf message of another type or an unknown
 * number.
 */
ssize_t ipc_encode(enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const void *msg, uint8_t buf[IPC_PACKET_MAX], struct err *e);

/*
 * Decodes a packet of `from` to `me` with n_fds descriptors: checks that `from` may send it, then
 * the message, which must have exactly the form that ipc_encode() produces, and copies it into the
 * arena. Returns 0, or -EPROTO with the reason in *e; the connection to that peer must then be
 * closed. Does not touch descriptors.
 */
int ipc_decode(enum ipc_peer me, enum ipc_peer from, const uint8_t *buf, size_t len, unsigned n_fds,
    struct ipc_packet *p, struct err *e);

/* Encodes and sends a message. flags are those of send(2). Returns 0, or -errno with *e; -EAGAIN is
 * possible with MSG_DONTWAIT. */
int ipc_send(int sock, enum ipc_peer from, enum ipc_peer to, unsigned type, uint32_t serial,
    const void *msg, const int *fds, unsigned n_fds, int flags, struct err *e);

/* Receives a packet. Returns 1 if it got one, 0 at end of file, -EAGAIN with MSG_DONTWAIT, -EPROTO
 * (the descriptors are closed), or another -errno, with *e. */
int ipc_recv(
    int sock, enum ipc_peer me, enum ipc_peer from, struct ipc_packet *p, int flags, struct err *e);

/* Closes the descriptors in p->fds. A caller that keeps one sets its entry to -1 first. */
void ipc_packet_done(struct ipc_packet *p);

#endif
