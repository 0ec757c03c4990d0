/* SPDX-License-Identifier: Apache-2.0 */
/* template_need.h: the kinds of values that a template asks for. Runs in: template-renderer, which
 * names them, and supervisor, which finds them. */
#ifndef DROVER_PROTO_TEMPLATE_NEED_H
#define DROVER_PROTO_TEMPLATE_NEED_H

enum template_need_kind {
	TEMPLATE_NEED_VARIABLE, /* nomadVar */
	TEMPLATE_NEED_VARIABLE_EXISTS,
	TEMPLATE_NEED_VARIABLES, /* nomadVarList */
	TEMPLATE_NEED_SERVICE,   /* nomadService */
	TEMPLATE_NEED_SERVICES,  /* nomadServices */
	TEMPLATE_NEED_FILE,
	TEMPLATE_NEED_OTHER, /* of Consul or Vault */
};

#endif
