/* SPDX-License-Identifier: Apache-2.0 */
/* percent.h: percent-encoding, of parts of a URL. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ENGINE_PERCENT_H
#define DROVER_MODEL_ENGINE_PERCENT_H

#include <stdbool.h>

#include "model/engine/text.h"

/* Appends s with all bytes but letters, digits and "-._~" encoded. */
void percent_encode(struct text *t, const char *s);
/* Decodes s in place: the result is never longer. plus: '+' is a space, as in queries. Returns 0;
 * -EINVAL for a '%' without two hexadecimal digits, -EILSEQ for an encoded NUL; then s is unusable.
 */
int percent_decode(char *s, bool plus);

#endif
