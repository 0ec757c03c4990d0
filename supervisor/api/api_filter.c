// SPDX-License-Identifier: Apache-2.0
/* api_filter.c: reads the expressions of ?filter= and holds JSON objects against them. Runs in:
 * supervisor. */
#include "supervisor/api/api_filter.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 50
#define PARTS_MAX 8
/* What a pattern may be: glibc copies what is repeated by + or {}, and what is in it again. */
#define PATTERN_MAX 256
#define PLUSES_MAX  4
/* What one is held against: regexec() looks from each byte on to the end, and keeps some 10 KB for
 * each that leads it to a state of its own. */
#define SUBJECT_MAX 1024

enum node_kind {
	NODE_AND,
	NODE_OR,
	NODE_NOT,
	NODE_EQUAL,
	NODE_CONTAINS,
	NODE_EMPTY,
	NODE_NIL,
	NODE_MATCHES
};

struct node {
	enum node_kind kind;
	const struct node *a, *b;     /* of AND, OR; a of NOT */
	const char *parts[PARTS_MAX]; /* of the others: Meta["tier"] is Meta, tier */
	size_t n_parts;
	const char *value;
	regex_t *pattern;
};

struct api_filter {
	struct node *nodes; /* an upper bound of them */
	size_t n_nodes;
	const struct node *root;
	char *words; /* the text of all tokens, each with its NUL */
	size_t words_len;
};

enum token { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_SIGN };

struct reader {
	struct api_filter *f;
	const char *at;
	enum token token;
	const char *word; /* its text; of a sign: "==", "!=", "(", ")", "[" or "]" */
	struct err *e;
};

static int
refuse(struct reader *r, const char *what)
{
	return err_say(
	    r->e, -EINVAL, "filter, at \"%.40s\": %s", *r->word ? r->word : "the end", what);
}

/* --- tokens --- */

static bool
is_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_./-:", c));
}

static void
keep(struct reader *r, char c)
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
		keep(r, *r->at);
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

	if (!two && !strchr("()[]", *r->at))
		return err_say(r->e, -EINVAL, "filter: nothing begins with \"%.20s\"", r->at);
	keep(r, *r->at++);
	if (two)
		keep(r, *r->at++);
	r->token = TOKEN_SIGN;
	return 0;
}

/* The next token becomes the reader's. */
static int
next(struct reader *r)
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
			keep(r, *r->at++);
		r->token = TOKEN_WORD;
	} else if (*r->at) {
		ret = read_sign(r);
	}
	keep(r, '\0');
	return ret;
}

static bool
is(const struct reader *r, enum token token, const char *word)
{
	return r->token == token && strcmp(r->word, word) == 0;
}

/* Goes on if the token is that one: 1, or 0 if it is not. */
static int
take(struct reader *r, enum token token, const char *word)
{
	int ret;

	if (!is(r, token, word))
		return 0;
	ret = next(r);
	return ret < 0 ? ret : 1;
}

/* --- expressions --- */

static struct node *
add_node(struct reader *r, enum node_kind kind)
{
	struct node *n = &r->f->nodes[r->f->n_nodes++];

	n->kind = kind;
	return n;
}

static int
add_part(struct reader *r, struct node *n, const char *part)
{
	if (n->n_parts == PARTS_MAX)
		return refuse(r, "the field lies too deep");
	if (!*part)
		return refuse(r, "a part of the field's name is empty");
	n->parts[n->n_parts++] = part;
	return 0;
}

/* A.B or /A/B: splits it where it stands. */
static int
add_parts(struct reader *r, struct node *n, char *word, char separator)
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
read_field(struct reader *r, struct node *n)
{
	bool pointer = r->token == TOKEN_STRING && *r->word == '/';
	int ret;

	if (r->token != TOKEN_WORD && !pointer)
		return refuse(r, "the name of a field was expected");
	while (r->token == TOKEN_WORD || pointer) {
		ret = add_parts(r, n, (char *)(uintptr_t)r->word, pointer ? '/' : '.');
		if (ret == 0)
			ret = next(r);
		while (ret == 0 && is(r, TOKEN_SIGN, "[")) {
			ret = next(r);
			if (ret == 0 && r->token != TOKEN_STRING)
				ret = refuse(r, "a text was expected after [");
			if (ret == 0)
				ret = add_part(r, n, r->word);
			if (ret == 0)
				ret = next(r);
			if (ret == 0 && !is(r, TOKEN_SIGN, "]"))
				ret = refuse(r, "] was expected");
			if (ret == 0)
				ret = next(r);
		}
		/* Meta["a"].b goes on with a word that begins with a dot. */
		if (ret < 0 || pointer || *r->word != '.')
			return ret;
	}
	return 0;
}

