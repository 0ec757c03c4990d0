/* SPDX-License-Identifier: Apache-2.0 */
/* container.h: the drivers docker and podman: keys of their config blocks, and what becomes of
 * them. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_CONTAINER_H
#define DROVER_SUPERVISOR_DRIVER_CONTAINER_H

#include "supervisor/driver/driver.h"

/* container_keys.c: checks all keys of a config block: -EINVAL with *e for one that is not known,
 * has a wrong type, or is not supported. */
int container_check_keys(const struct task *task, bool evaluated, struct err *e);
/* Returns a text, or NULL; a whole number, or `none`; true if it is set to true. Of an evaluated
 * configuration, in which these are texts. */
const char *container_text(const struct task *task, const char *key);
int64_t container_number(const struct task *task, const char *key, int64_t none);
bool container_flag(const struct task *task, const char *key);
/* Whether its user namespace is to have the machine's ids. A privileged container has none. */
bool container_has_host_ids(const struct task *task);
/* Calls fn for each member of a map, until one does not return 0, and returns that. value is a
 * text, also of a whole number; NULL: it is still to be evaluated. */
typedef int container_member(
    const struct task *task, const char *name, const char *value, void *arg, struct err *e);
int container_each(const struct task *task, const char *key, bool evaluated, container_member *fn,
    void *arg, struct err *e);

/* Returns the driver's settings in the agent's configuration. */
static inline const struct config_container *
container_config(const struct agent_config *config, const struct driver_ops *driver)
{
	return &config->containers[driver->id == DRIVER_PODMAN];
}

/* container_network.c: whether a task is a container that has a network of its own: its group has
 * none, or network_mode says so. */
bool container_has_network(const struct task_group *group, const struct task *task);
/* Returns by which id network-helper knows that network. */
struct id container_network_id(const struct id *alloc, const char *task);
/* Returns the address that this network has in the task's state, and services of the task
 * advertise: with address_mode "driver", and with "auto" if *ret_auto is set to true. "": it has
 * none. */
const char *container_address(const struct task *task, const struct alloc *a, bool *ret_auto);
/* Returns the port inside that port_map gives the port with this label; 0: it gives none. */
int64_t container_port_inside(const struct task *task, const char *label);
/* Returns whether the keys ports or port_map name this port of the group. */
bool container_publishes(const struct task *task, const char *label);

/* container_sysctl.c: checks the key sysctl, and adds what the container itself can set to the spec
 * (NULL: only checks). Returns 0, or -EINVAL with *e. */
int container_sysctls(
    const struct task *task, bool evaluated, struct spec_writer *spec, struct err *e);
/* Appends the settings of the network that the task is in to lines "NAME=VALUE". Returns 0; -EINVAL
 * with *e if they have another value for one; -E2BIG with *e. */
int container_network_sysctls(const struct task *task, char *lines, size_t size, struct err *e);

/* container_mounts.c: adds the mounts of the keys volumes, mount and mounts to the spec (NULL: only
 * checks), but those of host volumes, which are checked by the node's configuration (NULL: not).
 * Returns 0, or -EINVAL with *e. */
int container_mounts(const struct agent_config *config, const struct task *task, bool evaluated,
    struct spec_writer *spec, struct err *e);
/* Checks whether a caller may have all that the task's mounts are, or may become, of host volumes:
 * permits() is asked for each. Returns 0, or -EPERM with *e. */
typedef bool container_permits(void *arg, const char *host_volume, bool writes);
int container_check_permitted(const struct agent_config *config, const struct task *task,
    container_permits *permits, void *arg, struct err *e);
/* Adds those of host volumes to the request, behind its other mounts. task: with the evaluated
 * configuration. Returns 0, or -EINVAL with *e. */
int container_host_mounts(const struct agent_config *config, const struct task *task,
    struct exec_task_start_req *req, struct err *e);

/* container_devices.c: checks the key devices, as it is in a job, by the node's configuration, and
 * by what is in its /dev. Returns 0, or -EINVAL with *e. */
int container_check_devices(
    const struct agent_config *config, const struct task *task, struct err *e);
/* Adds the devices to the request, behind its other mounts. task: with the evaluated configuration.
 * note: of ERR_MSG_SIZE bytes; gets a sentence about a device that users of the container can only
 * read, or cannot open; else "". Returns 0, or -EINVAL with *e. */
int container_device_mounts(const struct agent_config *config, const struct task *task,
    struct exec_task_start_req *req, char *note, struct err *e);

/* container_files.c: checks the key extra_hosts. Returns 0, or -EINVAL with *e. */
int container_check_hosts(const struct task *task, bool evaluated, struct err *e);
/* Add the container's name, and its files of /etc, to the spec; the files: -EINVAL with *e if its
 * network has no address for an entry of extra_hosts. */
void container_name(const struct task *task, const struct task_net *net,
    const struct exec_start *req, struct spec_writer *spec);
int container_files(const struct task *task, const struct task_net *net,
    const struct exec_start *req, struct spec_writer *spec, struct err *e);

/* Adds an option of executor/exe_option.c. */
void __attribute__((format(printf, 3, 4)))
container_option(struct spec_writer *spec, const char *name, const char *format, ...);

#endif
