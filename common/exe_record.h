/* SPDX-License-Identifier: Apache-2.0 */
/* exe_record.h: checksum and parser of a run's record (proto/executor.h). Runs in: supervisor,
 * exec-helper, executor. */
#ifndef DROVER_COMMON_EXE_RECORD_H
#define DROVER_COMMON_EXE_RECORD_H

#include "proto/executor.h"

/* In exe_record.c. Returns the checksum of r's current contents. */
uint64_t exe_record_sum(const struct exe_record *r);
/* In exe_record_parse.c. Parses the len bytes at buf. Returns 0, or -EBADMSG unless magic, version,
 * sizes, run and checksum are right. */
int exe_record_parse(const void *buf, size_t len, const uint8_t run[16], struct exe_record *ret);

#endif
