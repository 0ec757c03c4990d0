// SPDX-License-Identifier: Apache-2.0
/* run_text.c: the sentence for a step of an executor that failed. Runs in: supervisor. */
#include "supervisor/driver/run_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/spec.h"
#include "proto/alloc_group.h"
#include "proto/executor.h"

#define LINK_TO_ROOT "the image has a link there that leads to the root"

static const char *const steps[] = {
	[EXE_STEP_NONE] = "start the task",
	[EXE_STEP_SPEC] = "read the task's settings",
	[EXE_STEP_PIPES] = "make the task's pipes",
	[EXE_STEP_MOUNT] = "mount into the task",
	[EXE_STEP_PROOF] = "verify the volume's mount",
	[EXE_STEP_NAMESPACE] = "make the task's namespace",
	[EXE_STEP_CGROUP] = "enter the task's cgroup",
	[EXE_STEP_CLONE] = "make the task's process",
	[EXE_STEP_USER] = "become the task's user",
	[EXE_STEP_COMMAND] = "run the command",
	[EXE_STEP_DROP] = "drop the executor's privileges",
	[EXE_STEP_CWD] = "enter the working directory",
	[EXE_STEP_DIRS] = "open the task's directories",
	[EXE_STEP_TERMINAL] = "open a terminal in the task",
	[EXE_STEP_LAYERS] = "make the container's root",
	[EXE_STEP_CONTAINER] = "prepare the container",
	[EXE_STEP_RESOLV_CONF] = "make the task's /etc/resolv.conf, in place of the machine's",
};

static const char *const proofs[] = {
	[EXE_PROOF_NONE] = "the executor gave no reason",
	[EXE_PROOF_OPEN] = "its path cannot be opened",
	[EXE_PROOF_MOUNT_ROOT] = "nothing is mounted there",
	[EXE_PROOF_MOUNT_ID] = "another mount is there (its mount id differs)",
	[EXE_PROOF_DEVICE] = "another mount is there (its device differs)",
	[EXE_PROOF_INODE] = "another mount is there (its inode differs)",
	[EXE_PROOF_BIRTH] = "another mount is there (its root was made at another time)",
	[EXE_PROOF_FS] = "another mount is there (its file system differs)",
	[EXE_PROOF_NODE] = "another block device is there, or none",
};

static const char *const roots[] = {
	[EXE_ROOT_IDS] = "make its user namespace",
	[EXE_ROOT_LAYER] = "mount a layer of its image",
	[EXE_ROOT_DIRS] = "mount the task's directories",
	[EXE_ROOT_ENTER] = "become root of the container",
	[EXE_ROOT_UPPER] = "remove what the last container wrote",
	[EXE_ROOT_OVERLAY] = "mount the overlay of its layers",
	[EXE_ROOT_PIVOT] = "enter its root",
};

static const char *const parts[] = {
	[EXE_INSIDE_USER] = "find user",
	[EXE_INSIDE_PROC] = "mount /proc",
	[EXE_INSIDE_SYS] = "mount /sys",
	[EXE_INSIDE_DEV] = "make /dev",
	[EXE_INSIDE_MASK] = "cover files of /proc and /sys",
	[EXE_INSIDE_DIRS] = "mount the task's directories",
	[EXE_INSIDE_FILES] = "make files of /etc",
	[EXE_INSIDE_OPTION] = "apply",
	[EXE_INSIDE_NAME] = "set its name",
	[EXE_INSIDE_READ_ONLY] = "make its root read-only",
};

/* Returns the text of entry `number` with this tag, for free(), or NULL. */
static char *
find_entry(int spec, enum spec_tag tag, uint32_t number)
{
	const void *map = NULL;
	struct spec_entry entry;
	size_t at = 0, size = 0;
	char *text = NULL;

	if (spec < 0 || number == 0 || fd_memfd_map(spec, SPEC_BYTES_MAX, &map, &size) < 0)
		return NULL;
	while (number > 0 && spec_next(map, size, &at, &entry) == 1)
		number -= entry.tag == tag;
	if (number == 0)
		text = mem_strdup(entry.text);
	(void)munmap((void *)(uintptr_t)map, size);
	return text;
}

