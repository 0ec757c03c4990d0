/* SPDX-License-Identifier: Apache-2.0 */
/* id.h: 128-bit ids of runs and allocs, and names that may become one path component. Runs in:
 * every process. */
#ifndef DROVER_COMMON_ID_H
#define DROVER_COMMON_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/id_bytes.h"

#define ID_HEX_SIZE    33 /* the id of a run: 32 digits and NUL */
#define ID_UUID_SIZE   37 /* the id of an alloc, a node or an eval: 8-4-4-4-12 digits and NUL */
#define BOOT_ID_SIZE   37
#define NAME_BYTES_MAX 128

/* Returns a random id from getrandom(2), which does not fail once the machine has booted; aborts if
 * it does. */
struct id id_random(void);
/* Returns a random UUID of version 4, as Nomad's ids are. */
struct id id_random_uuid(void);
bool id_equal(const struct id *a, const struct id *b);
bool id_is_zero(const struct id *a);

void id_to_hex(const struct id *id, char ret[ID_HEX_SIZE]);
void id_to_uuid(const struct id *id, char ret[ID_UUID_SIZE]);
/* Parses exactly 32 lower-case digits, or the 36 characters of a UUID. Returns false without
 * touching *ret for any other text. */
bool id_from_hex(const char *text, struct id *ret);
bool id_from_uuid(const char *text, struct id *ret);
/* Copies the 16 bytes of a protobuf field to *ret. Returns false for any other length or if all are
 * zero. */
bool id_from_bytes(const void *data, size_t len, struct id *ret);
/* Writes a request's alloc id as text to ret. Returns 0, or -EINVAL with *e if the id is all
 * zero. */
int id_alloc_read(const struct id *id, char ret[ID_UUID_SIZE], struct err *e);

/*
 * Returns whether name may be one component of a path that a privileged process makes: 1 to 128
 * bytes out of [A-Za-z0-9._-] without a leading dot. Names of tasks, volumes and plugins must pass.
 * The name "alloc" is reserved for the directory that an allocation's tasks share.
 */
bool name_is_component(const char *name);
bool name_is_task(const char *name);
/* Returns whether path is one such component or several with "/" between them, NAME_PATH_MAX bytes
 * at most. */
#define NAME_PATH_MAX 255
bool name_is_path(const char *path);

/* Reads /proc/sys/kernel/random/boot_id, 36 characters. Returns 0 or -errno. */
int boot_id_read(char ret[BOOT_ID_SIZE]);

#endif
