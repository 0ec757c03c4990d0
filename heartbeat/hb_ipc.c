// SPDX-License-Identifier: Apache-2.0
/* hb_ipc.c: queues packets while the supervisor does not read. Runs in: heartbeat. */
#include "heartbeat/hb_ipc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proc.h"

struct hb_packet {
	STAILQ_ENTRY(hb_packet) link;
	int fd;
	size_t len;
	uint8_t bytes[];
};

void
hb_ipc_init(struct hb_ipc *ipc)
{
	STAILQ_INIT(&ipc->packets);
	ipc->n = 0;
}

static void
queue_packet(struct hb_ipc *ipc, const uint8_t *bytes, size_t len, int *fd)
{
	struct hb_packet *p = mem_alloc(sizeof *p + len);

	*p = (struct hb_packet){ .fd = steal_fd(fd), .len = len };
	memcpy(p->bytes, bytes, len);
	STAILQ_INSERT_TAIL(&ipc->packets, p, link);
	ipc->n++;
}

void
hb_ipc_tell(struct hb *hb, unsigned type, uint32_t serial, const void *msg, int fd)
{
	static uint8_t bytes[IPC_PACKET_MAX];
	cleanup_close int owned = fd;
	struct err e = { 0 };
	ssize_t len = ipc_encode(IPC_HEARTBEAT, IPC_SUPERVISOR, type, serial, msg, bytes, &e);
	int r = len < 0 ? (int)len : -EAGAIN;

	if (len > 0 && STAILQ_EMPTY(&hb->ipc.packets))
		r = fd_send_msg(FD_IPC, bytes, (size_t)len, &owned, owned >= 0, MSG_DONTWAIT);
	if (r == -EAGAIN)
		queue_packet(&hb->ipc, bytes, (size_t)len, &owned);
	else if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_error("%s to the supervisor: %s", ipc_msg_info(type)->name,
		    e.code ? e.msg : strerrordesc_np(-r));
}

int
hb_ipc_flush(struct hb_ipc *ipc, struct err *e)
{
	struct hb_packet *p;
	int r;

	while ((p = STAILQ_FIRST(&ipc->packets))) {
		r = fd_send_msg(FD_IPC, p->bytes, p->len, &p->fd, p->fd >= 0, MSG_DONTWAIT);
		if (r < 0)
			return r == -EAGAIN ? 0 : err_set(e, r, "send to the supervisor");
		STAILQ_REMOVE_HEAD(&ipc->packets, link);
		ipc->n--;
		close_p(&p->fd);
		free(p);
	}
	return 0;
}
