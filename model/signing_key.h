/* SPDX-License-Identifier: Apache-2.0 */
/* signing_key.h: a key pair of the embedded server, without its secret. Runs in: supervisor. */
#ifndef DROVER_MODEL_SIGNING_KEY_H
#define DROVER_MODEL_SIGNING_KEY_H

#include "model/engine/field.h"

struct signing_key {
	char *id, *algorithm; /* a value of "alg" in tokens */
	enum signing_key_state {
		SIGNING_KEY_NONE,
		SIGNING_KEY_ACTIVE,  /* signs new tokens */
		SIGNING_KEY_INACTIVE /* was replaced; its tokens are valid */
	} state;
	int64_t create_time, inactive_time; /* ns since 1970 */
	uint64_t create_index, modify_index;
};

MODEL_DECLARE(signing_key);

#endif
