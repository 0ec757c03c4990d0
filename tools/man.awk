# SPDX-License-Identifier: Apache-2.0
# man.awk: makes a manual page (mdoc) of docs/NAME.in. Lines of it that begin with '@' are replaced:
#
#	@settings FILE HEADING	the table of settings below that heading of docs/configuration.md
#	@support FILE HEADING	the table below that heading of docs/supported.md, without its refused blocks
#	@blocks FILE NAME...	the blocks of jobspec/job_blocks.def, without those that @support has refused, and these
#	@example FILE		a file, as it is

# Returns Markdown's text as a line of roff, without a control character at its start.
function roff(s) {
	gsub(/\\/, "\\e", s)
	while (match(s, /\[[^]]*\]\([^)]*\)/)) # a link
		s = substr(s, 1, RSTART - 1) substr(s, RSTART + 1, index(substr(s, RSTART), "]") - 2) substr(s, RSTART + RLENGTH)
	while (match(s, /`[^`]*`/))
		s = substr(s, 1, RSTART - 1) "\\fB" substr(s, RSTART + 1, RLENGTH - 2) "\\fR" substr(s, RSTART + RLENGTH)
	return (s ~ /^[.']/ ? "\\&" : "") s
}

function sentence(s) {
	return (s ~ /^drover / ? s : toupper(substr(s, 1, 1)) substr(s, 2)) (s ~ /[.]$/ ? "" : ".")
}

# Reads the rows of the first table below a heading into cell[row, column]. Returns their number.
function read_table(file, heading,    line, n, on, parts, i) {
	n = 0
	while ((getline line < file) > 0) {
		if (line ~ /^## /)
			on = line == "## " heading
		if (!on || line !~ /^\| / || line ~ /^\|---/)
			continue
		split(line, parts, / *\| */)
		n++
		for (i = 2; i <= 5; i++)
			cell[n, i - 1] = parts[i]
	}
	close(file)
	return n
}

# Settings that work or are refused, each with its example; then those without an effect, by what happens instead.
function settings(file, heading,    n, i, name, names, order, texts, same) {
	n = read_table(file, heading)
	print ".Ss " heading
	print ".Bl -tag -width Ds"
	for (i = 2; i <= n; i++) {
		name = cell[i, 1]
		gsub(/`/, "", name)
		if (cell[i, 3] == "named") {
			if (!(cell[i, 4] in names))
				order[++same] = cell[i, 4]
			names[cell[i, 4]] = names[cell[i, 4]] (names[cell[i, 4]] ? " , " : "") name
			continue
		}
		print ".It Ic " name
		print roff(cell[i, 2])
		if (cell[i, 3] == "refused" || cell[i, 4]) {
			print ".br"
			print roff(cell[i, 3] == "refused" ? sentence("refused" (cell[i, 4] ~ /^with/ ? " " : ": ") cell[i, 4]) : sentence(cell[i, 4]))
		}
	}
	print ".El"
	if (!same)
		return
	print ".Pp"
	print "Without an effect; the agent starts, and a warning in its log says what happens instead:"
	print ".Bl -tag -width Ds"
	for (i = 1; i <= same; i++) {
		print ".It Ic " names[order[i]]
		print roff(sentence(order[i]))
	}
	print ".El"
}

function support(file, heading,    n, i, s) {
	n = read_table(file, heading)
	print ".Bl -tag -width Ds"
	for (i = 2; i <= n; i++) {
		if (cell[i, 2] == "refused" && cell[i, 3] == "refused")
			for (s = cell[i, 1]; match(s, /`[^`]*`/); s = substr(s, RSTART + RLENGTH))
				skip[substr(s, RSTART + 1, RLENGTH - 2)] = 1
		print ".It " roff(cell[i, 1])
		print "Alone: " roff(cell[i, 2]) "; in a cluster: " roff(cell[i, 3]) "."
		sub(/(; )?see "[A-Za-z]*"$/, "", cell[i, 4]) # a heading of that document
		if (cell[i, 4])
			print roff(sentence(cell[i, 4]))
	}
	print ".El"
}

# Returns how a value of this kind is written.
function describe(kind) {
	sub(/^OPT_/, "", kind)
	return kind == "STRING" ? "text" : kind == "STRINGS" ? "list of texts" : kind == "BOOL" ? "true or false" : \
	    kind == "DURATION" ? "duration" : kind == "UINT16S" ? "list of numbers" : kind ~ /INT/ ? "number" : "names and values"
}

# Reads the definitions into row[block, i]: "kind name type repeated".
function read_blocks(file,    line, parts, block) {
	while ((getline line < file) > 0) {
		if (line !~ /^\t?JOB_/)
			continue
		gsub(/[\t" )]/, "", line)
		split(line, parts, /[(,]/)
		if (parts[1] == "JOB_BLOCK_BEGIN")
			block = parts[2]
		else if (parts[1] == "JOB_LABEL")
			label[block] = 1
		else if (parts[1] == "JOB_ATTR" || parts[1] == "JOB_MAP")
			row[block, ++rows[block]] = "A " parts[2] " " parts[4]
		else if (parts[1] == "JOB_BLOCK" && !(parts[2] in skip))
			row[block, ++rows[block]] = "B " parts[2] " " parts[5] " " parts[4]
	}
	close(file)
}

# Prints a block, then those inside it that have not been printed yet.
function print_block(name, type,    i, parts) {
	done[type] = name
	print ".Ss " name (label[type] ? " \\(dqNAME\\(dq" : "")
	print ".Bl -tag -width stop_after_client_disconnect -compact"
	for (i = 1; i <= rows[type]; i++) {
		split(row[type, i], parts, " ")
		print ".It Ic " parts[2]
		if (parts[1] == "A")
			print describe(parts[3])
		else
			print (parts[4] == "ONE" || parts[4] == "ONE_OMIT" ? "block" : "block, may be repeated") \
			    ((parts[3] in done) && done[parts[3]] != parts[2] ? ", as \\fB" done[parts[3]] "\\fR" : "")
	}
	print ".El"
	for (i = 1; i <= rows[type]; i++) {
		split(row[type, i], parts, " ")
		if (parts[1] == "B" && !(parts[3] in done))
			print_block(parts[2], parts[3])
	}
}

function example(file,    line) {
	print ".Bd -literal -offset indent"
	while ((getline line < file) > 0) {
		gsub(/\\/, "\\e", line)
		print (line ~ /^[.']/ ? "\\&" : "") line
	}
	close(file)
	print ".Ed"
}

/^@settings / { settings($2, $3); next }
/^@support / { support($2, $3); next }
/^@example / { example($2); next }
/^@blocks / {
	for (i = 3; i <= NF; i++)
		skip[$i] = 1
	read_blocks($2)
	print_block("job", "job")
	next
}
{ print }
