/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_func_glob.c: finds files by a pattern: "**" is any number of directories, "*" and "?" match
 * inside a component, [a-z] and [^a-z] one character, {a,b} one of several texts, a backslash makes
 * the next character literal. Links are followed. Runs in: cli, job-parser.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistr.h>

#include "hcl/hcl_doc.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_path.h"

#define ENTRY_STEPS     16   /* a file costs a system call or two */
#define CHOICES_MAX     1000 /* patterns that {a,b} makes of one */
#define DIRECTORIES_MAX 100  /* inside each other */

struct glob {
	struct hcl_call *c;
	struct hcl_items *found;
	unsigned depth;
	size_t choices;
};

static void walk(struct glob *g, const char *dir, const char *pattern);

static ucs4_t
read_char(const char *s, size_t *ret_len)
{
	ucs4_t ch;
	int n = u8_mbtoucr(&ch, (const uint8_t *)s, strlen(s));

	*ret_len = n > 0 ? (size_t)n : 1;
	return n > 0 ? ch : (unsigned char)*s;
}

/* One end of a range, after a backslash or not. Returns NULL if there is none. */
static const char *
read_end(const char *s, ucs4_t *ret)
{
	size_t n;

	s += *s == '\\';
	if (!*s || *s == '-')
		return NULL;
	*ret = read_char(s, &n);
	return s + n;
}

/* After "[". Returns what follows "]", or NULL if the set is wrong. */
static const char *
match_set(const char *s, ucs4_t ch, bool *ret_matches)
{
	bool negative = *s == '^', matches = false;
	ucs4_t low, high;

	s += negative;
	if (*s == ']')
		return NULL;
	while (s && *s && *s != ']') {
		s = read_end(s, &low);
		high = low;
		if (s && *s == '-')
			s = read_end(s + 1, &high);
		matches |= s && low <= ch && ch <= high;
	}
	*ret_matches = matches != negative;
	return s && *s ? s + 1 : NULL;
}

static bool
matches_name(struct glob *g, const char *p, const char *name)
{
	size_t n, some;
	bool ok;

	for (; *p; name += n) {
		ucs4_t ch = read_char(name, &n);

		hcl_step(g->c->h, 1);
		if (*p == '*') {
			p += strspn(p, "*");
			for (; *name; name += n) {
				if (matches_name(g, p, name))
					return true;
				(void)read_char(name, &n);
			}
			return !*p;
		}
		if (!*name)
			return false;
		if (*p == '[') {
			p = match_set(p + 1, ch, &ok);
			if (!p)
				hcl_refuse_argument(g->c, 1, "wrong pattern: check its brackets");
			if (!ok)
				return false;
			continue;
		}
		if (*p == '?') {
			p++;
			continue;
		}
		p += *p == '\\';
		if (!*p)
			hcl_refuse_argument(g->c, 1, "wrong pattern: it ends with a backslash");
		if (read_char(p, &some) != ch)
			return false;
		p += some;
	}
	return !*name;
}

struct listing {
	struct glob *g;
	DIR *d;
	struct hcl_items names;
};

static void
list_names(struct hcl *h, void *arg)
{
	struct listing *l = arg;
	struct dirent *e;

	while ((e = readdir(l->d))) {
		hcl_step(h, ENTRY_STEPS);
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			hcl_items_add(&l->names, hcl_text(h, e->d_name));
	}
}

static void
close_listing(void *listing)
{
	(void)closedir(((struct listing *)listing)->d);
}

