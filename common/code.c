// SPDX-License-Identifier: Apache-2.0
/* code.c: releases memory that a process can do without. Runs in: supervisor, heartbeat. */
#include "common/code.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int
let_go(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at, end;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || (ph->p_flags & PF_W))
			continue;
		at = (info->dlpi_addr + ph->p_vaddr) / page * page;
		end = info->dlpi_addr + ph->p_vaddr + ph->p_memsz;
		(void)madvise((void *)at, end - at, MADV_DONTNEED);
	}
	return 0;
}

void
code_let_go(void)
{
	(void)dl_iterate_phdr(let_go, NULL);
	(void)malloc_trim(0);
}