static int
read_value(struct reader *r, struct node *n)
{
	if (r->token != TOKEN_WORD && r->token != TOKEN_STRING)
		return refuse(r, "a value was expected");
	n->value = r->word;
	return next(r);
}

static int
compile(struct reader *r, struct node *n)
{
	const char *p = n->value;
	unsigned pluses = 0;

	for (const char *c = p; *c; c++)
		pluses += *c == '+';
	if (strlen(p) > PATTERN_MAX || pluses > PLUSES_MAX || strchr(p, '{'))
		return err_say(r->e, -EINVAL,
		    "filter: a pattern has at most %d bytes, %d times + and no { here", PATTERN_MAX,
		    PLUSES_MAX);
	for (; *p; p++)
		if (*p == '\\' && (isdigit((unsigned char)*++p) || !*p))
			return err_say(r->e, -EINVAL, "filter: a pattern has no \\%.1s here", p);
	n->pattern = calloc(1, sizeof *n->pattern);
	if (!n->pattern)
		return err_set(r->e, -ENOMEM, "read the filter");
	if (regcomp(n->pattern, n->value, REG_EXTENDED | REG_NOSUB) == 0)
		return 0;
	free(steal_ptr(&n->pattern));
	return err_say(r->e, -EINVAL, "filter: \"%.80s\" is no regular expression", n->value);
}

/* is empty, is not nil: what follows the "is". */
static int
read_state(struct reader *r, struct node *n, bool *negated)
{
	int ret = take(r, TOKEN_WORD, "not");

	*negated = ret > 0;
	n->kind = is(r, TOKEN_WORD, "nil") ? NODE_NIL : NODE_EMPTY;
	if (ret >= 0)
		ret = take(r, TOKEN_WORD, n->kind == NODE_NIL ? "nil" : "empty");
	return ret == 0 ? refuse(r, "\"empty\" or \"nil\" was expected") : ret < 0 ? ret : 0;
}

/* What follows a field: an operator, perhaps with a value. *negated: it began with "not" or "!". */
static int
read_operator(struct reader *r, struct node *n, bool *negated)
{
	int ret;

	if (is(r, TOKEN_SIGN, "==") || is(r, TOKEN_SIGN, "!=")) {
		n->kind = NODE_EQUAL;
		*negated = *r->word == '!';
		ret = next(r);
		return ret < 0 ? ret : read_value(r, n);
	}
	ret = take(r, TOKEN_WORD, "is");
	if (ret > 0)
		return read_state(r, n, negated);
	if (ret == 0)
		ret = take(r, TOKEN_WORD, "not");
	if (ret < 0)
		return ret;
	*negated = ret > 0;
	if ((ret = take(r, TOKEN_WORD, "contains")) != 0) {
		n->kind = NODE_CONTAINS;
		return ret < 0 ? ret : read_value(r, n);
	}
	if ((ret = take(r, TOKEN_WORD, "matches")) <= 0)
		return ret < 0
			   ? ret
			   : refuse(r,
				 "==, !=, in, contains, matches, is empty or is nil was expected");
	n->kind = NODE_MATCHES;
	ret = read_value(r, n);
	return ret < 0 ? ret : compile(r, n);
}

/* "x" in Tags: is this token the value? */
static bool
is_value_first(const struct reader *r)
{
	struct api_filter words = { .words = r->f->words, .words_len = r->f->words_len };
	struct err ignored = { 0 };
	struct reader ahead = { .f = &words, .at = r->at, .e = &ignored };

	if (next(&ahead) < 0)
		return false;
	if (is(&ahead, TOKEN_WORD, "not") && next(&ahead) < 0)
		return false;
	return is(&ahead, TOKEN_WORD, "in");
}

