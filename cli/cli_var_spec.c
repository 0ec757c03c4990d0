// SPDX-License-Identifier: Apache-2.0
/* cli_var_spec.c: reads variables from specifications, in HCL or JSON, and from words of the
 * command line. Errors name a place or a key, and never a value. Runs in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli_file.h"
#include "cli/cli_spec.h"
#include "cli/cli_var.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"

bool
cli_var_is_file(const char *word)
{
	return word[0] == '@' && word[1];
}

static int
open_word(const char *word, struct cli_file *ret, struct err *e)
{
	static bool stdin_read;

	if (!cli_var_is_file(word)) {
		if (stdin_read)
			return err_say(e, -EINVAL, "standard input can be read only once");
		stdin_read = true;
	}
	return cli_file_open(cli_var_is_file(word) ? word + 1 : word, ret, e);
}

static void
close_file(struct cli_file *file)
{
	if (file->text)
		explicit_bzero(file->text, file->len);
	cli_file_done(file);
}

/* --- JSON --- */

/* jansson's own sentence has a part of the text. */
static int
parse_json(const struct cli_file *file, json_t **ret, struct err *e)
{
	json_error_t why;

	*ret = json_loadb(file->text, file->len, JSON_REJECT_DUPLICATES, &why);
	if (*ret)
		return 0;
	return err_say(e, -EINVAL, "%s is not JSON: there is a fault in line %d, column %d",
	    file->name, why.line, why.column);
}

static int
decode_variable(
    const struct cli_file *file, const json_t *json, struct variable *ret, struct err *e)
{
	struct err why = { 0 };

	return model_from_json(&variable_type, json, ret, &why) < 0
		   ? err_say(e, -EINVAL, "%s: %s", file->name, why.msg)
		   : 0;
}

static int
read_json(const struct cli_file *file, struct variable *ret, struct err *e)
{
	cleanup_json json_t *json = NULL;
	int r = parse_json(file, &json, e);

	return r < 0 ? r : decode_variable(file, json, ret, e);
}

/* --- HCL --- */

static void
read_number(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into)
{
	int64_t number;
	struct err why;

	if (value->kind != HCL_NODE_NUMBER || cli_number(m->file, value->text, &number, &why) < 0)
		hcl_error(h, value->at, "%s: expected a whole number", m->file);
	else
		cli_spec_set(h, m, value, into, json_integer(number));
}

static const struct cli_spec_member members[] = {
	{ "create_index", "CreateIndex", read_number },
	{ "create_time", "CreateTime", read_number },
	{ "items", "Items", cli_spec_read_map },
	{ "modify_index", "ModifyIndex", read_number },
	{ "modify_time", "ModifyTime", read_number },
	{ "namespace", "Namespace", cli_spec_read_text },
	{ "path", "Path", cli_spec_read_text },
};
static const struct cli_spec_block variable_block = CLI_SPEC_BLOCK("a variable", members);

struct spec_call {
	const struct hcl_node *root;
	json_t *variable;
};

static void
read_variable(struct hcl *h, void *arg)
{
	struct spec_call *c = arg;

	cli_spec_read_block(h, &variable_block, c->root, c->variable);
}

/* Says the first problem, without its line of the file. What the parser found may be a part of a
 * value, so only the place is said. */
static int
say_problem(struct hcl *h, bool parsed, struct err *e)
{
	const struct hcl_problem *p = hcl_problems(h);
	struct hcl_position at;

	while (p && p->warning)
		p = p->next;
	if (!p)
		return 0;
	if (parsed)
		return err_say(e, -EINVAL, "%s", hcl_problem_line(h, p));
	at = hcl_position(p->at.source, p->at.from);
	return err_say(e, -EINVAL, "%s is not HCL: there is a fault in line %u, column %u",
	    p->at.source->name, at.line, at.column);
}

static int
read_hcl(const struct cli_file *file, struct variable *ret, struct err *e)
{
	struct hcl *h = hcl_new(&hcl_tree_limits);
	struct hcl_source source = { file->name, file->text, file->len };
	struct spec_call c = { hcl_tree_parse_literal(h, &source), json_object() };
	int r;

	if (c.root)
		(void)hcl_try(h, read_variable, &c);
	r = say_problem(h, c.root != NULL, e);
	hcl_free(h);
	if (r == 0)
		r = decode_variable(file, c.variable, ret, e);
	json_decref(c.variable);
	return r;
}

/* --- specifications --- */

static bool
ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len > n && strcmp(name + len - n, end) == 0;
}

