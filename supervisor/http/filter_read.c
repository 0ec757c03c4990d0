// SPDX-License-Identifier: Apache-2.0
/* filter_read.c: reads the expressions of ?filter=. Runs in: supervisor. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/http/filter_expr.h"

#define DEPTH_MAX 50

enum token { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_SIGN };

struct reader {
	struct api_filter *f;
	const char *at;
	enum token token;
	const char *word; /* its text; for an operator: "==", "!=", or one of ()[]{}, */
	struct err *e;
};

static int
refuse_token(struct reader *r, const char *what)
{
	return err_say(
	    r->e, -EINVAL, "filter, at \"%.40s\": %s", *r->word ? r->word : "the end", what);
}

/* Tokens. */

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_./-:", c));
}

static void
keep_char(struct reader *r, char c)
{
	r->f->words[r->f->words_len++] = c;
}

static int
read_string(struct reader *r)
{
	char quote = *r->at++;

	for (; *r->at && *r->at != quote; r->at++) {
		if (*r->at == '\\' && quote == '"' && r->at[1])
			r->at++;
		keep_char(r, *r->at);
	}
	if (!*r->at)
		return err_say(r->e, -EINVAL, "filter: a text has no closing %c", quote);
	r->at++;
	r->token = TOKEN_STRING;
	return 0;
}

static int
read_sign(struct reader *r)
{
	bool two = (r->at[0] == '=' || r->at[0] == '!') && r->at[1] == '=';

	if (!two && !strchr("()[]{},", *r->at))
		return err_say(r->e, -EINVAL,
		    "filter: \"%.20s\" begins with a character that has no meaning here", r->at);
	keep_char(r, *r->at++);
	if (two)
		keep_char(r, *r->at++);
	r->token = TOKEN_SIGN;
	return 0;
}

/* Reads the next token. */
static int
next_token(struct reader *r)
{
	int ret = 0;

	while (isspace((unsigned char)*r->at))
		r->at++;
	r->word = r->f->words + r->f->words_len;
	r->token = TOKEN_END;
	if (*r->at == '"' || *r->at == '`') {
		ret = read_string(r);
	} else if (is_word(*r->at)) {
		while (is_word(*r->at))
			keep_char(r, *r->at++);
		r->token = TOKEN_WORD;
	} else if (*r->at) {
		ret = read_sign(r);
	}
	keep_char(r, '\0');
	return ret;
}

static bool
is_token(const struct reader *r, enum token token, const char *word)
{
	return r->token == token && strcmp(r->word, word) == 0;
}

/* Consumes the token if it is this one. Returns 1, or 0 if it is another. */
static int
take_token(struct reader *r, enum token token, const char *word)
{
	int ret;

	if (!is_token(r, token, word))
		return 0;
	ret = next_token(r);
	return ret < 0 ? ret : 1;
}

/* Expressions. */

static struct filter_node *
add_node(struct reader *r, enum filter_kind kind)
{
	struct filter_node *n = &r->f->nodes[r->f->n_nodes++];

	n->kind = kind;
	return n;
}

static int
add_part(struct reader *r, struct filter_node *n, const char *part)
{
	if (n->n_parts == FILTER_PARTS_MAX)
		return refuse_token(r, "the field's name has too many parts");
	if (!*part)
		return refuse_token(r, "a part of the field's name is empty");
	n->parts[n->n_parts++] = part;
	return 0;
}

/* Splits A.B or /A/B in place. */
static int
add_parts(struct reader *r, struct filter_node *n, char *word, char separator)
{
	int ret = 0;

	if (*word == separator)
		word++;
	while (ret == 0 && word) {
		char *end = strchr(word, separator);

		if (end)
			*end++ = '\0';
		ret = add_part(r, n, word);
		word = end;
	}
	return ret;
}

static int
read_field(struct reader *r, struct filter_node *n)
{
	bool pointer = r->token == TOKEN_STRING && *r->word == '/';
	int ret;

	if (r->token != TOKEN_WORD && !pointer)
		return refuse_token(r, "the name of a field was expected");
	while (r->token == TOKEN_WORD || pointer) {
		ret = add_parts(r, n, (char *)(uintptr_t)r->word, pointer ? '/' : '.');
		if (ret == 0)
			ret = next_token(r);
		while (ret == 0 && is_token(r, TOKEN_SIGN, "[")) {
			ret = next_token(r);
			if (ret == 0 && r->token != TOKEN_STRING)
				ret = refuse_token(r, "a text was expected after [");
			if (ret == 0)
				ret = add_part(r, n, r->word);
			if (ret == 0)
				ret = next_token(r);
			if (ret == 0 && !is_token(r, TOKEN_SIGN, "]"))
				ret = refuse_token(r, "] was expected");
			if (ret == 0)
				ret = next_token(r);
		}
		/* After Meta["a"] a word that begins with a dot continues the path: Meta["a"].b. */
		if (ret < 0 || pointer || *r->word != '.')
			return ret;
	}
	return 0;
}

