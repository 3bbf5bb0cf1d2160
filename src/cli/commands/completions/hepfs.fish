# Completion of hepfs for fish 3.1 or later, printed by `hepfs completions fish`.
function __hepfs_complete
    set -l program (commandline --current-process --tokenize --cut-at-cursor)[1]
    string match --quiet -- '*hepfs' $program; or set program hepfs
    set -l before (commandline --current-process --cut-at-cursor | string collect)
    command $program complete fish -- "$before" '' '' 2>/dev/null
end
complete --command hepfs --no-files --keep-order --arguments '(__hepfs_complete)'
