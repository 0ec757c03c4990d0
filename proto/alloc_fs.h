/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_fs.h: the entries that FILE_ALLOC_FS_REQ lists. Runs in: file-helper, supervisor. */
#ifndef DROVER_PROTO_ALLOC_FS_H
#define DROVER_PROTO_ALLOC_FS_H

#include <stdint.h>

#define ALLOC_FS_LIST_MAX (4u << 20) /* bytes of a list: about 100,000 files */

/* One entry, unaligned; its name and a NUL follow it. */
struct alloc_fs_entry {
	int64_t size, mtime_ns;
	uint32_t mode; /* st_mode */
} __attribute__((packed));

#endif
