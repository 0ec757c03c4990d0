/* SPDX-License-Identifier: Apache-2.0 */
/* network_result.h: what CNI plugins answer about an alloc's network. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_NETWORK_RESULT_H
#define DROVER_SUPERVISOR_ALLOC_NETWORK_RESULT_H

#include "common/err.h"
#include "model/alloc.h"

/*
 * Reads the result of the last plugin, JSON as the CNI specification defines it: the addresses of
 * the first interface inside, by its name, that has one, and the DNS settings. Nothing in it is
 * trusted. "{}" is a network without addresses. Returns 0, or -EBADMSG with *e.
 */
int network_result_read(
    const char *text, size_t len, struct alloc_network_status *ret, struct err *e);

#endif
