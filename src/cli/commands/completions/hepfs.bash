# Completion of hepfs for bash 4.1 or later, printed by `hepfs completions bash`.
_hepfs() {
    COMPREPLY=()
    if [[ ${COMP_WORDS[COMP_CWORD - 1]-} == [\<\>]* ]]; then
        # The target of a redirection is any file.
        compopt -o default
        return
    fi
    local program=$1
    [[ $program == \~/* ]] && program=$HOME/${program#\~/}
    # The program finds words itself: bash cuts them at colons and equals signs, and replaces $2 alone.
    mapfile -t COMPREPLY < <("$program" complete bash -- \
        "${COMP_LINE:0:COMP_POINT}" "${COMP_LINE:COMP_POINT}" "$2" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:=] ]]; then
        compopt -o nospace
    fi
}
complete -o nosort -F _hepfs hepfs 2>/dev/null || complete -F _hepfs hepfs