static void
describe_root(char *buf, size_t size, int error, uint32_t detail)
{
	const char *why = strerrordesc_np(error), *hint = "";

	if (error == EINVAL && (detail == EXE_ROOT_LAYER || detail == EXE_ROOT_DIRS))
		hint = ": the file system of the data directory must be able to map ids, as ext4, "
		       "XFS and "
		       "btrfs are";
	else if (error == ENOSPC && detail == EXE_ROOT_IDS)
		hint = ": this machine permits no more user namespaces (user.max_user_namespaces)";
	(void)snprintf(buf, size, "%s: %s: %s%s", steps[EXE_STEP_LAYERS],
	    detail < ELEMENTSOF(roots) && roots[detail] ? roots[detail] : "start",
	    why ? why : "unknown error", hint);
}

/* Options of a container, by name, each with the key of the config block that it comes from. The
 * value of an option follows its name, up to one of the characters `end`. */
static const struct {
	const char *name, *what, *end;
} options[] = {
	{ "bind", "config.volumes or config.mount:", "" },
	{ "etc", "make /etc/", ":" },
	{ "group", "config.group_add:", "" },
	{ "stdin", "config.interactive:", "" },
	{ "sysctl", "config.sysctl:", "" },
	{ "tmpfs", "config.mount or config.tmpfs:", "" },
};

/* value: "RESOURCE:SOFT:HARD", numbers of the kernel. */
static char *
describe_limit(const char *value, int error)
{
	const char *name = container_limit_name(atoi(value)) ?: "", *hard = strrchr(value, ':');
	char setting[16] = "";

	for (size_t i = 0; name[i] && i < sizeof setting - 1; i++)
		setting[i] = (char)toupper((unsigned char)name[i]);
	return mem_printf("config.ulimit: %s = %lld%s%s%s", name,
	    hard ? (long long)strtoull(hard + 1, NULL, 10) : 0,
	    error == EPERM ? " is above the agent's own limit, which Limit" : "",
	    error == EPERM ? setting : "", error == EPERM ? "= of drover.service sets" : "");
}

/* Says what an option of the spec does, as a job has it. The caller frees it. */
static char *
describe_option(const char *text, int error)
{
	size_t len = strcspn(text, "=");
	const char *value = text[len] ? text + len + 1 : "";

	if (strncmp(text, "limit=", 6) == 0)
		return describe_limit(value, error);
	for (size_t i = 0; i < ELEMENTSOF(options); i++)
		if (strlen(options[i].name) == len && memcmp(options[i].name, text, len) == 0)
			return mem_printf("%s%s%.*s", options[i].what, *options[i].end ? "" : " ",
			    (int)strcspn(value, options[i].end), value);
	return mem_printf("apply \"%s\"", text);
}

static void
describe_part(char *buf, size_t size, int error, uint32_t detail, int spec)
{
	uint32_t part = detail & 0xff;
	bool user = part == EXE_INSIDE_USER;
	cleanup_free char *text =
	    user ? find_entry(spec, SPEC_USER, 1) : find_entry(spec, SPEC_OPTION, detail >> 8);
	cleanup_free char *option = !user && text ? describe_option(text, error) : NULL;
	const char *why = strerrordesc_np(error);

	if (error == ENOTUNIQ)
		why = LINK_TO_ROOT;
	if (user && error == ENOENT)
		why = "the image has no such user or group in /etc/passwd and /etc/group";
	if (option && strncmp(text, "group=", 6) == 0 && error == ENOENT)
		why = "the image has no such group in /etc/group";
	if (option && strncmp(text, "sysctl=", 7) == 0 && (error == ENOENT || error == EACCES))
		why = "the kernel has no such value for the namespaces of this container";
	if (option)
		(void)snprintf(buf, size, "%s: %.300s: %s", steps[EXE_STEP_CONTAINER], option,
		    why ? why : "unknown error");
	else
		(void)snprintf(buf, size, "%s: %s%s%.200s%s: %s", steps[EXE_STEP_CONTAINER],
		    part < ELEMENTSOF(parts) && parts[part] ? parts[part] : "start",
		    text ? " \"" : "", text ? text : "", text ? "\"" : "",
		    why ? why : "unknown error");
}

/* Only the spec of a container has a user. */
static void
describe_command(char *buf, size_t size, int error, int spec)
{
	cleanup_free char *command = find_entry(spec, SPEC_COMMAND, 1);
	cleanup_free char *user = find_entry(spec, SPEC_USER, 1);
	const char *why = strerrordesc_np(error), *hint = "";

	if (error == ENOENT)
		why = user ? "the image has no such program, or not the interpreter of it"
			   : "there is no such program, or not the interpreter of it";
	else if (error == EACCES)
		why = "it is not a program that the task's user may execute";
	else if (error == ENOEXEC)
		why = "it is no program for this machine, or a script without #!";
	if (command && strchr(command, ' '))
		hint = "; arguments belong in args";
	(void)snprintf(buf, size, "%s%s%.300s%s: %s%s", steps[EXE_STEP_COMMAND],
	    command ? " \"" : "", command ? command : "", command ? "\"" : "",
	    why ? why : "unknown error", hint);
}

