/* SPDX-License-Identifier: Apache-2.0 */
/* acl_words.h: the capabilities of policies as bits: CAP_READ_JOB, OPERATOR_KEYRING_READ and their
 * like. For the files of this directory. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ACL_ACL_WORDS_H
#define DROVER_SUPERVISOR_ACL_ACL_WORDS_H

#include <stdint.h>

enum {
#define ACL_CAP(name, ...) CAP_NUMBER_##name,
#include "supervisor/acl/acl_caps.def"
};

enum {
#define ACL_OPERATOR_CAP(name, ...) OPERATOR_NUMBER_##name,
#include "supervisor/acl/acl_caps.def"
};

enum {
#define ACL_CAP(name, ...)          CAP_##name = UINT64_C(1) << CAP_NUMBER_##name,
#define ACL_OPERATOR_CAP(name, ...) OPERATOR_##name = UINT64_C(1) << OPERATOR_NUMBER_##name,
#include "supervisor/acl/acl_caps.def"
};

/* Of host_volume. */
enum { HOST_DENY = CAP_DENY, HOST_READ = 1 << 1, HOST_WRITE = 1 << 2 };
/* Of variables: enum acl_variable. */
enum { VARIABLE_DENY = CAP_DENY };

#endif
