// SPDX-License-Identifier: Apache-2.0
/* cli_var_show.c: prints variables as a table, JSON or HCL. Runs in: cli. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_list.h"
#include "cli/cli_print.h"
#include "cli/cli_template.h"
#include "cli/cli_var.h"
#include "common/mem.h"

static bool
is_one_of(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == len && memcmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

int
cli_var_check_out(
    const struct cli *cli, const char *words, const char *template, const char **out, struct err *e)
{
	static char first[16];
	bool with_template = *out && strcmp(*out, "go-template") == 0;

	if (with_template != (template && *template))
		return err_say(e, -EINVAL, "-template and -out go-template need each other");
	if (with_template) {
		cli_template_use("-template", template);
		*out = "json";
	}
	if (cli->json)
		*out = "json";
	if (!*out && !isatty(STDOUT_FILENO))
		*out = "json";
	if (!*out) {
		(void)snprintf(first, sizeof first, "%.*s", (int)strcspn(words, " "), words);
		*out = first;
	}
	if (!is_one_of(words, *out))
		return err_say(e, -EINVAL, "-out must be one of: %s", words);
	return 0;
}

/* --- HCL --- */

static bool
is_identifier(const char *key)
{
	if (!isalpha((unsigned char)*key) && *key != '_')
		return false;
	for (; *key; key++)
		if (!isalnum((unsigned char)*key) && *key != '_' && *key != '-')
			return false;
	return true;
}

/* Appends a text in quotes. "${" stands for itself in specifications. */
static void
append_quoted(struct text *t, const char *s)
{
	text_append(t, "\"", 1);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_printf(t, "\\%c", *s);
		else if (*s == '\n')
			text_append(t, "\\n", 2);
		else if (*s == '\r')
			text_append(t, "\\r", 2);
		else if (*s == '\t')
			text_append(t, "\\t", 2);
		else if ((unsigned char)*s < 0x20 || *s == 0x7f)
			text_printf(t, "\\u%04x", (unsigned)*s);
		else
			text_append(t, s, 1);
	}
	text_append(t, "\"", 1);
}

static void
append_key(struct text *t, const char *key)
{
	if (is_identifier(key))
		text_append(t, key, strlen(key));
	else
		append_quoted(t, key);
}

static void
append_items(struct text *t, const struct variable *var)
{
	size_t longest = 0;

	for (size_t i = 0; i < var->items.n; i++) {
		struct text key = { 0 };

		append_key(&key, str(var->items.v[i].key));
		longest = key.len > longest ? key.len : longest;
		text_done(&key);
	}
	for (size_t i = 0; i < var->items.n; i++) {
		struct text key = { 0 };

		append_key(&key, str(var->items.v[i].key));
		text_printf(t, "  %-*s = ", (int)longest, key.text);
		text_done(&key);
		append_quoted(t, str(var->items.v[i].value));
		text_append(t, "\n", 1);
	}
}

static void
print_hcl(const struct variable *var)
{
	struct text t = { 0 };

	text_printf(&t, "namespace    = \"%s\"\npath         = \"%s\"\n", str(var->namespace),
	    str(var->path));
	text_printf(&t,
	    "create_index = %llu # set by the server\n"
	    "modify_index = %llu # set by the server; the index that the next write checks\n"
	    "create_time  = %lld # set by the server\n"
	    "modify_time  = %lld # set by the server\n\n",
	    (unsigned long long)var->create_index, (unsigned long long)var->modify_index,
	    (long long)var->create_time, (long long)var->modify_time);
	text_printf(&t, "items = {\n");
	append_items(&t, var);
	text_printf(&t, "}\n");
	(void)fwrite(t.text, 1, t.len, stdout);
	explicit_bzero(t.text, t.len);
	text_done(&t);
}

/* --- the others --- */

static void
print_table(const struct cli *cli, const struct variable *var, const json_t *json)
{
	char time[CLI_TIME_SIZE];

	cli_field("Namespace", "%s", str(var->namespace));
	cli_field("Path", "%s", str(var->path));
	cli_field("Create Time", "%s", cli_time(cli, var->create_time, time));
	if (var->modify_time != var->create_time)
		cli_field("Modify Time", "%s", cli_time(cli, var->modify_time, time));
	cli_field("Check Index", "%llu", (unsigned long long)var->modify_index);
	if (var->lock)
		cli_field("Lock", "%s", str(var->lock->id));
	if (var->items.n > 0)
		cli_map_print("Items", json_object_get(json, "Items"));
}

int
cli_var_show(const struct cli *cli, const char *out, const struct variable *var, struct err *e)
{
	cleanup_json json_t *json = model_to_json(&variable_type, var, 0);

	if (strcmp(out, "json") == 0)
		return cli_json_print(json, e);
	if (strcmp(out, "hcl") == 0)
		print_hcl(var);
	else if (strcmp(out, "table") == 0)
		print_table(cli, var, json);
	return 0;
}
