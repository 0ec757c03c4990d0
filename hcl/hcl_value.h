/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_value.h: values of expressions, their types, and conversions. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_VALUE_H
#define DROVER_HCL_HCL_VALUE_H

#include "hcl/hcl.h"

/* HCL_ANY is the type of a null or unknown value about which nothing is known, and in a type
 * constraint any type. */
enum hcl_kind {
	HCL_ANY,
	HCL_STRING,
	HCL_NUMBER,
	HCL_BOOL,
	HCL_LIST,
	HCL_SET,
	HCL_MAP,
	HCL_TUPLE,
	HCL_OBJECT,
};

struct hcl_type_member {
	const char *name;
	const struct hcl_type *type;
	bool optional;
};

struct hcl_type {
	enum hcl_kind kind;
	const struct hcl_type *item;           /* list, set, map */
	size_t n;                              /* tuple, object */
	const struct hcl_type **items;         /* tuple */
	const struct hcl_type_member *members; /* object, sorted by name */
};

extern const struct hcl_type hcl_type_any, hcl_type_string, hcl_type_number, hcl_type_bool;

/* A number is a binary floating point number of 512 bits; see hcl_number.h. */
struct hcl_number;

struct hcl_member {
	const char *key;
	size_t key_len;
	struct hcl_value *value;
};

enum hcl_state { HCL_KNOWN, HCL_NULL, HCL_UNKNOWN };

struct hcl_value {
	enum hcl_kind kind;
	enum hcl_state state;
	const struct hcl_type
	    *type; /* of list, set and map: the whole type; null and unknown: too */
	union {
		bool boolean;
		struct hcl_number *number;
		const char *string; /* len bytes with a NUL after them */
		struct hcl_value *
		    *items; /* len items of a list, set (sorted, no two equal) or tuple */
		struct hcl_member *members; /* len members of a map or object, sorted by key */
	};
	size_t len;
	unsigned depth; /* of lists, maps … inside each other; limited as that of expressions is */
	/* Whether a part of it is unknown. Stored, because values share parts: a walk could visit
	 * the same part very often. */
	bool has_unknown;
};

struct hcl_value *hcl_bool(struct hcl *h, bool b);
struct hcl_value *hcl_string(struct hcl *h, const char *s, size_t len);
struct hcl_value *hcl_text(struct hcl *h, const char *s); /* a string that ends with NUL */
struct hcl_value *hcl_int(struct hcl *h, int64_t n);
struct hcl_value *hcl_null(struct hcl *h, const struct hcl_type *type);
struct hcl_value *hcl_unknown(struct hcl *h, const struct hcl_type *type);
/* Take over the array. A set's items may be in any order and occur more than once; members may be
 * in any order, and of two with one key the later counts. The items of a list, set or map are of
 * the type `item`. */
struct hcl_value *hcl_list(
    struct hcl *h, const struct hcl_type *item, struct hcl_value **items, size_t n);
struct hcl_value *hcl_set(
    struct hcl *h, const struct hcl_type *item, struct hcl_value **items, size_t n);
struct hcl_value *hcl_tuple(struct hcl *h, struct hcl_value **items, size_t n);
struct hcl_value *hcl_map(
    struct hcl *h, const struct hcl_type *item, struct hcl_member *members, size_t n);
struct hcl_value *hcl_object(struct hcl *h, struct hcl_member *members, size_t n);

static inline bool
hcl_is_known(const struct hcl_value *v)
{
	return v->state == HCL_KNOWN;
}
static inline bool
hcl_is_null(const struct hcl_value *v)
{
	return v->state == HCL_NULL;
}
/* Whether no part of it is unknown. */
bool hcl_is_wholly_known(const struct hcl_value *v);
/* list, set or tuple; map or object */
bool hcl_is_sequence(const struct hcl_value *v);
bool hcl_is_mapping(const struct hcl_value *v);

/* The member with this key, or NULL. */
struct hcl_value *hcl_get(const struct hcl_value *mapping, const char *key, size_t len);

/* The key and the value of the i-th element, as `for` gives them: an element of a set is its own
 * key, and one of a list or tuple has its number. */
struct hcl_value *hcl_element(
    struct hcl *h, const struct hcl_value *v, size_t i, struct hcl_value **ret_key);

/* Whether types and contents are the same. Unknown values equal nothing, nulls of a type each
 * other. */
bool hcl_equal(struct hcl *h, const struct hcl_value *a, const struct hcl_value *b);
/* The order of a set: of strings by bytes, of numbers by value, false before true, else by their
 * text. */
int hcl_compare(struct hcl *h, const struct hcl_value *a, const struct hcl_value *b);

const struct hcl_type *hcl_type_of(struct hcl *h, const struct hcl_value *v);
const struct hcl_type *hcl_type_list(
    struct hcl *h, enum hcl_kind kind, const struct hcl_type *item);
bool hcl_type_equal(const struct hcl_type *a, const struct hcl_type *b);
/* "list of string", for sentences. */
const char *hcl_type_name(struct hcl *h, const struct hcl_type *type);
const char *hcl_value_type_name(struct hcl *h, const struct hcl_value *v);

/* The type that all of these can be converted to, or NULL if there is none. */
const struct hcl_type *hcl_unify(struct hcl *h, const struct hcl_type **types, size_t n);
/* Whether values of a type may be convertible to another; the value itself can still prevent it. */
bool hcl_type_converts(struct hcl *h, const struct hcl_type *from, const struct hcl_type *to);

/*
 * Converts the value as HCL does: numbers and booleans to strings and back, tuples to lists and
 * sets, objects to maps, and their elements. NULL if it cannot be; then *ret_why (if not NULL) says
 * why, to be put after "…: ".
 */
struct hcl_value *hcl_convert(
    struct hcl *h, struct hcl_value *v, const struct hcl_type *type, const char **ret_why);

/* JSON, as jsonencode() writes it; a value that is not wholly known has none. */
char *hcl_to_json(struct hcl *h, const struct hcl_value *v, size_t *ret_len);

#endif