static int
read_value(struct reader *r, struct filter_node *n)
{
	if (r->token != TOKEN_WORD && r->token != TOKEN_STRING)
		return refuse_token(r, "a value was expected");
	n->value = r->word;
	return next_token(r);
}

/* Reads the words after "is": is empty, is not nil. */
static int
read_state(struct reader *r, struct filter_node *n, bool *negated)
{
	int ret = take_token(r, TOKEN_WORD, "not");

	*negated = ret > 0;
	n->kind = is_token(r, TOKEN_WORD, "nil") ? FILTER_NIL : FILTER_EMPTY;
	if (ret >= 0)
		ret = take_token(r, TOKEN_WORD, n->kind == FILTER_NIL ? "nil" : "empty");
	return ret == 0 ? refuse_token(r, "\"empty\" or \"nil\" was expected") : ret < 0 ? ret : 0;
}

/* Reads the operator after a field, and its value if it has one. *negated: it began with "not" or
 * "!". */
static int
read_operator(struct reader *r, struct filter_node *n, bool *negated)
{
	int ret;

	if (is_token(r, TOKEN_SIGN, "==") || is_token(r, TOKEN_SIGN, "!=")) {
		n->kind = FILTER_EQUAL;
		*negated = *r->word == '!';
		ret = next_token(r);
		return ret < 0 ? ret : read_value(r, n);
	}
	ret = take_token(r, TOKEN_WORD, "is");
	if (ret > 0)
		return read_state(r, n, negated);
	if (ret == 0)
		ret = take_token(r, TOKEN_WORD, "not");
	if (ret < 0)
		return ret;
	*negated = ret > 0;
	if ((ret = take_token(r, TOKEN_WORD, "contains")) != 0) {
		n->kind = FILTER_CONTAINS;
		return ret < 0 ? ret : read_value(r, n);
	}
	if ((ret = take_token(r, TOKEN_WORD, "matches")) <= 0)
		return ret < 0
			   ? ret
			   : refuse_token(r,
				 "==, !=, in, contains, matches, is empty or is nil was expected");
	n->kind = FILTER_MATCHES;
	ret = read_value(r, n);
	return ret < 0 ? ret : filter_pattern_new(n->value, &n->pattern, r->e);
}

/* Returns true if this token is the value of an `in`: "x" in Tags. */
static bool
is_value_first(const struct reader *r)
{
	struct api_filter words = { .words = r->f->words, .words_len = r->f->words_len };
	struct err ignored = { 0 };
	struct reader ahead = { .f = &words, .at = r->at, .e = &ignored };

	if (next_token(&ahead) < 0)
		return false;
	if (is_token(&ahead, TOKEN_WORD, "not") && next_token(&ahead) < 0)
		return false;
	return is_token(&ahead, TOKEN_WORD, "in");
}

static int
read_match(struct reader *r, const struct filter_node **ret)
{
	struct filter_node *n = add_node(r, FILTER_CONTAINS), *not ;
	bool negated = false;
	int done;

	if (r->token != TOKEN_SIGN && is_value_first(r)) {
		done = read_value(r, n);
		if (done == 0)
			done = take_token(r, TOKEN_WORD, "not");
		negated = done > 0;
		if (done >= 0)
			done = take_token(r, TOKEN_WORD, "in");
		if (done >= 0)
			done = read_field(r, n);
	} else {
		done = read_field(r, n);
		if (done >= 0)
			done = read_operator(r, n, &negated);
	}
	*ret = n;
	if (done < 0 || !negated)
		return done;
	not = add_node(r, FILTER_NOT);
	not ->a = n;
	*ret = not ;
	return 0;
}

static int read_chain(
    struct reader *r, enum filter_kind kind, unsigned depth, const struct filter_node **ret);

/* Distinguishes any A as x { } from a field or value named any: any == x, any in A. */
static bool
is_collection(const struct reader *r)
{
	static const char *const operators[] = { "in", "not", "is", "contains", "matches" };
	struct api_filter words = { .words = r->f->words, .words_len = r->f->words_len };
	struct err ignored = { 0 };
	struct reader ahead = { .f = &words, .at = r->at, .e = &ignored };

	if (!is_token(r, TOKEN_WORD, "any") && !is_token(r, TOKEN_WORD, "all"))
		return false;
	if (next_token(&ahead) < 0 || ahead.token == TOKEN_SIGN || ahead.token == TOKEN_END)
		return false;
	for (size_t i = 0; i < ELEMENTSOF(operators); i++)
		if (is_token(&ahead, TOKEN_WORD, operators[i]))
			return false;
	return true;
}

