/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_value.h: values with the types of Go, as templates compute with them. A value is small and is
 * passed by value; what it refers to is in an arena and is not changed, but for maps. Runs in:
 * tests.
 */
#ifndef DROVER_TEMPLATE_GO_VALUE_H
#define DROVER_TEMPLATE_GO_VALUE_H

#include "lang/text.h"

enum go_kind {
	GO_INVALID,
	GO_BOOL,
	GO_INT, /* and types of int64's size that are not named int64 */
	GO_UINT,
	GO_FLOAT,
	GO_STRING,
	GO_SLICE,
	GO_MAP,
	GO_STRUCT,
	GO_POINTER, /* to a struct */
	GO_FUNC,
	GO_CHAN, /* of the integers in a range */
	GO_INTERFACE,
};

struct go_value;
struct go_function;

struct go_field {
	const char *name;
	const struct go_type *type;
	bool hidden; /* not exported */
};

struct go_type {
	enum go_kind kind;
	const char *name;           /* as %T prints it */
	const struct go_type *elem; /* of a slice, map, pointer or channel */
	const struct go_type *key;  /* of a map */
	const struct go_type *base; /* a named type: the type that it can be assigned to */
	const struct go_field *fields;
	size_t n_fields;
	const struct go_function *methods;
	size_t n_methods;
	/* Stringer: the text that fmt prints for the value. */
	struct go_value (*string)(struct arena *a, const struct go_value *v);
};

struct go_list {
	struct go_value *items; /* NULL: nil */
	size_t n, room;         /* room: its capacity */
};

struct go_value {
	const struct go_type *type; /* NULL: no value, or a nil of no type */
	union {
		bool boolean;
		int64_t i;
		uint64_t u;
		double f;
		struct {
			const char *s;
			size_t len;
		};
		struct go_list list;
		struct go_map *map;      /* NULL: nil */
		struct go_value *fields; /* of a struct; of a pointer: NULL is nil */
		const struct go_function *func;
		struct {
			int64_t from, to; /* a channel that yields from, from + 1 … to - 1 */
		};
		const void
		    *nil; /* of an interface: NULL, because any other value has its own type */
	};
};

struct go_member {
	struct go_value key, value;
};

/* Sorted by key, as fmt and range order it. */
struct go_map {
	struct go_member *v;
	size_t n, room;
};

extern const struct go_type go_type_bool, go_type_int, go_type_int32, go_type_int64, go_type_uint8,
    go_type_uint64, go_type_float64, go_type_string, go_type_any, go_type_uint, go_type_if_addrs,
    go_type_anys, go_type_strings, go_type_ints, go_type_dict, go_type_any_map, go_type_string_map,
    go_type_anys_map, go_type_port_map, go_type_chan, go_type_func, go_type_value;

static inline enum go_kind
go_kind(struct go_value v)
{
	return v.type ? v.type->kind : GO_INVALID;
}

static const struct go_value go_nothing;

struct go_value go_bool(bool b);
struct go_value go_int(int64_t i);
struct go_value go_int64(int64_t i);
struct go_value go_uint64(uint64_t u);
struct go_value go_float(double f);
struct go_value go_string(const char *s, size_t len);
struct go_value go_text(const char *s); /* ends with NUL */
struct go_value go_text_value(const struct text *t);

/* A slice of n zero values, not nil. */
struct go_value go_slice(struct arena *a, const struct go_type *type, size_t n);
/* The slice with one more item. Only the newest slice of a chain of additions may be added to. */
struct go_value go_append(struct arena *a, struct go_value slice, struct go_value item);
struct go_value go_map(struct arena *a, const struct go_type *type);
/* Returns NULL if the map has no such key. */
struct go_value *go_map_find(const struct go_map *m, struct go_value key);
void go_map_set(struct arena *a, struct go_value map, struct go_value key, struct go_value value);
void go_map_remove(struct go_map *m, struct go_value key);
size_t go_map_len(struct go_value map);

struct go_value go_zero(struct arena *a, const struct go_type *type);
/* Whether it is a nil pointer, slice, map or interface. */
bool go_is_nil(struct go_value v);
/* The truth of `if`. */
bool go_is_true(struct go_value v);
/* The value that pointers lead to; *ret_nil if one of them is nil. */
struct go_value go_indirect(struct go_value v, bool *ret_nil);
/* Whether a value of type `from` can be passed as `to`. */
bool go_assignable(const struct go_type *from, const struct go_type *to);
/* The position of a field in a struct, or in what a pointer refers to; -1 if there is none. */
int go_field(const struct go_type *type, const char *name);
const char *go_type_name(struct go_value v); /* "<nil>" for none */

int go_compare_text(struct go_value a, struct go_value b);
/* The order of keys. */
int go_compare(struct go_value a, struct go_value b);
/* Go's == of two values of one type that can be compared. */
bool go_same(struct go_value a, struct go_value b);
/* reflect.DeepEqual */
bool go_deep_equal(struct arena *arena, struct go_value a, struct go_value b);
bool go_text_is(struct go_value v, const char *s);

#endif
