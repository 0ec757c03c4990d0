/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h: macros for the files that define field tables. Runs in: supervisor, cli.
 *
 * A table is `#define S job`, then one F_…(member, "JSONName", extras) for each member, in the
 * order in which JSON shows them. Each macro checks the type of the member. Extras are designated
 * initialisers: .flags, .wire, .names …
 */
#ifndef DROVER_MODEL_ENGINE_TABLE_H
#define DROVER_MODEL_ENGINE_TABLE_H

#include "model/engine/field.h"

enum field_kind {
	FIELD_BOOL,
	FIELD_OPT_BOOL,
	FIELD_INT,
	FIELD_UINT,
	FIELD_DOUBLE,
	FIELD_STRING,
	FIELD_DURATION,
	FIELD_TIME,
	FIELD_ENUM,
	FIELD_STRUCT,  /* the member is the struct */
	FIELD_POINTER, /* may be NULL */
	FIELD_LIST,
	FIELD_MAP,
	FIELD_STRINGS,
	FIELD_INTS,
	FIELD_STRING_MAP,
	FIELD_INT_MAP,
	FIELD_SET,  /* struct strings; in JSON an object whose values are null */
	FIELD_RAWS, /* struct raws: a list that is not decoded; only in msgpack */
	FIELD_JSON,
	FIELD_KINDS
};

enum field_flags {
	FIELD_CAN_UNSET = 1 << 0, /* starts as MODEL_UNSET or OPT_UNSET, which is null in JSON */
	FIELD_HAS_DEFAULT = 1 << 1,
	FIELD_NOT_NIL = 1 << 2,    /* an empty list or map is encoded as [] or {}, never as null; in
				      msgpack also where empty members are left out */
	FIELD_OMIT_EMPTY = 1 << 3, /* left out when empty */
	FIELD_AS_NUMBER = 1 << 4,  /* an enum that is a number in JSON; the name is accepted too */
	FIELD_AS_OBJECT = 1 << 5,  /* raw JSON that must be an object */
	FIELD_NO_EQUAL = 1 << 6,
	FIELD_IN_PLACE = 1 << 7, /* may change while the alloc keeps running */
	FIELD_NO_JSON = 1 << 8,  /* only in msgpack */
	FIELD_NO_WIRE = 1 << 9,  /* only in JSON */
	FIELD_SECRET = 1 << 10,  /* shown as null, or ["[REDACTED]"] for strings */
	FIELD_BYTES = 1 << 11,   /* base64 in memory and in JSON, bytes in msgpack */
	FIELD_SEALED = 1 << 12,  /* a secret: left out by MODEL_ROW; strings are overwritten when
				    freed */
	FIELD_AS_TEXT = 1 << 13, /* a duration that is a text in JSON, "" for 0 */
	FIELD_LONG = 1 << 14, /* a text that is not copied for elements of other lists: parts.h */
};

/* Kept small: the supervisor has 1,700 of these, and their relocations make the pages its own. */
struct field {
	const char *name; /* in JSON */
	const char *wire; /* in msgpack; NULL: as name */
	uint16_t name_len;
	uint16_t flags;
	uint16_t offset;
	uint8_t kind;
	uint8_t n_names;
	union {
		const struct type *sub;   /* of a struct, or of the elements */
		const char *const *names; /* of an enum's values */
	};
	union {
		/* Lists, pointers: another table when it is encoded; NULL: sub. */
		const struct type *shown;
		int64_t number;   /* default of a number */
		const char *text; /* default of a string */
	};
};

#define FIELD_CHECK(condition) (0 * sizeof(char[(condition) ? 1 : -1]))
#define FIELD_MEMBER(m)        (((struct S *)0)->m)
#define FIELD_IS(a, ctype)     __builtin_types_compatible_p(__typeof__(a), ctype)

#define FIELD_(m, n, k, condition, ...)                                                            \
	{                                                                                          \
		.name = n, .name_len = sizeof(n) - 1, .kind = k,                                   \
		.offset = offsetof(struct S, m) + FIELD_CHECK(condition), __VA_ARGS__              \
	}
#define FIELD_SCALAR(m, n, k, ctype, ...)                                                          \
	FIELD_(m, n, k, FIELD_IS(FIELD_MEMBER(m), ctype), __VA_ARGS__)

