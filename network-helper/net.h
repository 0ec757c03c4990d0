/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h: types and functions that the network-helper's files share. Runs in: network-helper, as
 * root with CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW, and its workers.
 *
 * An allocation's network has two names in <rt>/netns: ALLOC, on which its network namespace is
 * mounted, and ALLOC.json, which has what its CNI plugins were called with. The second is written
 * before the first plugin runs, and removed after the last has removed everything.
 */
#ifndef DROVER_NETWORK_HELPER_NET_H
#define DROVER_NETWORK_HELPER_NET_H

#include <jansson.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/id.h"
#include "common/worker.h"
#include "proto/agent_config.h"
#include "proto/ipc_records.h"

#define NET_PLUGIN_MS 20000 /* of one call of a plugin */
#define NET_MAKE_MS   60000 /* of a network, with all tries */
#define NET_CHECK_MS  20000 /* of a network */
#define NET_JSON_MAX  (1 << 20)
#define NET_MSG_SIZE  300    /* of what a plugin says */
#define NET_INTERFACE "eth0" /* the name of the interface inside */

/* The descriptors of a worker. */
enum net_fd {
	NET_FD_DIR = WORKER_FIRST_FD, /* <rt>/netns */
	NET_FD_HOST,                  /* the host's network namespace */
	NET_FD_CGROUP,                /* exec/: each plugin has a cgroup below it */
	NET_FDS = 3
};

struct net_job {
	char alloc[ID_UUID_SIZE];
	char name[IPC_NAME_SIZE]; /* of a CNI network */
	char args[NET_ARGS_SIZE];
	char sysctls[NET_SYSCTL_SIZE]; /* lines NAME=VALUE */
	enum net_kind kind;
	uint32_t n_ports;
	struct net_port ports[NET_PORTS_MAX];
};

static inline void
json_decref_p(json_t **json)
{
	json_decref(*json);
}
#define cleanup_json __attribute__((__cleanup__(json_decref_p)))

extern const struct config_cni *net_cni;
extern const char *net_runtime_dir;

/* net_namespace.c: makes the namespace, unless it exists, with its loopback interface up and the
 * settings of the job. Returns 0 or -errno. */
int net_namespace_make(const struct net_job *job, struct err *e);
/* Returns whether the name is a network namespace. */
bool net_namespace_exists(const char *alloc);
/* Removes its name, if there is one; the kernel removes it after the last process has left it. */
int net_namespace_remove(const char *alloc, struct err *e);

/* net_config.c: makes the configuration of a network: an object with "cniVersion", "name" and
 * "plugins". Returns NULL with *e. */
json_t *net_config_load(const struct net_job *job, struct err *e);

/* Returns the names of all usable configurations in cni_config_dir. */
json_t *net_config_names(void);

/* net_ledger.c: reads and writes ALLOC.json: {"config": …, "ports": […], "args": …, "cni_path": …,
 * "result": …}; with "removing" while it is being removed. cni_path is for `drover cleanup`.
 * Returns 0; -ENOENT if there is none. */
int net_ledger_read(const char *alloc, json_t **ret, struct err *e);
int net_ledger_write(const char *alloc, const json_t *ledger, struct err *e);
int net_ledger_remove(const char *alloc, struct err *e);

/* net_find.c: opens the program of the plugin that this configuration is for, in the directories of
 * cni_path, and checks the programs that the plugin calls by it: only root can change them.
 * ret_dirs are the directories to look in, with ':' between them. Returns a descriptor or -errno.
 */
int net_plugin_find(const json_t *config, char ret_dirs[CONFIG_PATH_SIZE], struct err *e);

/* net_plugin.c: runs one plugin with args as CNI_ARGS and `input` on its stdin, until until_ms of
 * clock_ms() at most. *ret is the object that it printed, or NULL if it printed nothing. Returns 0,
 * or -errno with *e, which has the plugin's own sentence. */
int net_plugin_run(const char *alloc, const char *command, const char *type, const char *args,
    const json_t *input, uint64_t until_ms, json_t **ret, struct err *e);
/* Writes what the plugin prints without a command, as one line. Returns 0 or -errno. */
int net_plugin_describe(const char *alloc, const char *type, char ret[NET_MSG_SIZE], struct err *e);
/* Waits for a plugin of this alloc that a worker which was killed has left, and then kills what is
 * left. Returns 0 or -errno. */
int net_plugin_kill(const char *alloc, int wait_ms, struct err *e);

/* net_chain.c: calls all plugins of the ledger. net_chain_add() sets its "result". */
int net_chain_add(const char *alloc, json_t *ledger, uint64_t until_ms, struct err *e);
int net_chain_del(const char *alloc, const json_t *ledger, uint64_t until_ms, struct err *e);
/* Returns 0 also if the configuration does not want CHECK. */
int net_chain_check(const char *alloc, const json_t *ledger, uint64_t until_ms, struct err *e);

/* net_make.c, net_list.c: what workers do. */
worker_fn net_make, net_drop, net_check, net_list;
/* net_cleanup.c: for `drover cleanup`. Removes a network that has its ledger in runtime_dir, by
 * plugins in cni_path. Returns the exit code: 0, or 1 after printing the reason. */
int net_cleanup(const char *runtime_dir, const char *cni_path, const char *alloc);
/* Makes the memfd of an answer. Returns 0 or -errno. */
int net_answer(const json_t *json, struct worker_result *ret, struct err *e);

#endif
