/* SPDX-License-Identifier: Apache-2.0 */
/* code.h: releases memory that a process can do without. Runs in: supervisor, heartbeat. */
#ifndef DROVER_COMMON_CODE_H
#define DROVER_COMMON_CODE_H

/*
 * Unmaps the read-only pages of the program and its libraries, and returns malloc(3)'s free memory.
 * To be called after a start or another long and rare step; the kernel maps pages again from the
 * page cache when they are used.
 */
void code_let_go(void);

#endif
