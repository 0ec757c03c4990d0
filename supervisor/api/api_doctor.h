/* SPDX-License-Identifier: Apache-2.0 */
/* api_doctor.h: /v1/agent/volumes for each source of work. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_DOCTOR_H
#define DROVER_SUPERVISOR_API_API_DOCTOR_H

#include "supervisor/http/api.h"
#include "supervisor/volume/volume_page.h"

/* The functions of a source that has the registered volumes and their claims. */
struct doctor_source {
	/* Adds the plugins of its volumes. */
	void (*add_plugins)(struct sup *sup, struct strings *ret);
	/* Adds the pages of its volumes, with their claims. */
	void (*add_pages)(struct sup *sup, const struct volume_facts *f, json_t *pages);
	/* Begins to repair a problem that volume_page_fix() does not know. */
	bool (*fix)(struct sup *sup, const json_t *page, const json_t *problem);
};

/* Answers the request; with fix it repairs first. source NULL: the claims are not known here. */
void api_doctor_run(
    struct sup *sup, struct api_req *req, const struct doctor_source *source, bool fix);

#endif
