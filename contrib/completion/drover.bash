# SPDX-License-Identifier: Apache-2.0
# drover.bash: completion for bash. Commands and flags come from `drover help`, ids from the agent.

_drover_ids() {
	drover "$1" "${2:-status}" 2>/dev/null | awk 'NR > 1 && NF > 1 { print $1 }'
}

_drover() {
	local word=${COMP_WORDS[COMP_CWORD]} noun=${COMP_WORDS[1]} verb=${COMP_WORDS[2]} words

	if [ "$COMP_CWORD" = 1 ]; then
		words=$(drover help | awk '/^  [a-z]/ { print $1 }' | sort -u)
	elif [ "${word#-}" != "$word" ]; then
		words=$({ drover help "$noun" "$verb" 2>/dev/null || drover help "$noun"; } |
			grep -oE '(^  |\[)-[a-z-]+' | tr -d '[ ' | LC_ALL=C sort -u)
	elif [ "$COMP_CWORD" = 2 ]; then
		words=$(drover help 2>/dev/null | awk -v noun="$noun" '$1 == noun && /^  [a-z]+ [a-z]+ / { print $2 }')
	else
		case "$noun $verb" in
		"node meta") words="read apply" ;;
		"job periodic") words="force $(_drover_ids job)" ;;
		"job run" | "job plan" | "job validate" | "volume create" | "volume register" | agent*)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
			return
			;;
		"eval status" | "service info") words=$(_drover_ids "$noun" list) ;;
		"job "* | "alloc "* | "node "* | "volume "* | "plugin "* | "deployment "*) words=$(_drover_ids "$noun") ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -F _drover drover
