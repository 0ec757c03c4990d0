// SPDX-License-Identifier: Apache-2.0
/* csl_log.c: the log of calls. Runs in: drover-csi-local. */
#include "contrib/csi-local/csl_log.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"

static json_t *message_json(const ProtobufCMessage *m);

static int
compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static json_t *
keys_json(Csi__V1__StringEntry *const *pairs, size_t n)
{
	cleanup_free const char **keys = mem_zeroed(n + 1, sizeof *keys);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		keys[i] = pairs[i]->key;
	qsort(keys, n, sizeof *keys, compare_text);
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(keys[i]));
	return list;
}

static json_t *
pairs_json(Csi__V1__StringEntry *const *pairs, size_t n)
{
	json_t *map = json_object();

	for (size_t i = 0; i < n; i++)
		(void)json_object_set_new(map, pairs[i]->key, json_string(pairs[i]->value));
	return map;
}

/* Whether only the keys of this map are logged. */
static bool
is_private(const char *field)
{
	size_t len = strlen(field);

	return strcmp(field, "secrets") == 0 ||
	       (len > 8 && strcmp(field + len - 8, "_context") == 0);
}

/* One value of a field; at points to it. Returns NULL for a default, which is not on the wire
 * either. */
static json_t *
value_json(const ProtobufCFieldDescriptor *f, const void *at)
{
	const ProtobufCEnumValue *named;

	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return **(const char *const *)at ? json_string(*(const char *const *)at) : NULL;
	case PROTOBUF_C_TYPE_BOOL:
		return *(const protobuf_c_boolean *)at ? json_true() : NULL;
	case PROTOBUF_C_TYPE_INT32:
		return *(const int32_t *)at ? json_integer(*(const int32_t *)at) : NULL;
	case PROTOBUF_C_TYPE_INT64:
		return *(const int64_t *)at ? json_integer(*(const int64_t *)at) : NULL;
	case PROTOBUF_C_TYPE_ENUM:
		named = protobuf_c_enum_descriptor_get_value(f->descriptor, *(const int *)at);
		return named ? json_string(named->name) : json_integer(*(const int *)at);
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(const ProtobufCMessage *const *)at
			   ? message_json(*(const ProtobufCMessage *const *)at)
			   : NULL;
	default:
		return NULL; /* no request has another type */
	}
}

static json_t *
repeated_json(const ProtobufCFieldDescriptor *f, const void *at, size_t n)
{
	json_t *list;

	if (n == 0)
		return NULL;
	if (f->descriptor == &csi__v1__string_entry__descriptor)
		return (is_private(f->name) ? keys_json : pairs_json)(
		    *(Csi__V1__StringEntry *const *const *)at, n);
	list = json_array(); /* of messages and texts, which are pointers */
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, value_json(f, *(void *const *const *)at + i));
	return list;
}

static json_t *
message_json(const ProtobufCMessage *m)
{
	json_t *object = json_object(), *value;

	for (unsigned int i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		const char *at = (const char *)m;
		size_t quantifier = 0;

		if (f->quantifier_offset)
			quantifier = f->label == PROTOBUF_C_LABEL_REPEATED
					 ? *(const size_t *)(at + f->quantifier_offset)
					 : *(const unsigned int *)(at + f->quantifier_offset);
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			value = repeated_json(f, at + f->offset, quantifier);
		else if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && quantifier != f->id)
			value = NULL;
		else
			value = value_json(f, at + f->offset);
		if (value)
			(void)json_object_set_new(object, f->name, value);
	}
	return object;
}

void
csl_log_call(const struct csl *c, const char *method, const ProtobufCMessage *req, int status,
    uint64_t took_ns)
{
	cleanup_free char *text = NULL, *line = NULL;
	json_t *object = NULL;
	int r;

	if (c->log_fd < 0)
		return;
	object = json_pack("{s:s, s:i, s:I, s:o}", "method", method, "status", status, "ms",
	    (json_int_t)(took_ns / 1000000), "request", message_json(req));
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!text)
		return;
	line = mem_printf("%s\n", text);
	r = fd_write_full(c->log_fd, line, strlen(line)); /* O_APPEND: a line stays whole */
	if (r < 0)
		log_warn("write the log of calls: %s", strerror(-r));
}
