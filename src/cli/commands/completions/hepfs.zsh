#compdef hepfs
# Completion of hepfs for zsh, printed by `hepfs completions zsh`.
_hepfs() {
    local line value description
    local -a plain open plain_shown open_shown list
    local before="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX"
    local after="$SUFFIX$QISUFFIX ${(j: :)words[CURRENT+1,-1]}"
    for line in "${(@f)$("${~words[1]}" complete zsh -- "$before" "$after" "$PREFIX" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        value=${line%%$'\t'*} description=${line#*$'\t'}
        if [[ $line == *$'\t'* ]]; then
            list=(-l)
            description="$value  -- $description"
        fi
        if [[ $value == *[/:=] ]]; then
            open+=("$value") open_shown+=("$description")
        else
            plain+=("$value") plain_shown+=("$description")
        fi
    done
    (($#open)) && compadd -Q $list -V open -S '' -d open_shown -a open
    (($#plain)) && compadd -Q $list -V plain -d plain_shown -a plain
}
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
    _hepfs "$@"
else
    compdef _hepfs hepfs
fi
