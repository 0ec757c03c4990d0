/* SPDX-License-Identifier: Apache-2.0 */
/* usage_sample.h: when samples of counters are taken, and how they are read. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_NODE_USAGE_SAMPLE_H
#define DROVER_SUPERVISOR_NODE_USAGE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"

#define USAGE_NEW_NS (100 * NS_PER_MS) /* a younger sample is used again */
#define USAGE_OLD_NS (10 * NS_PER_S)   /* an older sample is not compared with a new one */

static inline bool
usage_is_due(int64_t now_ns, int64_t last_ns)
{
	return last_ns == 0 || now_ns - last_ns >= USAGE_NEW_NS;
}

/* Returns true if there are two samples (0: none) near enough to each other to show the usage of
 * now. */
static inline bool
usage_is_pair(int64_t before_ns, int64_t last_ns)
{
	return before_ns != 0 && last_ns - before_ns <= USAGE_OLD_NS;
}

/* Returns the number in the line that begins with key, such as "rss " or "MemFree:"; 0 if there is
 * no such line. */
static inline uint64_t
usage_number(const char *text, const char *key)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, key, strlen(key)) == 0)
			return strtoull(line + strlen(key), NULL, 10);
	return 0;
}

#endif
