/* SPDX-License-Identifier: Apache-2.0 */
/* proc_fd.h: the descriptors that the launcher passes. Runs in: every process but executor and cli.
 */
#ifndef DROVER_COMMON_PROC_FD_H
#define DROVER_COMMON_PROC_FD_H

/*
 * The descriptors that the launcher passes. Every process has 0 on /dev/null, 1 and 2 for the log,
 * and FD_LINK. FD_IPC is a helper's IPC socket; the supervisor has the other end of each. -1 in the
 * launcher's table means that a process does not have the descriptor.
 */
enum proc_fd {
	FD_LINK = 3,   /* from the launcher, SOCK_SEQPACKET, read only: EOF means exit; struct
			  proc_link messages */
	FD_CONFIG = 4, /* sealed memfd: struct agent_config (supervisor, heartbeat, csi-helper,
			  fetcher, listener) or agent_policy (others) */
	FD_LOCK = 5,   /* the flock on <data>/lock, which proc_main() keeps by a mapping in place of
			  the descriptor; /dev/null in csi-helper, check-helper, job-parser,
			  fetcher, template-renderer, listener, image-fetcher and
			  image-unpacker */
	FD_IPC = 6,    /* helpers: the socket to the supervisor */
	FD_SPECIAL = 7,  /* supervisor: the control socket; exec-helper: the executor's binary;
			    heartbeat: the lease, until it is mapped; listener: the TCP socket of
			    health { address }; others: /dev/null */
	FD_SPECIAL2 = 8, /* exec-helper: its own binary; listener: the TCP socket of the API;
			    others: /dev/null */
	FD_DATA = 9, /* exec-helper, mount-helper, file-helper: the data directory that the launcher
			locked, even if another one has its name by now; image-fetcher: its
			images/blobs; image-unpacker: its images */
	FD_LOG = 12, /* every process: for log_watch(): the socket that lines go to, */
	FD_LOG_LEVEL = 13, /* and the page with the level; the supervisor may write it */
	FD_FILES = 14,    /* heartbeat, listener, image-fetcher: the files of enum config_file, each
			     as a sealed memfd; /dev/null for those that it does not get; not open
			     if it gets none */
	FD_SUP_LOG = 14,  /* supervisor: the socket that lines arrive on */
	FD_SUP_EXEC = 15, /* supervisor: its ends of the thirteen socket pairs */
	FD_SUP_MOUNT = 16,
	FD_SUP_CSI = 17,
	FD_SUP_HEARTBEAT = 18,
	FD_SUP_CHECK = 19,
	FD_SUP_FILE = 20,
	FD_SUP_PARSER = 21,
	FD_SUP_FETCHER = 22,
	FD_SUP_RENDERER = 23,
	FD_SUP_LISTENER = 24,
	FD_SUP_IMAGE_FETCHER = 25,
	FD_SUP_IMAGE_UNPACKER = 26,
	FD_SUP_NETWORK = 27,
	FD_SUP_LAST = FD_SUP_NETWORK,
};

#endif