static int
read_match(struct reader *r, const struct node **ret)
{
	struct node *n = add_node(r, NODE_CONTAINS), *not ;
	bool negated = false;
	int done;

	if (r->token != TOKEN_SIGN && is_value_first(r)) {
		done = read_value(r, n);
		if (done == 0)
			done = take(r, TOKEN_WORD, "not");
		negated = done > 0;
		if (done >= 0)
			done = take(r, TOKEN_WORD, "in");
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
	not = add_node(r, NODE_NOT);
	not ->a = n;
	*ret = not ;
	return 0;
}

static int read_chain(
    struct reader *r, enum node_kind kind, unsigned depth, const struct node **ret);

static int
read_one(struct reader *r, unsigned depth, const struct node **ret)
{
	int done;

	if (depth > DEPTH_MAX)
		return refuse(r, "the expression lies too deep");
	done = take(r, TOKEN_WORD, "not");
	if (done > 0) {
		struct node *n = add_node(r, NODE_NOT);

		*ret = n;
		return read_one(r, depth + 1, &n->a);
	}
	if (done == 0)
		done = take(r, TOKEN_SIGN, "(");
	if (done < 0)
		return done;
	if (done == 0)
		return read_match(r, ret);
	done = read_chain(r, NODE_OR, depth + 1, ret);
	if (done == 0)
		done = take(r, TOKEN_SIGN, ")");
	return done == 0 ? refuse(r, ") was expected") : done < 0 ? done : 0;
}

/* What the word joins: a or b or c, each of them a chain of "and". */
static int
read_chain(struct reader *r, enum node_kind kind, unsigned depth, const struct node **ret)
{
	int done = kind == NODE_OR ? read_chain(r, NODE_AND, depth, ret) : read_one(r, depth, ret);

	while (done == 0 && (done = take(r, TOKEN_WORD, kind == NODE_OR ? "or" : "and")) > 0) {
		struct node *n = add_node(r, kind);

		n->a = *ret;
		*ret = n;
		done = kind == NODE_OR ? read_chain(r, NODE_AND, depth, &n->b)
				       : read_one(r, depth, &n->b);
	}
	return done;
}

int
api_filter_parse(const char *text, struct api_filter **ret, struct err *e)
{
	cleanup_with(api_filter_free) struct api_filter *f = calloc(1, sizeof *f);
	size_t len = strlen(text);
	struct reader r = { .f = f, .at = text, .e = e };
	int done;

	if (len > API_FILTER_MAX)
		return err_say(e, -EINVAL, "a filter is longer than %d bytes", API_FILTER_MAX);
	if (f) {
		/* A token has a byte at least, and its NUL; an `in` is looked for one further. */
		f->words = malloc(4 * len + 8);
		f->nodes = calloc(len + 2, sizeof *f->nodes);
	}
	if (!f || !f->words || !f->nodes)
		return err_set(e, -ENOMEM, "read the filter");
	done = next(&r);
	if (done == 0)
		done = read_chain(&r, NODE_OR, 0, &f->root);
	if (done == 0 && r.token != TOKEN_END)
		done = refuse(&r, "and, or, or the end was expected");
	if (done < 0)
		return done;
	*ret = steal_ptr(&f);
	return 0;
}

void
api_filter_free(struct api_filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; f->nodes && i < f->n_nodes; i++) {
		if (f->nodes[i].pattern)
			regfree(f->nodes[i].pattern);
		free(f->nodes[i].pattern);
	}
	free(f->nodes);
	free(f->words);
	free(f);
}

/* --- matching --- */

static int
find_item(const json_t *list, const char *part, const json_t **ret, struct err *e)
{
	if (!*part || part[strspn(part, "0123456789")])
		return err_say(
		    e, -EINVAL, "filter: \"%.80s\" is no item of a list: they have numbers", part);
	*ret = json_array_get(list, strtoul(part, NULL, 10));
	return 0;
}

/* Below the first name nothing need be there: *ret NULL. */
static int
find_field(const struct node *n, const json_t *object, const json_t **ret, struct err *e)
{
	const json_t *at = json_object_get(object, n->parts[0]);
	int r = 0;

	if (!at)
		return err_say(e, -EINVAL, "filter: there is no field \"%.80s\" here", n->parts[0]);
	for (size_t i = 1; i < n->n_parts && at && r == 0; i++) {
		if (json_is_array(at))
			r = find_item(at, n->parts[i], &at, e);
		else
			at = json_object_get(at, n->parts[i]);
	}
	*ret = at;
	return r;
}

