// SPDX-License-Identifier: Apache-2.0
/* exe_request.c: parses the messages of peers. Runs in: executor, after its drop. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "executor/exe.h"

static bool
is_signal(uint32_t signal)
{
	return signal >= 1 && signal < _NSIG;
}

int
exe_request_parse(const void *buf, size_t len, struct exe_request *ret)
{
	struct exe_head head;
	struct exe_signal signal;
	struct exe_stop stop;
	struct exe_lease lease;

	if (len < sizeof head)
		return -EBADMSG;
	memcpy(&head, buf, sizeof head);
	if (head.version < 1 || head.size != len)
		return -EBADMSG;
	switch (head.type) {
	case EXE_SIGNAL:
		if (len < sizeof signal)
			return -EBADMSG;
		memcpy(&signal, buf, sizeof signal);
		if (!is_signal(signal.signal))
			return -EBADMSG;
		*ret = (struct exe_request){ .type = EXE_SIGNAL, .signal = signal.signal };
		return 0;
	case EXE_STOP:
		if (len < sizeof stop)
			return -EBADMSG;
		memcpy(&stop, buf, sizeof stop);
		if (stop.signal != 0 && !is_signal(stop.signal))
			return -EBADMSG;
		*ret = (struct exe_request){
			.type = EXE_STOP,
			.signal = stop.signal,
			.value_ms = stop.timeout_ms,
		};
		return 0;
	case EXE_LEASE:
		if (len < EXE_LEASE_V1_SIZE)
			return -EBADMSG;
		memset(&lease, 0, sizeof lease);
		memcpy(&lease, buf, len < sizeof lease ? EXE_LEASE_V1_SIZE : sizeof lease);
		if (lease.kill_signal != 0 && !is_signal(lease.kill_signal))
			return -EBADMSG;
		*ret = (struct exe_request){
			.type = EXE_LEASE,
			.signal = lease.kill_signal,
			.value_ms = lease.limit_ms,
			.kill_timeout_ms = lease.kill_timeout_ms,
		};
		return 0;
	}
	return -EBADMSG;
}
