/* SPDX-License-Identifier: Apache-2.0 */
/* hook_checks.h: the checks of an alloc that has a runner. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_CHECKS_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_CHECKS_H

#include "supervisor/service/checks.h"

struct alloc_runner;

struct checks *alloc_checks(const struct alloc_runner *ar);

#endif
