/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_blocks.h: the blocks of the configuration that have files of their own. Included by
 * config_reader.h. Runs in: the launcher's configuration child.
 */
#ifndef DROVER_CONFIG_CONFIG_BLOCKS_H
#define DROVER_CONFIG_CONFIG_BLOCKS_H

#include <stdbool.h>

#include "proto/agent_config.h"

struct config_attr;
struct config_reader;
struct config_sink;
struct hcl_node;

/* In config_network.c: of client and client { reserved }. */
int config_read_network_interface(struct config_reader *c, const struct hcl_node *node);
int config_read_reserved_ports(struct config_reader *c, const struct hcl_node *node);
extern const struct config_attr config_host_network_attrs[];

/* In config_cni.c: of client. */
int config_read_hairpin(struct config_reader *c, const struct hcl_node *node);
int config_read_bridge(struct config_reader *c, const struct hcl_node *node);
int config_read_bridge_subnet(struct config_reader *c, const struct hcl_node *node);
int config_read_bridge_subnet6(struct config_reader *c, const struct hcl_node *node);
int config_read_cni_config_dir(struct config_reader *c, const struct hcl_node *node);
int config_read_cni_path(struct config_reader *c, const struct hcl_node *node);

/* In config_cluster.c: of client. */
int config_read_servers(struct config_reader *c, const struct hcl_node *node);
int config_read_drain(struct config_reader *c, const struct hcl_node *node);
extern const struct config_attr config_server_join_attrs[];

/* In config_csi.c: client { csi_plugin, csi_call_timeout }. */
extern const struct config_attr config_csi_plugin_attrs[];
int config_read_csi_call_timeout(struct config_reader *c, const struct hcl_node *node);

/* In config_artifact.c: client { artifact }. */
extern const struct config_attr config_artifact_attrs[];

/* In config_template.c: client { template }, and its check after the last file. */
extern const struct config_attr config_template_attrs[];
void config_check_template(const struct agent_config *config, struct config_sink *sink);

/* In config_telemetry.c: telemetry { }. */
extern const struct config_attr config_telemetry_attrs[];

/* In config_audit.c: audit { }. */
extern const struct config_attr config_audit_attrs[];

/* In config_listen.c: health { … }, bind_addr, addresses { … }, ports { … }. */
extern const struct config_attr config_health_attrs[], config_addresses_attrs[],
    config_ports_attrs[];
/* Makes the address of the API over TCP. Returns false if there is none. */
bool config_find_api_address(struct agent_config *config, struct config_sink *sink);
/* Returns whether only this machine can reach the address. */
bool config_listen_is_local(const struct config_listen *at);

/* In config_tls.c: tls { … }; a file for an unprivileged process; the check after the last file. */
extern const struct config_attr config_tls_attrs[];
int config_read_file(struct config_reader *c, const struct hcl_node *node, enum config_file which);
void config_check_files(struct agent_config *config, struct config_sink *sink);

/* In config_drivers.c: client { options } and plugin { … }. */
extern const struct config_attr config_options_attrs[], config_plugin_attrs[];
/* In config_images.c: of plugin "docker" and "podman". */
extern const struct config_attr config_image_auth_attrs[], config_image_gc_attrs[];
int config_read_pull_idle(struct config_reader *c, const struct hcl_node *node);

#endif
