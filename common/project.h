/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project.h: the disk of an alloc as a project of its file system (project quota of ext4 and xfs).
 * Runs in: mount-helper (sets limits), file-helper (reads them).
 *
 * Where the file system of alloc/ enforces project quota, alloc/<alloc> is a project with the size
 * of its ephemeral disk as hard limit; what is made below it inherits that. Which project it is
 * says the directory itself, and nothing else. Between projects nothing can be renamed, so an alloc
 * that gets the data of another gets its project too. A data directory that its owner has put into
 * a project stays in it, and is measured.
 */
#ifndef DROVER_COMMON_PROJECT_H
#define DROVER_COMMON_PROJECT_H

#include <stdbool.h>
#include <stdint.h>

struct fsxattr;

/* Ours; few, since xfs never gives back the place of one in its quota file. */
#define PROJECT_FIRST 0x44000000u
#define PROJECTS      65536u

/* Does the file system of fd hold projects to their limits? Needs no privilege. */
bool project_is_enforced(int fd);
/*
 * The project of ours that a directory is; 0: none, or none of ours. ret gets all its attributes;
 * its fsx_projid is UINT32_MAX where the file system knows no projects.
 */
uint32_t project_read(int dir_fd, struct fsxattr *ret);
/* May a new alloc's directory become a project? Not one that is one, or was made without. */
bool project_may_begin(int dir_fd);

#endif
