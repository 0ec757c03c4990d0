/* SPDX-License-Identifier: Apache-2.0 */
/* fet_redirect.h: what a server that redirects may learn. Runs in: fetcher. */
#ifndef DROVER_FETCHER_FET_REDIRECT_H
#define DROVER_FETCHER_FET_REDIRECT_H

#include <stdbool.h>

/* Whether a request to the second url may have the headers, user and password that are for the
 * first: it goes to the same port of the same host, or from http to https, at their usual ports.
 * False if a url is not valid. */
bool fet_is_same_server(const char *from, const char *to);

#endif
