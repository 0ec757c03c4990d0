/* SPDX-License-Identifier: Apache-2.0 */
/* skopeo.h: the program that fetches images. The image-fetcher runs it, and the supervisor reports
 * that it is missing. Runs in: image-fetcher, supervisor. */
#ifndef DROVER_PROTO_SKOPEO_H
#define DROVER_PROTO_SKOPEO_H

#define SKOPEO "/usr/bin/skopeo"
#define SKOPEO_MISSING                                                                             \
	"container images are fetched by skopeo, and there is no " SKOPEO                          \
	": install the package skopeo"

#endif
