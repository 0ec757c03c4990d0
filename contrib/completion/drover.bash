# SPDX-License-Identifier: Apache-2.0
# drover.bash: completion for bash. `drover __complete` prints what can follow.

_drover() {
	local cur=${COMP_WORDS[COMP_CWORD]} line value begun files= i
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
		[[ $line == :files ]] && files=1 && continue
		value=${line%%$'\t'*}
		printf -v value %q "${value#"$begun"}"
		COMPREPLY+=("$value")
		[[ $value == *[=/] ]] && compopt -o nospace 2>/dev/null
	done < <("${COMP_WORDS[0]}" __complete "${words[@]:1}" 2>/dev/null)
	if [[ $files && ${#COMPREPLY[@]} = 0 ]]; then
		compopt -o default 2>/dev/null # bash completes the names of files itself
	elif [[ $files ]]; then
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -F _drover drover