static int
refuse_value(const struct node *n, const char *why, struct err *e)
{
	return err_say(e, -EINVAL, "filter: \"%.80s\" %s", n->parts[n->n_parts - 1], why);
}

static int
equals(const struct node *n, const json_t *value, struct err *e)
{
	char *end = NULL;
	double number;

	if (!value || json_is_null(value))
		return *n->value == '\0';
	if (json_is_string(value))
		return strcmp(json_string_value(value), n->value) == 0;
	if (json_is_boolean(value)) {
		if (strcmp(n->value, "true") != 0 && strcmp(n->value, "false") != 0)
			return refuse_value(n, "is true or false", e);
		return json_is_true(value) == (*n->value == 't');
	}
	if (json_is_integer(value)) {
		long long whole = strtoll(n->value, &end, 10);

		if (*end == '\0' && end != n->value)
			return json_integer_value(value) == whole;
	}
	if (!json_is_number(value))
		return refuse_value(n, "is no single value: in, contains or is empty ask it", e);
	number = strtod(n->value, &end);
	if (*end || end == n->value)
		return refuse_value(n, "is a number", e);
	return json_number_value(value) == number;
}

static int
contains(const struct node *n, const json_t *value, struct err *e)
{
	const json_t *item;
	size_t i;
	int r;

	if (!value || json_is_null(value))
		return 0;
	if (json_is_string(value))
		return strstr(json_string_value(value), n->value) != NULL;
	if (json_is_object(value))
		return json_object_get(value, n->value) != NULL;
	if (!json_is_array(value))
		return refuse_value(n, "contains nothing: it is a single value", e);
	json_array_foreach ((json_t *)(uintptr_t)value, i, item) {
		r = equals(n, item, e);
		if (r != 0)
			return r;
	}
	return 0;
}

static int
is_empty(const struct node *n, const json_t *value, struct err *e)
{
	if (!value || json_is_null(value))
		return 1;
	if (json_is_string(value))
		return json_string_length(value) == 0;
	if (json_is_object(value))
		return json_object_size(value) == 0;
	return json_is_array(value) ? json_array_size(value) == 0
				    : refuse_value(n, "is never empty: it is a number", e);
}

static int
fits_pattern(const struct node *n, const json_t *value, struct err *e)
{
	if (value && !json_is_null(value) && !json_is_string(value))
		return refuse_value(n, "is no text that a pattern could fit", e);
	if (json_string_length(value) > SUBJECT_MAX)
		return refuse_value(n, "is a text too long for a pattern", e);
	return regexec(n->pattern, json_string_value(value) ?: "", 0, NULL, 0) == 0;
}

static int
match(const struct node *n, const json_t *object, struct err *e)
{
	const json_t *value = NULL;
	int r;

	if (n->kind == NODE_NOT) {
		r = match(n->a, object, e);
		return r < 0 ? r : !r;
	}
	if (n->kind == NODE_AND || n->kind == NODE_OR) {
		r = match(n->a, object, e);
		return r < 0 || r == (n->kind == NODE_OR) ? r : match(n->b, object, e);
	}
	r = find_field(n, object, &value, e);
	if (r < 0)
		return r;
	switch (n->kind) {
	case NODE_EQUAL:
		return equals(n, value, e);
	case NODE_CONTAINS:
		return contains(n, value, e);
	case NODE_EMPTY:
		return is_empty(n, value, e);
	case NODE_NIL:
		return !value || json_is_null(value);
	default:
		return fits_pattern(n, value, e);
	}
}

bool
api_filter_asks(const struct api_filter *f, const char *field)
{
	for (size_t i = 0; i < f->n_nodes; i++)
		if (f->nodes[i].n_parts > 0 && strcmp(f->nodes[i].parts[0], field) == 0)
			return true;
	return false;
}

int
api_filter_match(const struct api_filter *f, const json_t *object, struct err *e)
{
	return match(f->root, object, e);
}
