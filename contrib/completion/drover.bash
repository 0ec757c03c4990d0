# SPDX-License-Identifier: Apache-2.0
# drover.bash: completion for bash. `drover __complete` prints what can follow.

_drover() {
	local cur=${COMP_WORDS[COMP_CWORD]} line value begun i
	local -a words=("")

	# bash splits words at "=" and ":", and completes only the last part.
	for ((i = 1; i <= COMP_CWORD; i++)); do
		if [[ $i -gt 1 && (${COMP_WORDS[i]} == [=:]* || ${words[-1]} == *[=:]) ]]; then
			words[-1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
		fi
	done
	[[ $cur == [=:] ]] && cur=
	begun=${words[-1]%"$cur"}
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == :files ]]; then
			compopt -o filenames 2>/dev/null
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
			continue
		fi
		value=${line%%$'\t'*}
		printf -v value %q "${value#"$begun"}"
		COMPREPLY+=("$value")
		[[ $value == *[=/] ]] && compopt -o nospace 2>/dev/null
	done < <("${COMP_WORDS[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _drover drover