int
cli_var_read_spec(const char *word, enum cli_var_in in, struct variable *ret, struct err *e)
{
	struct cli_file file = { 0 };
	int r = open_word(word, &file, e);

	if (r == 0 && cli_var_is_file(word)) {
		if (ends_with(word, ".json"))
			in = CLI_VAR_IN_JSON;
		else if (ends_with(word, ".hcl"))
			in = CLI_VAR_IN_HCL;
	}
	if (r == 0)
		r = in == CLI_VAR_IN_HCL ? read_hcl(&file, ret, e) : read_json(&file, ret, e);
	close_file(&file);
	return r;
}

char *
cli_var_path(const char *word)
{
	size_t from = strspn(word, " /"), len = strlen(word + from);

	while (len > 0 && strchr(" /", word[from + len - 1]))
		len--;
	return mem_strndup(word + from, len);
}

void
cli_var_rename(struct variable *var, const char *namespace, const char *path)
{
	bool other =
	    (path && !str_eq(path, var->path)) || (namespace && !str_eq(namespace, var->namespace));

	if (path)
		str_set(&var->path, path);
	if (namespace)
		str_set(&var->namespace, namespace);
	if (!other)
		return;
	var->create_index = var->modify_index = 0;
	var->create_time = var->modify_time = 0;
}

/* --- words --- */

/* Sets an item; an empty value removes it. */
static void
set_item(struct variable *var, const char *key, const char *value)
{
	struct variable old;

	if (*value) {
		string_map_set(&var->items, key, value);
		return;
	}
	variable_init(&old);
	old.items = var->items;
	var->items = (struct string_map){ 0 };
	for (size_t i = 0; i < old.items.n; i++)
		if (strcmp(old.items.v[i].key, key) != 0)
			string_map_append(
			    &var->items, old.items.v[i].key, str(old.items.v[i].value));
	variable_done(&old);
}

static int
set_from_file(struct variable *var, const char *key, const char *word, struct err *e)
{
	struct cli_file file = { 0 };
	int r = open_word(word, &file, e);

	if (r == 0 && (strlen(file.text) != file.len || !utf8_is_text(file.text, file.len)))
		r = err_say(e, -EINVAL,
		    "%s is not text in UTF-8 without NUL, which the value of %s must be: encode "
		    "it, for example with base64",
		    file.name, key);
	if (r == 0)
		set_item(var, key, file.text);
	close_file(&file);
	return r;
}

/* Adds the members of an object of JSON. */
static int
add_object(struct variable *var, const char *word, struct err *e)
{
	struct cli_file file = { 0 };
	cleanup_json json_t *json = NULL;
	const char *key;
	json_t *value;
	int r = open_word(word, &file, e);

	if (r == 0)
		r = parse_json(&file, &json, e);
	if (r == 0 && !json_is_object(json))
		r = err_say(e, -EINVAL, "%s is not an object of JSON", file.name);
	json_object_foreach (json, key, value) {
		if (r == 0 && !json_is_string(value))
			r = err_say(
			    e, -EINVAL, "%s: the value of %s is not a text", file.name, key);
		if (r == 0)
			set_item(var, key, json_string_value(value));
	}
	close_file(&file);
	return r;
}

static int
add_pair(struct variable *var, const char *key, const char *value, struct err *e)
{
	if (strcmp(value, "-") == 0 || value[0] == '@')
		return set_from_file(var, key, value, e);
	if (!utf8_is_text(value, strlen(value)))
		return err_say(e, -EINVAL, "the value of %s is not UTF-8", key);
	set_item(var, key, value + (value[0] == '\\' && value[1] == '@'));
	return 0;
}

int
cli_var_add_words(int n, char **words, struct variable *var, struct err *e)
{
	struct strings seen = { 0 };
	int r = 0;

	for (int i = 0; i < n && r == 0; i++) {
		size_t len = strcspn(words[i], "=");
		cleanup_free char *key = mem_strndup(words[i], len);

		if (!words[i][0])
			continue;
		if (strcmp(words[i], "-") == 0 || (cli_var_is_file(words[i]) && !words[i][len]))
			r = add_object(var, words[i], e);
		else if (!words[i][len])
			r = err_say(e, -EINVAL, "word %d of the items is not KEY=VALUE", i + 1);
		else if (strings_has(&seen, key))
			r = err_say(e, -EINVAL, "%s is given twice", key);
		else
			r = add_pair(var, key, words[i] + len + 1, e);
		strings_add(&seen, key);
	}
	strings_done(&seen);
	return r;
}
