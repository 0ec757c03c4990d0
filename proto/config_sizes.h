/* SPDX-License-Identifier: Apache-2.0 */
/* config_sizes.h: how long texts of the configuration (proto/agent_config.h) may be, with their
 * NUL, and how many members its lists may have. Runs in: every process. */
#ifndef DROVER_PROTO_CONFIG_SIZES_H
#define DROVER_PROTO_CONFIG_SIZES_H

#define CONFIG_NAME_SIZE    128
#define CONFIG_PATH_SIZE    256
#define CONFIG_META_MAX     64
#define CONFIG_VOLUMES_MAX  64
#define CONFIG_CHROOT_MAX   64
#define CONFIG_MASKS_MAX    128
#define CONFIG_RANGES_MAX   32
#define CONFIG_NODES_MAX    32
#define CONFIG_SERVERS_MAX  16
#define CONFIG_NETWORKS_MAX 16
#define CONFIG_PLUGINS_MAX  16
#define CONFIG_DEVICE_SIZE  16 /* IFNAMSIZ */
#define CONFIG_CIDR_SIZE    64
#define CONFIG_PROCESSES    16 /* more than there are */

#endif
