/* SPDX-License-Identifier: Apache-2.0 */
/* code.h: the code that a process has mapped. Runs in: supervisor, heartbeat. */
#ifndef DROVER_COMMON_CODE_H
#define DROVER_COMMON_CODE_H

/*
 * No longer holds the pages of the program and its libraries that are never written, nor memory
 * that malloc(3) has to spare. For after a start, or whatever else was long and seldom: what is
 * used again comes back by itself, from the page cache.
 */
void code_let_go(void);

#endif
