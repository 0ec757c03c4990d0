/* SPDX-License-Identifier: Apache-2.0 */
/* fet_aws_keys.h: credentials of s3 that the machine has. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_AWS_KEYS_H
#define DROVER_FETCHER_FET_AWS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

/* NULL: none. The caller frees them. */
struct aws_keys {
	char *id, *secret, *token;
};

/* Finds the keys of the profile in the file that AWS_SHARED_CREDENTIALS_FILE names; without
 * profile, those of the environment, or of the file's profile "default", or none. Returns 0, or
 * -errno with *e. */
int aws_keys_of_machine(const char *profile, struct aws_keys *ret, struct err *e);

/* Finds the profile in the text of such a file. Returns whether it is there. */
bool aws_keys_parse(const char *text, size_t len, const char *profile, struct aws_keys *ret);

#endif
