complete -c shannon-game -e
complete -c shannon-game -f -n 'string match -q "*=*" -- (commandline -ct)' -a '@VALUES@'
complete -c shannon-game -f -n 'not string match -q "*=*" -- (commandline -ct)' -a '@STARTS@'
