// SPDX-License-Identifier: Apache-2.0
/* cli_secrets.c: secrets of a request to a plugin, from flags and files. Runs in: cli. */
#include "cli/cli_secrets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_file.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define HEADER "X-Nomad-CSI-Secrets: "

struct cli_secrets cli_secrets;

const struct cli_flag cli_secret_flags[] = { CLI_SECRET_FLAGS, { 0 } };

/* An error never shows the pair: it may be the secret alone. */
static int
add_pair(json_t *secrets, char *pair, const char *from, struct err *e)
{
	char *value = strchr(pair, '=');

	if (!value || value == pair)
		return err_say(e, -EINVAL, "%s: a secret is not of the form KEY=VALUE", from);
	*value++ = '\0';
	return json_object_set_new(secrets, pair, json_string(value)) == 0
		   ? 0
		   : err_say(e, -EINVAL, "%s: a secret is not valid UTF-8", from);
}

static int
add_file(json_t *secrets, const char *path, struct err *e)
{
	struct cli_file file = { 0 };
	int r = cli_file_open(path, &file, e);
	char *save = NULL;

	for (char *line = r == 0 ? strtok_r(file.text, "\n", &save) : NULL; r == 0 && line;
	     line = strtok_r(NULL, "\n", &save))
		r = add_pair(secrets, line, file.name, e);
	if (file.text)
		explicit_bzero(file.text, file.len);
	cli_file_done(&file);
	return r;
}

int
cli_secrets_read(json_t **ret, struct err *e)
{
	cleanup_json json_t *secrets = json_object();
	int r = cli_secrets.file ? add_file(secrets, cli_secrets.file, e) : 0;

	for (size_t i = 0; r == 0 && i < cli_secrets.given.n; i++)
		r = add_pair(secrets, cli_secrets.given.v[i], "-secret", e);
	if (r == 0)
		*ret = steal_ptr(&secrets);
	return r;
}

/* The header separates pairs by commas and has no escapes. */
static bool
fits_header(const char *text)
{
	size_t len = strlen(text);

	for (const char *c = text; *c; c++)
		if (*c == ',' || (unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return len == 0 || (*text != ' ' && text[len - 1] != ' ');
}

int
cli_secrets_set_header(struct cli *cli, struct err *e)
{
	cleanup_json json_t *secrets = NULL;
	struct text header = { 0 };
	const char *key;
	json_t *value;
	int r = cli_secrets_read(&secrets, e);

	if (r < 0 || json_object_size(secrets) == 0)
		return r;
	text_printf(&header, HEADER);
	json_object_foreach (secrets, key, value) {
		if (!fits_header(key) || !fits_header(json_string_value(value))) {
			text_done(&header);
			return err_say(e, -EINVAL,
			    "the secret \"%.64s\" cannot be sent with this request: it has a "
			    "comma, "
			    "a control character, or a blank at its begin or end",
			    key);
		}
		text_printf(&header, "%s%s=%s", header.len > strlen(HEADER) ? "," : "", key,
		    json_string_value(value));
	}
	text_printf(&header, "\r\n");
	cli->headers = header.text;
	return 0;
}
