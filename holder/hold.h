/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h: the holder of drover-tasks.service. Runs in: holder. */
#ifndef DROVER_HOLDER_HOLD_H
#define DROVER_HOLDER_HOLD_H

/* Asks all executors with a socket in <runtime_dir>/x to stop, then waits for them. Returns when
 * none of them runs any more. */
void hold_stop_all(const char *runtime_dir);

#endif
