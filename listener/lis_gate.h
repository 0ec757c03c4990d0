/* SPDX-License-Identifier: Apache-2.0 */
/* lis_gate.h: what may be requested at the address of health { address }. Pure. Runs in: listener.
 */
#ifndef DROVER_LISTENER_LIS_GATE_H
#define DROVER_LISTENER_LIS_GATE_H

#include "listener/lis_head.h"

/* Questions of one kind are asked one after the other. */
enum lis_kind { LIS_HEALTH, LIS_PROBE, LIS_METRICS, LIS_KINDS };

/* A question to the supervisor. Two requests with equal questions share an answer. */
struct lis_question {
	enum lis_kind kind;
	enum lis_accept accept; /* of metrics */
	char target[96];        /* written anew: only words of the table */
};

/* Returns 0, or a negative status with the sentence in *ret_why. */
int lis_gate_check(const struct lis_head *head, struct lis_question *ret, const char **ret_why);
bool lis_question_equals(const struct lis_question *a, const struct lis_question *b);

#endif
