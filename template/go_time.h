/* SPDX-License-Identifier: Apache-2.0 */
/* go_time.h: times in UTC as Go prints them. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_TIME_H
#define DROVER_TEMPLATE_GO_TIME_H

#include "template/go_value.h"

/* time.Time: a struct whose only field is hidden. */
extern const struct go_type go_type_time, go_type_duration;

struct go_value go_time(struct arena *a, int64_t ns); /* since 1970 */
int64_t go_time_ns(struct go_value time);

/* time.Format: the layout is written with the parts of Mon Jan 2 15:04:05 MST 2006. */
void go_format_time(struct text *out, int64_t ns, const char *layout, size_t len);
/* time.Duration's String(). */
void go_format_duration(struct text *out, int64_t ns);

#define GO_RFC3339      "2006-01-02T15:04:05Z07:00"
#define GO_RFC3339_NANO "2006-01-02T15:04:05.999999999Z07:00"

#endif
