_shannon_game() {
    local line="${COMP_LINE:0:COMP_POINT}"
    local word="${line##* }"
    COMPREPLY=()
    if [[ "$word" == experiment.* && "$word" != *=* ]]; then
        local asked="" choice="" each
        for each in $line; do
            case "$each" in
                @CHOICES@) choice="$each" ;;
                +exp=*) asked="${each#+exp=}" ;;
                *) if [[ " @EXPERIMENTS@ " == *" $each "* ]]; then asked="${asked:-$each}"; fi ;;
            esac
        done
        if [[ -n "$asked" ]]; then
            # seconds the first time: it starts Python
            if [[ "$_SHANNON_GAME_ASKED" != "$asked $choice" ]]; then
                _SHANNON_GAME_SETTINGS="$(shannon-game --completion settings "$asked" $choice 2> /dev/null)"
                _SHANNON_GAME_ASKED="$asked $choice"
            fi
            COMPREPLY=($(compgen -W "$_SHANNON_GAME_SETTINGS" -- "$word"))
            compopt -o nospace 2> /dev/null
        fi
    elif [[ "$word" == *=* ]]; then
        COMPREPLY=($(compgen -W "@VALUES@" -- "$word"))
        # where a word ends at the sign, bash replaces only what follows it
        if [[ "$COMP_WORDBREAKS" == *=* ]]; then COMPREPLY=("${COMPREPLY[@]#"${word%%=*}="}"); fi
    else
        COMPREPLY=($(compgen -W "@STARTS@" -- "$word"))
        if [[ "${#COMPREPLY[@]}" == 1 && "${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2> /dev/null; fi
    fi
}
complete -o default -F _shannon_game shannon-game
