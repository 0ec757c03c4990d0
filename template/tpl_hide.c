/* SPDX-License-Identifier: Apache-2.0 */
/* tpl_hide.c: hides values in sentences about errors, which are in events and logs: once a template
 * has read a secret, any value may be computed from it. Runs in: template-renderer, cli. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "template/tpl_run.h"

/* Numbers and booleans are in many templates, so one of them says nothing about where a value comes
 * from. */
static bool
is_number_or_boolean(struct tpl_run *run, const char *s, size_t len)
{
	const char *copy = arena_strndup(run->arena, s, len);
	bool letters = false;
	char *end;

	for (size_t i = 0; i < len; i++)
		letters |= isalpha((unsigned char)s[i]) || (unsigned char)s[i] >= 0x80;
	(void)strtod(copy, &end);
	return !letters || *end == '\0' || strcmp(copy, "true") == 0 || strcmp(copy, "false") == 0;
}

/* Whether the template itself has the text: in quotes, or as a key after a dot. */
static bool
is_in_template(struct tpl_run *run, const char *s, size_t len)
{
	const char *from = run->text->text, *end = from + run->text->len, *at = from;

	while ((at = memmem(at, (size_t)(end - at), s, len))) {
		char before = at > from ? at[-1] : ' ', after = at + len < end ? at[len] : ' ';

		if (strchr("\"`", before) && before && strchr("\"`", after) && after)
			return true;
		if (before == '.' && !isalnum((unsigned char)after) && after != '_')
			return true;
		at++;
	}
	return false;
}

static void
add_value(struct tpl_run *run, struct text *out, const char *s, size_t len)
{
	if (len == 0 || (!is_number_or_boolean(run, s, len) && is_in_template(run, s, len)))
		text_bytes(out, s, len);
	else
		text_add(out, "[redacted]");
}

/* The length of the value that begins after its mark at s. It may have the other mark in it. */
static size_t
marked_length(const char *s)
{
	size_t n = 1 + strcspn(s + 1, TPL_VALUE_BEGIN);
	const char *end = memrchr(s, *TPL_VALUE_END, n);

	return end ? (size_t)(end - s) - 1 : n - 1;
}

/* The length of the value that begins after its quote at s, or 0 if there is none. An apostrophe
 * inside a word is no quote. */
static size_t
quoted_length(const char *s, const char *sentence)
{
	size_t n = 1;

	if (s[1] == *TPL_VALUE_BEGIN ||
	    (*s == '\'' && s > sentence && isalnum((unsigned char)s[-1])))
		return 0;
	for (; s[n] && s[n] != *s; n++)
		n += s[n] == '\\' && s[n + 1];
	return n - 1;
}

static const char *
hide(struct tpl_run *run, const char *sentence)
{
	static const char begins[] = TPL_VALUE_BEGIN "\"`'";
	struct text out = { .arena = run->arena };
	const char *s = sentence;

	while (*s) {
		size_t n = strcspn(s, begins), len;

		text_bytes(&out, s, n);
		s += n;
		if (!*s)
			break;
		len = *s == *TPL_VALUE_BEGIN ? marked_length(s) : quoted_length(s, sentence);
		text_bytes(&out, s++, 1);
		if (len == 0)
			continue;
		add_value(run, &out, s, len);
		s += len;
		if (*s)
			text_bytes(&out, s++, 1);
	}
	return out.text ? out.text : "";
}

/* The sentence without the marks of values. */
static const char *
without_marks(struct tpl_run *run, const char *sentence)
{
	char *copy = arena_strndup(run->arena, sentence, strlen(sentence)), *to = copy;

	for (const char *s = sentence; *s; s++)
		if (*s != *TPL_VALUE_BEGIN && *s != *TPL_VALUE_END)
			*to++ = *s;
	*to = '\0';
	return copy;
}

const char *
tpl_hide_values(struct tpl_run *run, const char *sentence)
{
	return without_marks(run, run->sees_secrets ? hide(run, sentence) : sentence);
}
