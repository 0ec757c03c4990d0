// SPDX-License-Identifier: Apache-2.0
/* similar.c: finds the name that somebody probably meant. Runs in: supervisor, cli, the launcher's
 * configuration child. */
#include "common/similar.h"

#include <string.h>

/* The edit distance of two words, where an exchange of neighbours counts as one edit. Words are cut
 * at 40 bytes. */
static unsigned
edit_distance(const char *a, const char *b)
{
	enum { MAX = 40 };
	size_t n = strnlen(a, MAX), m = strnlen(b, MAX);
	unsigned d[MAX + 1][MAX + 1];

	for (size_t i = 0; i <= n; i++)
		d[i][0] = (unsigned)i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	return d[n][m];
}

const char *
similar_name(const char *name, const char *const *names, size_t n)
{
	unsigned best = (unsigned)strlen(name) / 3 + 1;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		unsigned d = edit_distance(name, names[i]);

		if (d < best || (d == best && !found && d < strlen(name))) {
			best = d;
			found = names[i];
		}
	}
	return found;
}