static bool
is_directory(struct glob *g, const char *path)
{
	struct stat st;

	hcl_step(g->c->h, ENTRY_STEPS);
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Goes on in `path` with the rest of a pattern; a path without a rest was found. */
static void
go_on(struct glob *g, const char *path, const char *rest)
{
	if (!rest)
		hcl_items_add(g->found, hcl_text(g->c->h, path));
	else if (is_directory(g, path))
		walk(g, path, rest);
}

static void
walk_names(struct glob *g, const char *dir, const char *pattern, const struct hcl_items *names)
{
	struct hcl *h = g->c->h;
	const char *slash = strchr(pattern, '/'), *rest = slash ? slash + 1 : NULL;
	const char *first =
	    hcl_strndup(h, pattern, slash ? (size_t)(slash - pattern) : strlen(pattern));
	bool any = strcmp(first, "**") == 0;
	struct stat st;

	hcl_step(h, names->n);
	for (size_t i = 0; i < names->n; i++) {
		const char *path = hcl_path_join(h, dir, names->v[i]->string);

		if (any && is_directory(g, path))
			walk(g, path, pattern);
		else if (any && !rest && stat(path, &st) == 0)
			go_on(g, path, NULL);
		else if (!any && matches_name(g, first, names->v[i]->string))
			go_on(g, path, rest);
	}
	if (any && rest)
		walk_names(g, dir, rest, names);
}

/* Returns whether the pattern begins with a component that is only a name, and goes on there. */
static bool
walk_name(struct glob *g, const char *dir, const char *pattern)
{
	size_t n = strcspn(pattern, "/");
	const char *path;
	struct stat st;

	if (strcspn(pattern, "*?[\\") < n)
		return false;
	hcl_step(g->c->h, ENTRY_STEPS);
	path = hcl_path_join(g->c->h, dir, hcl_strndup(g->c->h, pattern, n));
	if (lstat(path, &st) == 0)
		go_on(g, path, pattern[n] ? pattern + n + 1 : NULL);
	return true;
}

/* A directory that cannot be read has no files, as in the original. */
static void
walk(struct glob *g, const char *dir, const char *pattern)
{
	struct listing l = { .g = g, .names = { .h = g->c->h } };

	if (walk_name(g, dir, pattern))
		return;
	if (g->depth == DIRECTORIES_MAX)
		hcl_refuse_argument(
		    g->c, 0, "more than %d directories are inside each other", DIRECTORIES_MAX);
	l.d = opendir(dir);
	if (!l.d)
		return;
	g->depth++;
	hcl_finally(g->c->h, list_names, &l, close_listing);
	walk_names(g, dir, pattern, &l.names);
	g->depth--;
}

/* Returns the end of what an opening brace contains, or NULL; *ret_comma is the first comma in it
 * that is not inside another one. */
static const char *
find_brace_end(const char *s, const char **ret_comma)
{
	unsigned depth = 0;

	*ret_comma = NULL;
	for (; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '{')
			depth++;
		else if (*s == '}' && depth-- == 0)
			return s;
		else if (*s == ',' && depth == 0 && !*ret_comma)
			*ret_comma = s;
	}
	return NULL;
}

/* The first brace outside of sets, or NULL. */
static const char *
find_brace(const char *s)
{
	for (; *s; s++) {
		if (*s == '{')
			return s;
		if (*s == '\\' && s[1])
			s++;
		else if (*s == '[')
			while (s[1] && *s != ']')
				s += 1 + (*s == '\\' && s[1] && s[2]);
	}
	return NULL;
}

/* Looks for the pattern with each of the texts in its first braces. */
static void
find_choices(struct glob *g, const char *pattern)
{
	const char *brace = find_brace(pattern), *comma, *end, *from;
	struct hcl *h = g->c->h;
	bool absolute;

	if (++g->choices > CHOICES_MAX)
		hcl_refuse_argument(g->c, 1, "the pattern has too many choices");
	if (!brace) {
		absolute = *pattern == '/';
		walk(g, absolute ? "/" : ".", pattern + absolute);
		return;
	}
	end = find_brace_end(brace + 1, &comma);
	if (!end)
		hcl_refuse_argument(g->c, 1, "wrong pattern: a brace has no end");
	for (from = brace + 1; from; from = comma ? comma + 1 : NULL) {
		size_t n;

		(void)find_brace_end(from, &comma);
		n = (size_t)((comma ? comma : end) - from);
		find_choices(g, hcl_printf(h, "%.*s%.*s%s", (int)(brace - pattern), pattern, (int)n,
				    from, end + 1));
	}
}

void
hcl_glob(struct hcl_call *c, const char *pattern, struct hcl_items *ret)
{
	struct glob g = { .c = c, .found = ret };

	hcl_count_bytes(c->h, strlen(pattern));
	if (*pattern)
		find_choices(&g, pattern);
}
