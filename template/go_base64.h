/* SPDX-License-Identifier: Apache-2.0 */
/* go_base64.h: base64 and base32 with the sentences of Go. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_BASE64_H
#define DROVER_TEMPLATE_GO_BASE64_H

#include "template/go_value.h"

enum go_base64 { GO_BASE64, GO_BASE64_URL, GO_BASE32 };

struct go_value go_encode_base64(struct arena *a, struct go_value s, enum go_base64 kind);
/* Appends what the text stands for. Returns NULL, or a sentence. */
const char *go_decode_base64(struct text *t, struct go_value s, enum go_base64 kind);

#endif