/* Returns the path of file `number` of a spec, for free(), or NULL. */
static char *
find_file(int spec, uint32_t number)
{
	const void *map = NULL;
	struct spec_entry entry;
	struct spec_file file;
	size_t at = 0, size = 0;
	char *path = NULL;

	if (spec < 0 || number == 0 || fd_memfd_map(spec, SPEC_BYTES_MAX, &map, &size) < 0)
		return NULL;
	while (number > 0 && spec_next(map, size, &at, &entry) == 1)
		number -= entry.tag == SPEC_FILE;
	if (number == 0 && spec_file_parse(entry.text, &file) == 0)
		path = mem_strdup(file.path);
	(void)munmap((void *)(uintptr_t)map, size);
	return path;
}

/* Says why a file of the task cannot be written; path: NULL if it is not known. */
static void
describe_file(char *buf, size_t size, const char *path, int error)
{
	const char *why = strerrordesc_np(error);
	bool secret = !path || strncmp(path, "secrets/", 8) == 0;
	const char *hint = "";

	if (error == ENOSPC && secret)
		hint = ": a task has 1 MiB and 1024 files for its secrets, unless secrets in its "
		       "resources block sets another size";
	else if (error == EPERM)
		hint = ": a template can have another owner than the task's user (uid, gid) only "
		       "if that user is root";
	(void)snprintf(buf, size, "write %s%.300s%s: %s%s",
	    path ? "\"" : "the task's secrets, tokens and templates", path ? path : "",
	    path ? "\"" : "", why ? why : "unknown error", hint);
}

void
run_text_failure(
    char *buf, size_t size, uint32_t step, int error, uint32_t detail, int spec, const char *dest)
{
	const char *what = step < ELEMENTSOF(steps) ? steps[step] : "start the task";
	const char *why = error == ECHILD ? "it was killed before it could run the command, as the "
					    "kernel does when memory is exhausted"
					  : strerrordesc_np(error);

	if (step == EXE_STEP_PROOF) {
		uint32_t proof = detail >> 16;

		(void)snprintf(buf, size,
		    "volume mount %u is not the mount that was published: %s; the task was not "
		    "started",
		    (detail & 0xffff) + 1, proof < ELEMENTSOF(proofs) ? proofs[proof] : proofs[0]);
	} else if (step == EXE_STEP_DIRS && detail == EXE_DIRS_CLOSED) {
		(void)snprintf(buf, size,
		    "%s: only root can enter the allocation's directory, because this user "
		    "namespace does not map the groups of allocations (gids %u to %u): map them, "
		    "or run the task as root or with the exec driver",
		    what, ALLOC_GROUP_FIRST, ALLOC_GROUP_LAST);
	} else if (step == EXE_STEP_SECRETS) {
		cleanup_free char *path = find_file(spec, detail);

		describe_file(buf, size, path, error);
	} else if (step == EXE_STEP_LAYERS) {
		describe_root(buf, size, error, detail);
	} else if (step == EXE_STEP_COMMAND && spec >= 0 && error != ECHILD) {
		describe_command(buf, size, error, spec);
	} else if (step == EXE_STEP_CONTAINER) {
		describe_part(buf, size, error, detail, spec);
	} else if (step == EXE_STEP_MOUNT) {
		if (error == EMEDIUMTYPE)
			why = "it is neither a directory nor a file, and a container gets no "
			      "sockets and devices of the machine";
		else if (error == ENODEV)
			why = "it is not the node of a device";
		else if (error == ELOOP)
			why = "a link is on the way to it";
		else if (error == ENOTUNIQ)
			why = LINK_TO_ROOT;
		else if (error == EACCES)
			why = "a directory above it is closed to others, as users of the container "
			      "are on this volume";
		(void)snprintf(buf, size, "%s (volume mount %u%s%.200s): %s", what, detail + 1,
		    *dest ? ", at " : "", dest, why ? why : "unknown error");
	} else {
		(void)snprintf(buf, size, "%s: %s", what, why ? why : "unknown error");
	}
}
