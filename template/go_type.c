/* SPDX-License-Identifier: Apache-2.0 */
/* go_type.c: the types of Go that values have, but for those of sources. Runs in:
 * template-renderer. */
#include "template/go_value.h"

#define TYPE(symbol, text, type_kind, ...)                                                         \
	const struct go_type go_type_##symbol = { .kind = (type_kind), .name = (text), __VA_ARGS__ }

TYPE(bool, "bool", GO_BOOL);
TYPE(int, "int", GO_INT);
TYPE(int32, "int32", GO_INT);
TYPE(int64, "int64", GO_INT);
TYPE(uint8, "uint8", GO_UINT);
TYPE(uint, "uint", GO_UINT);
TYPE(uint64, "uint64", GO_UINT);
TYPE(float64, "float64", GO_FLOAT);
TYPE(string, "string", GO_STRING);
TYPE(any, "interface {}", GO_INTERFACE);
TYPE(anys, "[]interface {}", GO_SLICE, .elem = &go_type_any);
TYPE(strings, "[]string", GO_SLICE, .elem = &go_type_string);
TYPE(ints, "[]int", GO_SLICE, .elem = &go_type_int);
TYPE(dict, "map[string]interface {}", GO_MAP, .key = &go_type_string, .elem = &go_type_any);
TYPE(any_map, "map[interface {}]interface {}", GO_MAP, .key = &go_type_any, .elem = &go_type_any);
TYPE(string_map, "map[string]string", GO_MAP, .key = &go_type_string, .elem = &go_type_string);
TYPE(anys_map, "map[string][]interface {}", GO_MAP, .key = &go_type_string, .elem = &go_type_anys);
TYPE(port_map, "map[int][]interface {}", GO_MAP, .key = &go_type_int, .elem = &go_type_anys);
TYPE(chan, "<-chan int64", GO_CHAN, .elem = &go_type_int64);
TYPE(func, "func(...)", GO_FUNC);
/* Of parameters only: builtin functions take values with or without a type. */
TYPE(value, "reflect.Value", GO_INTERFACE);
