/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_time.h: timestamps of functions. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_TIME_H
#define DROVER_HCL_HCL_TIME_H

#include "hcl/hcl_value.h"

/* A date and a time in a zone that is offset_s east of UTC. */
struct hcl_time {
	int64_t year;
	int month, day, hour, minute, second; /* months and days from 1 */
	uint32_t ns;
	int offset_s;
};

bool hcl_time_is_date(int64_t year, int month, int day);
/* As RFC 3339, without a fraction. */
struct hcl_value *hcl_time_text(struct hcl *h, const struct hcl_time *t);

#endif
