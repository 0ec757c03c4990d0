// SPDX-License-Identifier: Apache-2.0
/* container_devices.c: the key devices of a container: nodes of the machine's /dev. exec-helper
 * checks the path of each by the policy, and the executor opens it through no link; so links and
 * directories are followed here. Runs in: supervisor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/devices.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/path.h"
#include "supervisor/driver/container.h"

#define DEV     "/dev/"
#define DEV_LEN 5

struct devices {
	const struct agent_config *config;
	const struct task *task;
	struct exec_task_start_req *req; /* NULL: nothing is added */
	char *note;                      /* with req: of ERR_MSG_SIZE bytes, see container.h */
	bool evaluated;
};

/* As a job names it. */
struct device {
	const char *host, *dest, *permissions;
};

/* The node, or the directory of nodes, that the path of a device leads to. */
struct node {
	char path[PATH_MAX]; /* without links, if it could be found */
	bool in_directory;   /* the job names the directory that it is in */
	int fd;              /* O_PATH, or -errno */
	struct stat st;      /* if there is a descriptor */
};

static bool
is_clean(const char *path)
{
	for (const char *at = path; *at == '/'; at += strcspn(at, "/")) {
		size_t len = strcspn(++at, "/");

		if (len == 0 || (len == 1 && *at == '.') || (len == 2 && memcmp(at, "..", 2) == 0))
			return false;
	}
	return *path == '/';
}

/* Docker's "r", "w" and "m" say what a cgroup permits, and drover has none for devices. */
static bool
are_all(const char *permissions)
{
	return !*permissions || (strchr(permissions, 'r') && strchr(permissions, 'w') &&
				    permissions[strspn(permissions, "rwm")] == '\0');
}

/* Stays on the file system of /dev, because users can mount on others below it, and such a mount
 * need not answer. */
static void
find_node(const char *path, struct node *ret)
{
	cleanup_close int dev = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char real[PATH_MAX];

	ret->fd = fd_open_by_links(dev, path + DEV_LEN, O_PATH);
	if (ret->fd >= 0 && (fstat(ret->fd, &ret->st) < 0 || fd_path(ret->fd, real) < 0 ||
				strncmp(real, DEV, DEV_LEN) != 0)) {
		(void)close(ret->fd);
		ret->fd = -EXDEV;
	}
	if (ret->fd >= 0)
		(void)strcpy(ret->path, real);
}

static int
check_allowed(const struct devices *d, const struct device *v, const struct node *n, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(d->task->driver));
	bool same = strcmp(v->host, n->path) == 0;
	const char *hint = n->fd == -ENOENT ? "; it is not there now: if it is a link, "
					      "allow_devices must have what it leads to"
					    : "";

	if (devices_allow(
		&d->config->allow_devices[driver->id == DRIVER_PODMAN], n->path + DEV_LEN))
		return 0;
	return err_say(e, -EINVAL,
	    "task %s: config.devices: \"%.100s\"%s%.100s%s is not allowed on this node: plugin "
	    "\"%s\" { config { allow_devices = [\"%.100s\"] } } in the agent's configuration "
	    "allows it%s",
	    d->task->name, v->host, same ? "" : " (\"", same ? "" : n->path, same ? "" : "\")",
	    driver->name, n->path, hint);
}

/* The owner of a node is no user of the container, so the bits of others count, unless the
 * container has the machine's ids. */
static int
check_mode(const struct devices *d, const struct node *n, struct err *e)
{
	const char *name = strrchr(n->path, '/') + 1;
	unsigned mode = n->st.st_mode & 07777, others = mode & 06;
	char text[ERR_MSG_SIZE];

	if (n->fd < 0 || others == 06 || container_has_host_ids(d->task))
		return 0;
	(void)snprintf(text, sizeof text,
	    "task %s: config.devices: %s in the container can %s \"%.100s\": its mode is %04o, and "
	    "users of a container are others to it; a rule of udev (KERNEL==\"%.60s\", "
	    "MODE=\"0666\") or privileged = true changes that",
	    d->task->name, others ? "every user" : "no user",
	    others == 04   ? "only read"
	    : others == 02 ? "only write to"
			   : "open",
	    n->path, mode, name);
	if (others == 0 && !n->in_directory)
		return err_say(e, -EINVAL, "%s", text);
	if (!*d->note)
		(void)strcpy(d->note, text);
	return 0;
}

static int
add_mount(const struct devices *d, const struct node *n, const char *dest, struct err *e)
{
	struct exec_task_start_req *req = d->req;
	struct exec_mount m = { .kind = EXEC_MOUNT_DEVICE };

	if (!IPC_TEXT_SET(m.path, n->path + DEV_LEN) || !IPC_TEXT_SET(m.dest, dest))
		return err_say(e, -EINVAL, "task %s: config.devices: \"%.100s\" is too long",
		    d->task->name, n->path);
	if (req->n_mounts == EXEC_MOUNTS_MAX)
		return err_say(e, -EINVAL,
		    "task %s: config.devices: more than %d devices, directories and volumes",
		    d->task->name, EXEC_MOUNTS_MAX);
	req->mounts[req->n_mounts++] = m;
	return 0;
}

static int
add_node(const struct devices *d, const struct device *v, const struct node *n, const char *dest,
    struct err *e)
{
	int r = check_allowed(d, v, n, e);

	if (r < 0 || !d->req)
		return r;
	return (r = check_mode(d, n, e)) < 0 ? r : add_mount(d, n, dest, e);
}

