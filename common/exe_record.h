/* SPDX-License-Identifier: Apache-2.0 */
/* exe_record.h: the sum and the reader of a run's record (proto/executor.h). Runs in: supervisor,
 * exec-helper, executor. */
#ifndef DROVER_COMMON_EXE_RECORD_H
#define DROVER_COMMON_EXE_RECORD_H

#include "proto/executor.h"

/* exe_record.c. The sum of r as it stands. */
uint64_t exe_record_sum(const struct exe_record *r);
/* exe_record_parse.c. 0; -EBADMSG unless magic, version, sizes, run and sum are right. buf
 * has len bytes. */
int exe_record_parse(const void *buf, size_t len, const uint8_t run[16], struct exe_record *ret);

#endif
