// SPDX-License-Identifier: Apache-2.0
/* fet_s3.c: how requests to buckets are signed. The url is that of the object, at Amazon or at
 * another server, with the bucket in the host's name or in the path. Runs in: a worker of the
 * fetcher. */
#include "fetcher/fet_s3.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define AMAZON         ".amazonaws.com"
#define DEFAULT_REGION "us-east-1"

/* The region in the name of one of Amazon's hosts: s3-REGION or s3.REGION, with or without a bucket
 * before it. */
static char *
region_of(const char *base)
{
	const char *host = strstr(base, "://") + 3, *end = strstr(host, AMAZON), *at = host;
	size_t len = strcspn(host, "/");

	if (!end || end > host + len)
		return mem_strdup(DEFAULT_REGION);
	for (; at < end; at += strcspn(at, ".") + 1) {
		len = strcspn(at, ".");
		if (len > 3 && strncmp(at, "s3-", 3) == 0)
			return mem_strndup(at + 3, len - 3);
		if (len == 2 && strncmp(at, "s3", 2) == 0 && at + 3 < end)
			return mem_strndup(at + 3, strcspn(at + 3, "."));
	}
	return mem_strdup(DEFAULT_REGION);
}

static char *
take_or_inherit(struct fet_source *s, const char *name, const char *variable, bool inherits)
{
	char *value = fet_source_take(s, name);
	const char *inherited = inherits ? getenv(variable) : NULL;

	return value || !inherited ? value : mem_strdup(inherited);
}

int
fet_s3_read(struct fet_source *s, struct fet_s3 *ret, struct err *e)
{
	const bool none = !string_map_get(&s->query, "aws_access_key_id") &&
			  !string_map_get(&s->query, "aws_access_key_secret");
	cleanup_free char *profile = fet_source_take(s, "aws_profile");
	cleanup_free char *region = fet_source_take(s, "region");
	cleanup_free char *version = fet_source_take(s, "version");

	*ret = (struct fet_s3){ 0 };
	if (strcmp(s->scheme, "http") != 0 && strcmp(s->scheme, "https") != 0)
		return err_say(e, -EINVAL, "the url of s3:: must be http:// or https://");
	if (profile)
		return err_say(e, -EINVAL,
		    "aws_profile is not supported, because the fetcher reads no user's files");
	ret->user = take_or_inherit(s, "aws_access_key_id", "AWS_ACCESS_KEY_ID", none);
	ret->password = take_or_inherit(s, "aws_access_key_secret", "AWS_SECRET_ACCESS_KEY", none);
	ret->token = take_or_inherit(s, "aws_access_token", "AWS_SESSION_TOKEN", none);
	if (version)
		string_map_set(&s->query, "versionId", version);
	if (!ret->user || !ret->password)
		return 0;
	if (!region)
		region = region_of(s->base);
	ret->sign = mem_printf("aws:amz:%s:s3", region);
	return 0;
}

void
fet_s3_done(struct fet_s3 *s3)
{
	free(s3->sign);
	free(s3->user);
	free(s3->password);
	free(s3->token);
}
