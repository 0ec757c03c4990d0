/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_path.c: paths as text, and the functions that need no more. Runs in: cli, job-parser. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hcl/hcl_func.h"
#include "hcl/hcl_functions.h"
#include "hcl/hcl_path.h"
#include "lang/text.h"

/* Removes the last component of a path that is made of clean ones. Returns false if there is none
 * that ".." could remove. */
static bool
drop_last(struct text *t, size_t root)
{
	size_t end = t->len;

	while (t->len > root && t->text[t->len - 1] != '/')
		t->len--;
	if (end == t->len || strncmp(t->text + t->len, "..", end - t->len) == 0) {
		t->len = end;
		return false;
	}
	if (t->len > root)
		t->len--;
	t->text[t->len] = '\0';
	return true;
}

const char *
hcl_path_clean(struct hcl *h, const char *path)
{
	struct text t = { .arena = hcl_arena(h) };
	size_t root = *path == '/', n;

	hcl_count_bytes(h, strlen(path));
	text_add(&t, root ? "/" : "");
	for (const char *s = path; *s; s += n) {
		s += strspn(s, "/");
		n = strcspn(s, "/");
		if (n == 0 || (n == 1 && *s == '.'))
			continue;
		if (n == 2 && memcmp(s, "..", 2) == 0 && (drop_last(&t, root) || root))
			continue;
		if (t.len > root)
			text_add(&t, "/");
		text_bytes(&t, s, n);
	}
	return t.len > 0 ? t.text : ".";
}

const char *
hcl_path_join(struct hcl *h, const char *base, const char *path)
{
	if (!*base)
		return *path ? hcl_path_clean(h, path) : "";
	return hcl_path_clean(h, hcl_printf(h, "%s/%s", base, path));
}

const char *
hcl_path_relative(struct hcl *h, const char *base, const char *path)
{
	struct text t = { .arena = hcl_arena(h) };
	size_t same = 0, i = 0;

	if (strcmp(base, ".") == 0)
		base = "";
	if ((*base == '/') != (*path == '/'))
		return NULL;
	for (; base[i] && base[i] == path[i]; i++)
		if (base[i] == '/')
			same = i + 1;
	if (!base[i] && (!path[i] || path[i] == '/' || i == 0))
		same = path[i] == '/' && i > 0 ? i + 1 : i;
	else if (!path[i] && base[i] == '/')
		same = i + 1;
	base += same < strlen(base) ? same : strlen(base);
	path += same < strlen(path) ? same : strlen(path);
	while (*base) {
		size_t n = strcspn(base, "/");

		if (strncmp(base, "..", n) == 0 && n == 2)
			return NULL;
		text_add(&t, *path || base[n] ? "../" : "..");
		base += n + (base[n] == '/');
	}
	text_add(&t, path);
	return t.len > 0 ? t.text : ".";
}

const char *
hcl_base_dir(struct hcl_call *c)
{
	const struct hcl_files *files = c->arg;

	if (!files || !files->allow)
		hcl_fail(c->h, c->at, "%s(): filesystem functions are disabled", c->function->name);
	for (size_t i = 0; i < c->n; i++)
		if (strlen(c->args[i]->string) != c->args[i]->len)
			hcl_refuse_argument(c, i, "a path must not contain a NUL character");
	return files->base_dir ? files->base_dir : "";
}

const char *
hcl_path_expand(struct hcl_call *c, const char *path)
{
	const char *home = getenv("HOME");
	struct passwd entry, *found = NULL;
	char buf[4096];

	if (*path != '~')
		return path;
	if (path[1] && path[1] != '/' && path[1] != '\\')
		hcl_refuse_argument(
		    c, 0, "only ~ alone stands for a home directory, not %.80s", path);
	if (!home || !*home) {
		(void)getpwuid_r(getuid(), &entry, buf, sizeof buf, &found);
		home = found ? found->pw_dir : NULL;
	}
	if (!home || !*home)
		hcl_refuse_argument(c, 0, "this user has no home directory");
	return hcl_path_join(c->h, home, path + 1);
}

struct hcl_value *
hcl_fn_abspath(struct hcl_call *c)
{
	const char *path = c->args[0]->string;
	char *here;

	(void)hcl_base_dir(c);
	if (*path == '/')
		return hcl_text(c->h, hcl_path_clean(c->h, path));
	here = getcwd(NULL, 0);
	if (!here)
		hcl_refuse_argument(
		    c, 0, "the current directory is unknown: %s", strerrordesc_np(errno));
	path = hcl_printf(c->h, "%s/%s", here, path);
	free(here);
	return hcl_text(c->h, hcl_path_clean(c->h, path));
}

struct hcl_value *
hcl_fn_basename(struct hcl_call *c)
{
	const char *path = c->args[0]->string;
	size_t end = c->args[0]->len, from;

	(void)hcl_base_dir(c);
	if (end == 0)
		return hcl_text(c->h, ".");
	while (end > 0 && path[end - 1] == '/')
		end--;
	if (end == 0)
		return hcl_text(c->h, "/");
	for (from = end; from > 0 && path[from - 1] != '/'; from--)
		;
	return hcl_string(c->h, path + from, end - from);
}

struct hcl_value *
hcl_fn_dirname(struct hcl_call *c)
{
	const char *path = c->args[0]->string, *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;

	(void)hcl_base_dir(c);
	return hcl_text(c->h, hcl_path_clean(c->h, hcl_strndup(c->h, path, n)));
}

struct hcl_value *
hcl_fn_pathexpand(struct hcl_call *c)
{
	(void)hcl_base_dir(c);
	return hcl_text(c->h, hcl_path_expand(c, c->args[0]->string));
}
