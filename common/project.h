/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project.h: an alloc's disk as a project of its file system (project quota of ext4 and xfs). Runs
 * in: mount-helper (sets limits), file-helper (reads them).
 *
 * If the file system of alloc/ enforces project quota, alloc/<alloc> is a project with the size of
 * its ephemeral disk as hard limit; files made below it inherit the project. The project's number
 * is stored only as an attribute of the directory. Files cannot be renamed between projects, so an
 * alloc that takes over the data of another gets its project too. A data directory that its owner
 * has put into another project stays in that project, and its usage is measured instead.
 */
#ifndef DROVER_COMMON_PROJECT_H
#define DROVER_COMMON_PROJECT_H

#include <stdbool.h>
#include <stdint.h>

struct fsxattr;

/* The project numbers that drover uses. Their number is small, since xfs never frees a project's
 * entry in its quota file. */
#define PROJECT_FIRST 0x44000000u
#define PROJECTS      65536u

/* Returns whether the file system of fd enforces project quota. Needs no privilege. */
bool project_is_enforced(int fd);
/*
 * Returns the directory's project if it is one of drover's numbers, else 0. *ret gets all
 * attributes; fsx_projid is UINT32_MAX if the file system does not support projects.
 */
uint32_t project_read(int dir_fd, struct fsxattr *ret);
/* Returns whether the directory of a new alloc may become a project: it must not be in one, nor
 * have been made without one. */
bool project_may_begin(int dir_fd);

#endif