#define F_BOOL(m, n, ...)       FIELD_SCALAR(m, n, FIELD_BOOL, bool, __VA_ARGS__)
#define F_INT(m, n, ...)        FIELD_SCALAR(m, n, FIELD_INT, int64_t, __VA_ARGS__)
#define F_UINT(m, n, ...)       FIELD_SCALAR(m, n, FIELD_UINT, uint64_t, __VA_ARGS__)
#define F_DOUBLE(m, n, ...)     FIELD_SCALAR(m, n, FIELD_DOUBLE, double, __VA_ARGS__)
#define F_STRING(m, n, ...)     FIELD_SCALAR(m, n, FIELD_STRING, char *, __VA_ARGS__)
#define F_DURATION(m, n, ...)   FIELD_SCALAR(m, n, FIELD_DURATION, int64_t, __VA_ARGS__)
#define F_TIME(m, n, ...)       FIELD_SCALAR(m, n, FIELD_TIME, int64_t, __VA_ARGS__)
#define F_STRINGS(m, n, ...)    FIELD_SCALAR(m, n, FIELD_STRINGS, struct strings, __VA_ARGS__)
#define F_SET(m, n, ...)        FIELD_SCALAR(m, n, FIELD_SET, struct strings, __VA_ARGS__)
#define F_INTS(m, n, ...)       FIELD_SCALAR(m, n, FIELD_INTS, struct ints, __VA_ARGS__)
#define F_STRING_MAP(m, n, ...) FIELD_SCALAR(m, n, FIELD_STRING_MAP, struct string_map, __VA_ARGS__)
#define F_INT_MAP(m, n, ...)    FIELD_SCALAR(m, n, FIELD_INT_MAP, struct int_map, __VA_ARGS__)
#define F_JSON(m, n, ...)       FIELD_SCALAR(m, n, FIELD_JSON, json_t *, __VA_ARGS__)
#define F_RAWS(m, n)                                                                               \
	FIELD_SCALAR(m, n, FIELD_RAWS, struct raws, .flags = FIELD_NO_JSON | FIELD_NO_EQUAL)
#define F_TRI(m, n, ...) FIELD_SCALAR(m, n, FIELD_OPT_BOOL, enum opt_bool, __VA_ARGS__)
/* F_OPT_…: can be unset, which is null in JSON; F_…_DEFAULT: model_defaults() sets it. */
#define IN_PLACE                    .flags = FIELD_IN_PLACE
#define F_OPT_INT(m, n)             F_INT(m, n, .flags = FIELD_CAN_UNSET)
#define F_OPT_DURATION(m, n)        F_DURATION(m, n, .flags = FIELD_CAN_UNSET)
#define F_DEFAULT                   .flags = FIELD_CAN_UNSET | FIELD_HAS_DEFAULT, .number
#define F_INT_DEFAULT(m, n, d)      F_INT(m, n, F_DEFAULT = (d))
#define F_DURATION_DEFAULT(m, n, d) F_DURATION(m, n, F_DEFAULT = (d))
#define F_OPT_BOOL(m, n)            F_TRI(m, n, .flags = FIELD_CAN_UNSET)
#define F_BOOL_DEFAULT(m, n, d)     F_TRI(m, n, F_DEFAULT = (d))
#define F_STRING_DEFAULT(m, n, d)   F_STRING(m, n, .flags = FIELD_HAS_DEFAULT, .text = (d))
/* table: an array of names, indexed by the enum's value. */
#define F_ENUM(m, n, table, ...)                                                                   \
	FIELD_(m, n, FIELD_ENUM, sizeof(FIELD_MEMBER(m)) == sizeof(unsigned), .names = table,      \
	    .n_names = ELEMENTSOF(table), __VA_ARGS__)
#define F_STRUCT(m, n, item, ...)                                                                  \
	FIELD_(m, n, FIELD_STRUCT, FIELD_IS(FIELD_MEMBER(m), struct item), .sub = &item##_type,    \
	    __VA_ARGS__)
#define F_POINTER(m, n, item, ...)                                                                 \
	FIELD_(m, n, FIELD_POINTER, FIELD_IS(FIELD_MEMBER(m), struct item *), .sub = &item##_type, \
	    __VA_ARGS__)
#define F_LIST(m, n, item, ...)                                                                    \
	FIELD_(m, n, FIELD_LIST, FIELD_IS(*FIELD_MEMBER(m).v, struct item), .sub = &item##_type,   \
	    __VA_ARGS__)
/* A list whose elements are encoded with another table of their struct. */
#define F_LIST_VIEW(m, n, item, view)                                                              \
	FIELD_(m, n, FIELD_LIST, FIELD_IS(*FIELD_MEMBER(m).v, struct item), .sub = &view##_type)
#define F_MAP(m, n, item, ...)                                                                     \
	FIELD_(m, n, FIELD_MAP,                                                                    \
	    FIELD_IS(FIELD_MEMBER(m).v->value, struct item) &&                                     \
		offsetof(__typeof__(*FIELD_MEMBER(m).v), value) == MAP_VALUE_OFFSET,               \
	    .sub = &item##_type, __VA_ARGS__)

#define MAP_VALUE_OFFSET sizeof(char *)

#define MODEL_TYPE(item, fields_, ...)                                                             \
	const struct type item##_type = { .size = sizeof(struct item),                             \
		.fields = fields_,                                                                 \
		.n = ELEMENTSOF(fields_),                                                          \
		__VA_ARGS__ }

#endif
