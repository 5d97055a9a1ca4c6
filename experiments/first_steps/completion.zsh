if ! type compdef > /dev/null; then autoload -Uz compinit && compinit -u; fi
_shannon_game() {
    local -a values groups words
    values=(@VALUES@)
    groups=(@GROUPS@)
    words=(@WORDS@)
    if [[ "$PREFIX" == *=* ]]; then
        compadd -a values
        [[ "${PREFIX%%=*}=" == (@PATTERN@) ]] || _default
    else
        compadd -S '' -a groups
        compadd -a words
    fi
}
compdef _shannon_game shannon-game