/* *ret: NULL for _. */
static int
read_name(struct reader *r, const char **ret)
{
	if (r->token != TOKEN_WORD || r->word[strcspn(r->word, ".:-")])
		return refuse_token(r, "a name for the items was expected");
	*ret = strcmp(r->word, "_") == 0 ? NULL : r->word;
	return next_token(r);
}

/* k, or k, v. */
static int
read_names(struct reader *r, struct filter_node *n)
{
	int ret = read_name(r, &n->key_name);

	n->item_name = n->key_name;
	if (ret == 0)
		ret = take_token(r, TOKEN_SIGN, ",");
	if (ret > 0)
		ret = read_name(r, &n->item_name);
	else if (ret == 0 && !n->key_name)
		return refuse_token(r, "_ alone names neither the key nor the item");
	else
		return ret;
	if (ret == 0 && n->key_name && n->item_name && strcmp(n->key_name, n->item_name) == 0)
		return refuse_token(r, "key and item have the same name");
	return ret;
}

/* any Meta as k, v { … } */
static int
read_collection(struct reader *r, unsigned depth, const struct filter_node **ret)
{
	struct filter_node *n =
	    add_node(r, is_token(r, TOKEN_WORD, "any") ? FILTER_ANY : FILTER_ALL);
	int done = next_token(r);

	*ret = n;
	if (done == 0)
		done = read_field(r, n);
	if (done == 0 && (done = take_token(r, TOKEN_WORD, "as")) == 0)
		return refuse_token(r, "as was expected");
	if (done > 0)
		done = read_names(r, n);
	if (done == 0 && (done = take_token(r, TOKEN_SIGN, "{")) == 0)
		return refuse_token(r, "{ was expected");
	if (done > 0)
		done = read_chain(r, FILTER_OR, depth + 1, &n->a);
	if (done == 0 && (done = take_token(r, TOKEN_SIGN, "}")) == 0)
		return refuse_token(r, "} was expected");
	return done < 0 ? done : 0;
}

static int
read_one(struct reader *r, unsigned depth, const struct filter_node **ret)
{
	int done;

	if (depth > DEPTH_MAX)
		return refuse_token(r, "the expression is nested too deeply");
	if (is_collection(r))
		return read_collection(r, depth, ret);
	done = take_token(r, TOKEN_WORD, "not");
	if (done > 0) {
		struct filter_node *n = add_node(r, FILTER_NOT);

		*ret = n;
		return read_one(r, depth + 1, &n->a);
	}
	if (done == 0)
		done = take_token(r, TOKEN_SIGN, "(");
	if (done < 0)
		return done;
	if (done == 0)
		return read_match(r, ret);
	done = read_chain(r, FILTER_OR, depth + 1, ret);
	if (done == 0)
		done = take_token(r, TOKEN_SIGN, ")");
	return done == 0 ? refuse_token(r, ") was expected") : done < 0 ? done : 0;
}

/* Reads a or b or c, where each operand is a chain of "and". */
static int
read_chain(struct reader *r, enum filter_kind kind, unsigned depth, const struct filter_node **ret)
{
	int done =
	    kind == FILTER_OR ? read_chain(r, FILTER_AND, depth, ret) : read_one(r, depth, ret);

	while (
	    done == 0 && (done = take_token(r, TOKEN_WORD, kind == FILTER_OR ? "or" : "and")) > 0) {
		struct filter_node *n = add_node(r, kind);

		n->a = *ret;
		*ret = n;
		done = kind == FILTER_OR ? read_chain(r, FILTER_AND, depth, &n->b)
					 : read_one(r, depth, &n->b);
	}
	return done;
}

int
api_filter_parse(
    const char *text, struct filter_budget *budget, struct api_filter **ret, struct err *e)
{
	cleanup_with(api_filter_free) struct api_filter *f = mem_new(struct api_filter);
	size_t len = strlen(text);
	struct reader r = { .f = f, .at = text, .e = e };
	int done;

	if (len > API_FILTER_MAX)
		return err_say(e, -EINVAL, "a filter is longer than %d bytes", API_FILTER_MAX);
	f->budget = budget;
	/* A token has at least one byte and its NUL; the search for an `in` looks one token ahead.
	 */
	f->words = mem_alloc(4 * len + 8);
	f->nodes = mem_zeroed(len + 2, sizeof *f->nodes);
	done = next_token(&r);
	if (done == 0)
		done = read_chain(&r, FILTER_OR, 0, &f->root);
	if (done == 0 && r.token != TOKEN_END)
		done = refuse_token(&r, "and, or, or the end was expected");
	if (done < 0)
		return done;
	*ret = steal_ptr(&f);
	return 0;
}
