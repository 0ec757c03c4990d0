/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h: the holder of drover-tasks.service. Runs in: holder. */
#ifndef DROVER_HOLDER_HOLD_H
#define DROVER_HOLDER_HOLD_H

/* Asks all executors to stop, then waits for them. Returns when no executor runs any more. */
void hold_stop_all(void);

#endif
