/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sup_calls.h: the typed stubs over child_call(), one line per request of proto/ipc_msgs.def. The
 * handler of mnt_call_volume_prove() is mnt_on_volume_prove(). Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_CORE_SUP_CALLS_H
#define DROVER_SUPERVISOR_CORE_SUP_CALLS_H

#include "proto/check_helper.pb-c.h"
#include "proto/csi_helper.pb-c.h"
#include "proto/exec.pb-c.h"
#include "proto/file.pb-c.h"
#include "proto/mount.pb-c.h"
#include "supervisor/core/sup_child.h"

#define SUP_CALL(stub, to, type, message, timeout_ms, flags)                                       \
	static inline uint64_t stub(struct sup *sup, const message *msg, call_cb *cb, void *arg)   \
	{                                                                                          \
		return child_call(sup, to, type, &msg->base, -1, timeout_ms, flags, cb, arg);      \
	}                                                                                          \
	_Static_assert(1, "")

/* The same with a descriptor, which is taken over. */
#define SUP_CALL_FD(stub, to, type, message, timeout_ms, flags)                                    \
	static inline uint64_t stub(                                                               \
	    struct sup *sup, const message *msg, int fd, call_cb *cb, void *arg)                   \
	{                                                                                          \
		return child_call(sup, to, type, &msg->base, fd, timeout_ms, flags, cb, arg);      \
	}                                                                                          \
	_Static_assert(1, "")

SUP_CALL_FD(exec_call_task_start, IPC_EXEC_HELPER, EXEC_TASK_START_REQ, ExecTaskStartReq, 30000,
    CALL_REPEAT);
/* Not repeated: its executor may have been there, and done its work, already. */
SUP_CALL_FD(exec_call_session_start, IPC_EXEC_HELPER, EXEC_SESSION_START_REQ, ExecSessionStartReq,
    30000, 0);
SUP_CALL(
    exec_call_run_reap, IPC_EXEC_HELPER, EXEC_RUN_REAP_REQ, ExecRunReapReq, 30000, CALL_REPEAT);

SUP_CALL(mnt_call_alloc_release, IPC_MOUNT_HELPER, MNT_ALLOC_RELEASE_REQ, MntAllocReleaseReq, 60000,
    CALL_REPEAT);
SUP_CALL(
    mnt_call_disk_limit, IPC_MOUNT_HELPER, MNT_DISK_LIMIT_REQ, MntDiskLimitReq, 30000, CALL_REPEAT);
SUP_CALL(mnt_call_plugin_root_make, IPC_MOUNT_HELPER, MNT_PLUGIN_ROOT_MAKE_REQ,
    MntPluginRootMakeReq, 30000, CALL_REPEAT);
SUP_CALL(mnt_call_plugin_root_remove, IPC_MOUNT_HELPER, MNT_PLUGIN_ROOT_REMOVE_REQ,
    MntPluginRootRemoveReq, 30000, CALL_REPEAT);
SUP_CALL(mnt_call_plugin_connect, IPC_MOUNT_HELPER, MNT_PLUGIN_CONNECT_REQ, MntPluginConnectReq,
    10000, CALL_REPEAT);
SUP_CALL(mnt_call_volume_prove, IPC_MOUNT_HELPER, MNT_VOLUME_PROVE_REQ, MntVolumeProveReq, 30000,
    CALL_REPEAT);

SUP_CALL(file_call_alloc_dir_make, IPC_FILE_HELPER, FILE_ALLOC_DIR_MAKE_REQ, FileAllocDirMakeReq,
    30000, CALL_REPEAT);
SUP_CALL(file_call_alloc_dir_remove, IPC_FILE_HELPER, FILE_ALLOC_DIR_REMOVE_REQ,
    FileAllocDirRemoveReq, 60000, CALL_REPEAT);
SUP_CALL(file_call_plugin_dir_make, IPC_FILE_HELPER, FILE_PLUGIN_DIR_MAKE_REQ, FilePluginDirMakeReq,
    30000, CALL_REPEAT);
SUP_CALL(file_call_plugin_dir_remove, IPC_FILE_HELPER, FILE_PLUGIN_DIR_REMOVE_REQ,
    FilePluginDirRemoveReq, 30000, CALL_REPEAT);
SUP_CALL(file_call_volume_dir_make, IPC_FILE_HELPER, FILE_VOLUME_DIR_MAKE_REQ, FileVolumeDirMakeReq,
    30000, CALL_REPEAT);
SUP_CALL(file_call_volume_dir_remove, IPC_FILE_HELPER, FILE_VOLUME_DIR_REMOVE_REQ,
    FileVolumeDirRemoveReq, 30000, CALL_REPEAT);
SUP_CALL(
    file_call_root_list, IPC_FILE_HELPER, FILE_ROOT_LIST_REQ, FileRootListReq, 30000, CALL_REPEAT);
SUP_CALL(
    file_call_disk_stat, IPC_FILE_HELPER, FILE_DISK_STAT_REQ, FileDiskStatReq, 30000, CALL_REPEAT);
SUP_CALL(file_call_disk_usage, IPC_FILE_HELPER, FILE_DISK_USAGE_REQ, FileDiskUsageReq, 40000,
    CALL_REPEAT);
SUP_CALL(
    file_call_alloc_fs, IPC_FILE_HELPER, FILE_ALLOC_FS_REQ, FileAllocFsReq, 10000, CALL_REPEAT);

/* A channel dies with its csi-helper, so these are not repeated; the volume manager decides. */
SUP_CALL_FD(csi_call_plugin_open, IPC_CSI_HELPER, CSI_PLUGIN_OPEN_REQ, CsiPluginOpenReq, 30000, 0);
SUP_CALL(csi_call_plugin_close, IPC_CSI_HELPER, CSI_PLUGIN_CLOSE_REQ, CsiPluginCloseReq, 10000, 0);
/* The plugin's deadline is in the message; this one is for csi-helper itself. */
static inline uint64_t
csi_call(struct sup *sup, const CsiCallReq *msg, call_cb *cb, void *arg)
{
	return child_call(
	    sup, IPC_CSI_HELPER, CSI_CALL_REQ, &msg->base, -1, msg->timeout_ms + 5000, 0, cb, arg);
}

/* The same. Not repeated: who made it end once may do so again, at the cost of all others. */
static inline uint64_t
chk_call_https_ask(struct sup *sup, const ChkHttpsAskReq *msg, call_cb *cb, void *arg)
{
	return child_call(sup, IPC_CHECK_HELPER, CHK_HTTPS_ASK_REQ, &msg->base, -1,
	    msg->timeout_ms + 5000, 0, cb, arg);
}

#undef SUP_CALL
#undef SUP_CALL_FD

#endif
