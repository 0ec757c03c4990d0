/* SPDX-License-Identifier: Apache-2.0 */
/* run_record.h: the record of a run, <data>/run/<run>.rec. Executors outlive upgrades of everything
 * else, so this file is append-only. Fields are little-endian and naturally aligned. Runs in:
 * supervisor, exec-helper, executor. */
#ifndef DROVER_PROTO_RUN_RECORD_H
#define DROVER_PROTO_RUN_RECORD_H

#include <stdint.h>

#define EXE_RECORD_MAGIC   0x6365722d72657672ull
#define EXE_RECORD_SIZE    256
#define EXE_RECORD_VERSION 1

/*
 * Written as a whole (one pwrite) by exec-helper when the run is made (state EXE_SETTING_UP, no
 * pids), and by the executor when the task starts and when it has ended. sum is FNV-1a 64 over all
 * bytes before it.
 */
struct exe_record {
	uint64_t magic;
	uint32_t version, size;
	uint8_t run[16], alloc[16];
	char boot_id[40];
	uint32_t state, step;
	int32_t error;
	uint32_t detail;
	uint32_t executor_pid, task_pid;
	uint64_t task_start_ticks;
	uint64_t started_boot_ns, started_real_ns;
	uint32_t flags;
	int32_t exit_code, exit_signal;
	uint32_t driver; /* enum driver; 0: recorded by an earlier version */
	uint64_t ended_boot_ns, ended_real_ns;
	uint64_t lease_limit_ms, lease_last_ok_ns, lease_late_ns;
	uint32_t id_range; /* of a container (container_ids.h); 0: it is privileged, no container,
			      or an earlier version made the record */
	uint8_t pad[52];
	uint64_t sum;
};

_Static_assert(sizeof(struct exe_record) == EXE_RECORD_SIZE, "the record is 256 bytes");

#endif