/* As Docker, all nodes of the directory; but not those of directories in it. */
static int
add_directory(const struct devices *d, const struct device *v, const struct node *n, struct err *e)
{
	cleanup_dir DIR *dir = NULL;
	unsigned found = 0;
	const char *name;
	int r = dir_open_at(n->fd, ".", &dir);

	while (r == 0 && (name = dir_next(dir))) {
		cleanup_free char *dest = mem_printf("%s/%s", v->dest, name);
		struct node in = { .in_directory = true };

		if (fstatat(n->fd, name, &in.st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (!S_ISCHR(in.st.st_mode) && !S_ISBLK(in.st.st_mode)) ||
		    snprintf(in.path, sizeof in.path, "%s/%s", n->path, name) >=
			(int)sizeof in.path)
			continue;
		found++;
		r = add_node(d, v, &in, dest, e);
	}
	if (r < 0 || found > 0)
		return r;
	return err_say(e, -EINVAL, "task %s: config.devices: no device is in \"%.100s\"",
	    d->task->name, n->path);
}

static int
check_paths(const struct devices *d, const struct device *v, struct err *e)
{
	if (strncmp(v->host, DEV, DEV_LEN) != 0 || !is_clean(v->host) ||
	    strlen(v->host) >= PATH_MAX)
		return err_say(e, -EINVAL,
		    "task %s: config.devices: \"%.100s\" is not the path of a device below /dev",
		    d->task->name, v->host);
	if (!is_clean(v->dest))
		return err_say(e, -EINVAL,
		    "task %s: config.devices: \"%.100s\" is not an absolute path, for \"%.100s\"",
		    d->task->name, v->dest, v->host);
	return 0;
}

static int
add_found(const struct devices *d, const struct device *v, struct node *n, struct err *e)
{
	if (n->fd >= 0 && S_ISDIR(n->st.st_mode))
		return add_directory(d, v, n, e);
	if (d->req && (n->fd == -ENOENT || n->fd == -ENOTDIR))
		return err_say(e, -EINVAL, "task %s: config.devices: this node has no \"%.100s\"",
		    d->task->name, v->host);
	if (n->fd >= 0 && !S_ISCHR(n->st.st_mode) && !S_ISBLK(n->st.st_mode))
		return err_say(e, -EINVAL,
		    "task %s: config.devices: \"%.100s\" is not the node of a device",
		    d->task->name, v->host);
	return add_node(d, v, n, v->dest, e);
}

static int
add_device(const struct devices *d, const struct device *v, struct err *e)
{
	struct node n = { .fd = -1 };
	int r = check_paths(d, v, e);

	if (r < 0)
		return r;
	if (container_flag(d->task, "privileged")) {
		if (strcmp(v->host, v->dest) == 0)
			return 0; /* it has the machine's /dev; as with Docker, it may do all */
		return err_say(e, -EINVAL,
		    "task %s: config.devices: \"%.100s\" cannot be \"%.100s\" in a privileged "
		    "container: it has the machine's /dev, where the device has its own name",
		    d->task->name, v->host, v->dest);
	}
	if (!are_all(v->permissions))
		return err_say(e, -EINVAL,
		    "task %s: config.devices: permissions \"%.20s\" of \"%.100s\" are not "
		    "supported: containers can read and write their devices (\"rw\"), as far as "
		    "the modes of these permit",
		    d->task->name, v->permissions, v->host);
	(void)strcpy(n.path, v->host);
	find_node(v->host, &n);
	r = add_found(d, v, &n, e);
	if (n.fd >= 0)
		(void)close(n.fd);
	return r;
}

static const char *
member(const json_t *block, const char *key)
{
	return str(json_string_value(json_object_get(block, key)));
}

static int
add_block(const struct devices *d, const json_t *block, struct err *e)
{
	const char *dest = member(block, "container_path");
	struct device v = { .host = member(block, "host_path"),
		.permissions = member(block, "cgroup_permissions") };
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)block, name, value)
		if (driver_value_is_open(value, d->evaluated))
			return 0;
	if (!*v.host)
		return err_say(
		    e, -EINVAL, "task %s: config.devices: host_path is missing", d->task->name);
	v.dest = *dest ? dest : v.host;
	return add_device(d, &v, e);
}

/* "HOST[:CONTAINER][:PERMISSIONS]" */
static int
add_text(const struct devices *d, const char *text, struct err *e)
{
	cleanup_free char *copy = mem_strdup(text);
	char *rest = copy;
	struct device v = { .host = strsep(&rest, ":"), .permissions = "" };

	v.dest = v.host;
	if (rest && *rest == '/')
		v.dest = strsep(&rest, ":");
	if (rest)
		v.permissions = rest;
	return add_device(d, &v, e);
}

static int
add_all(const struct devices *d, struct err *e)
{
	json_t *value = driver_config_get(d->task, "devices"), *item;
	int r = json_is_object(value) ? add_block(d, value, e) : 0;
	size_t i;

	json_array_foreach (value, i, item)
		if (r == 0 && json_is_object(item))
			r = add_block(d, item, e);
		else if (r == 0 && !driver_value_is_open(item, d->evaluated) && !json_is_null(item))
			r = add_text(d, str(json_string_value(item)), e);
	return r;
}

int
container_check_devices(const struct agent_config *config, const struct task *task, struct err *e)
{
	return add_all(&(struct devices){ .config = config, .task = task }, e);
}

int
container_device_mounts(const struct agent_config *config, const struct task *task,
    struct exec_task_start_req *req, char *note, struct err *e)
{
	*note = '\0';
	return add_all(
	    &(struct devices){
		.config = config, .task = task, .req = req, .note = note, .evaluated = true },
	    e);
}
