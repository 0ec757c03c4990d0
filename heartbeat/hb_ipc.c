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
#include "common/proc.h"

struct hb_packet {
	struct hb_packet *next;
	int fd;
	size_t len;
	uint8_t bytes[];
};

void
hb_ipc_init(struct hb_ipc *ipc)
{
	ipc->first = NULL;
	ipc->end = &ipc->first;
	ipc->n = 0;
}

static int
queue(struct hb_ipc *ipc, const uint8_t *bytes, size_t len, int *fd, struct err *e)
{
	struct hb_packet *p = malloc(sizeof *p + len);

	if (!p)
		return err_set(e, -ENOMEM, "keep a message for the supervisor");
	*p = (struct hb_packet){ .fd = steal_fd(fd), .len = len };
	memcpy(p->bytes, bytes, len);
	*ipc->end = p;
	ipc->end = &p->next;
	ipc->n++;
	return 0;
}

void
hb_ipc_tell(struct hb *hb, unsigned type, uint32_t serial, const void *msg, int fd)
{
	static uint8_t bytes[IPC_PACKET_MAX];
	cleanup_close int owned = fd;
	struct err e = { 0 };
	ssize_t len = ipc_encode(IPC_HEARTBEAT, IPC_SUPERVISOR, type, serial, msg, bytes, &e);
	int r = (int)len;

	if (len > 0 && !hb->ipc.first)
		r = fd_send_msg(FD_IPC, bytes, (size_t)len, &owned, owned >= 0, MSG_DONTWAIT);
	if (r == -EAGAIN || (len > 0 && hb->ipc.first))
		r = queue(&hb->ipc, bytes, (size_t)len, &owned, &e);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		log_error("%s to the supervisor: %s", ipc_msg_info(type)->name,
		    e.code ? e.msg : strerrordesc_np(-r));
}

int
hb_ipc_flush(struct hb_ipc *ipc, struct err *e)
{
	struct hb_packet *p;
	int r;

	while ((p = ipc->first)) {
		r = fd_send_msg(FD_IPC, p->bytes, p->len, &p->fd, p->fd >= 0, MSG_DONTWAIT);
		if (r < 0)
			return r == -EAGAIN ? 0 : err_set(e, r, "send to the supervisor");
		ipc->first = p->next;
		if (!ipc->first)
			ipc->end = &ipc->first;
		ipc->n--;
		close_p(&p->fd);
		free(p);
	}
	return 0;
}
