/* SPDX-License-Identifier: Apache-2.0 */
/* go_strings.h: what Go's package strings does. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_STRINGS_H
#define DROVER_TEMPLATE_GO_STRINGS_H

#include "template/go_value.h"

struct go_value go_trim_space(struct go_value s);
/* Without the characters of the set at its ends. */
struct go_value go_trim(struct go_value s, struct go_value set);
struct go_value go_trim_prefix(struct go_value s, struct go_value prefix);
struct go_value go_trim_suffix(struct go_value s, struct go_value suffix);
bool go_has_prefix(struct go_value s, struct go_value prefix);
bool go_has_suffix(struct go_value s, struct go_value suffix);
bool go_contains(struct arena *a, struct go_value s, struct go_value part);

/* A []string of at most `most` parts; 0: none, below 0: all. An empty separator splits between
 * characters. */
struct go_value go_split(struct arena *a, struct go_value s, struct go_value sep, int64_t most);
struct go_value go_join(struct arena *a, struct go_value strings, struct go_value sep);
/* An empty text is found between all characters. */
struct go_value go_replace(
    struct arena *a, struct go_value s, struct go_value from, struct go_value to);
struct go_value go_upper(struct arena *a, struct go_value s);
struct go_value go_lower(struct arena *a, struct go_value s);
/* Maps each character. */
struct go_value go_map_chars(struct arena *a, struct go_value s, uint32_t (*map)(uint32_t));
uint32_t go_upper_char(uint32_t ch);
uint32_t go_lower_char(uint32_t ch);
uint32_t go_title_char(uint32_t ch);
/* What strval of sprig and %v make of a value. */
struct go_value go_to_text(struct arena *a, struct go_value v);

#endif
