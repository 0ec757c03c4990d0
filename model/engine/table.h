/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h: how field tables are written. For the files that have one. Runs in: supervisor, cli.
 *
 * A table is the truth about a struct: `#define S job`, then one F_…(member, "JSONName", extras)
 * each, in the order in which JSON shows them. Each macro checks that the member has the type that
 * its kind needs. Extras are designated initialisers: .flags, .wire, .names …
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
	FIELD_STRUCT,  /* inside */
	FIELD_POINTER, /* NULL: not there */
	FIELD_LIST,
	FIELD_MAP,
	FIELD_STRINGS,
	FIELD_INTS,
	FIELD_STRING_MAP,
	FIELD_INT_MAP,
	FIELD_SET,  /* struct strings, in JSON an object whose values are null */
	FIELD_RAWS, /* struct raws: a list that is not decoded. msgpack alone */
	FIELD_JSON,
	FIELD_KINDS
};

enum field_flags {
	FIELD_CAN_UNSET = 1 << 0, /* starts as MODEL_UNSET / OPT_UNSET, which is null in JSON */
	FIELD_HAS_DEFAULT = 1 << 1,
	FIELD_NOT_NIL = 1 << 2,    /* an empty list or map is [] or {}, never null */
	FIELD_OMIT_EMPTY = 1 << 3, /* no key when empty */
	FIELD_AS_NUMBER = 1 << 4,  /* an enum that JSON has as its number; the name is accepted */
	FIELD_AS_OBJECT = 1 << 5,  /* raw JSON that must be an object */
	FIELD_NO_EQUAL = 1 << 6,
	FIELD_IN_PLACE = 1 << 7, /* may change while the alloc runs on */
	FIELD_NO_JSON = 1 << 8,  /* msgpack alone */
	FIELD_NO_WIRE = 1 << 9,  /* JSON alone */
	FIELD_SECRET = 1 << 10,  /* shown as null, or ["[REDACTED]"] for strings */
	FIELD_BYTES = 1 << 11, /* a string that is base64 here and in JSON, and bytes in msgpack */
};

struct field {
	const char *name; /* JSON */
	const char *wire; /* msgpack; NULL: the same */
	uint16_t name_len;
	uint16_t flags;
	uint8_t kind;
	uint8_t n_names;
	uint32_t offset;
	const struct type *sub;
	const struct type *shown; /* another table of sub's struct, for encoding; NULL: sub */
	const char *const *names; /* of an enum, by value */
	int64_t number;           /* the default */
	const char *text;         /* of a string: the default */
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
/* Null unless given. The second kind has a default for model_defaults(). */
#define IN_PLACE                    .flags = FIELD_IN_PLACE
#define F_OPT_INT(m, n)             F_INT(m, n, .flags = FIELD_CAN_UNSET)
#define F_OPT_DURATION(m, n)        F_DURATION(m, n, .flags = FIELD_CAN_UNSET)
#define F_DEFAULT                   .flags = FIELD_CAN_UNSET | FIELD_HAS_DEFAULT, .number
#define F_INT_DEFAULT(m, n, d)      F_INT(m, n, F_DEFAULT = (d))
#define F_DURATION_DEFAULT(m, n, d) F_DURATION(m, n, F_DEFAULT = (d))
#define F_OPT_BOOL(m, n)            F_TRI(m, n, .flags = FIELD_CAN_UNSET)
#define F_BOOL_DEFAULT(m, n, d)     F_TRI(m, n, F_DEFAULT = (d))
#define F_STRING_DEFAULT(m, n, d)   F_STRING(m, n, .flags = FIELD_HAS_DEFAULT, .text = (d))
/* table: an array of names by value, of known size. */
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
/* Its elements by another table of their struct. */
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

/* All lists and maps look like this. */
struct any_list {
	char *v;
	size_t n;
};

static inline void *
field_at(const struct field *f, const void *obj)
{
	return (char *)obj + f->offset;
}

static inline size_t
map_entry_size(const struct type *item)
{
	return MAP_VALUE_OFFSET + item->size;
}

/*
 * What a list of n elements has room for follows from n (an even number, from 16 on a power of
 * two), so that a list needs no member for it. Every function that makes a list allocates so.
 */
int list_grow(void *list, size_t item_size); /* room for one more */
void *list_alloc(
    size_t n, size_t item_size); /* room for n, zeroed; never NULL for n = 0 but without memory */

/* Where the next bytes of a text go, at most so many; text_end() says where they ended. NULL: no
 * memory, and t->failed. */
char *text_room(struct text *t, size_t more);
void text_end(struct text *t, char *end);

/* Frees what a field holds and sets it to what model_init() makes. */
void field_done(const struct field *f, void *obj);
/* Exchanges what the field holds in two objects. */
void field_swap(const struct field *f, void *a, void *b);
bool field_is_empty(const struct field *f, const void *obj); /* as model_init() made it */

/* Where decoding or validation is, as a list up the stack. */
struct place {
	const struct place *up;
	const char *name; /* NULL: an index */
	bool key;         /* name is a key of a map */
	size_t index;
};

/* "TaskGroups[0].Meta["x"]"; "" for NULL. */
void place_format(const struct place *p, char *ret, size_t size);

/* RFC 3339 with as many fraction digits as are needed, UTC. */
#define RFC3339_SIZE 40
void time_format(int64_t ns, char ret[RFC3339_SIZE]);
/* false for what is none or out of range; the year 1 (Go's zero) gives 0. */
bool time_parse(const char *text, int64_t *ret_ns);

/* Times in msgpack, UTC; 0 is Go's zero. Parsing: false for what is none. */
#define GO_TIME_SIZE 15
void go_time_format(int64_t ns, uint8_t ret[GO_TIME_SIZE]);
bool go_time_parse(const void *data, size_t len, int64_t *ret_ns);

/* Where encoded values go: JSON text, msgpack. */
struct sink {
	bool json; /* which names and which visibility */
	void (*null)(void *arg);
	void (*boolean)(void *arg, bool b);
	void (*integer)(void *arg, int64_t n);
	void (*uinteger)(
	    void *arg, uint64_t n); /* NULL: as integer, or as text when it is larger */
	void (*real)(void *arg, double d);
	void (*string)(void *arg, const char *s, size_t len);
	void (*time)(void *arg, int64_t ns);                  /* 0 only in msgpack */
	void (*bytes)(void *arg, const char *base64);         /* NULL: as text */
	void (*raw)(void *arg, const void *data, size_t len); /* in its own format. May be NULL */
	void (*open)(void *arg, bool map, size_t n);          /* n: only when `counts` */
	void (*close)(void *arg, bool map);
	void (*key)(void *arg, const char *s, size_t len, bool plain); /* plain: needs no escapes */
	bool counts;
};

/* As model_difference(), skipping fields that have one of these flags. ret may be NULL. */
bool model_differs(
    const struct type *type, const void *a, const void *b, unsigned ignore, char *ret, size_t size);

void model_walk(
    const struct type *type, const void *obj, bool compact, const struct sink *sink, void *arg);

#endif
