#!/bin/sh
# A context tracker. It stores the conversation, the feature list, the progress file and the tokens with every checkpoint,
# and restores them with the files, or alone.
#
#   examples/context-tracker.sh NEW-DIRECTORY
set -eu
mkdir -p "$1" && cd "$1"
cat >backtrail.toml <<'END'
[state]
features = "feature_list.json"
progress = "progress.md"
END
talk=${TMPDIR:-/tmp}/conversation.$$
trap 'rm -f "$talk"' EXIT

checkpoint() { # arguments: name, current feature, completed features, tokens
    printf '{"current": "%s", "completed": [%s]}\n' "$2" "$3" >feature_list.json
    echo "working on $2" >progress.md
    echo "{\"role\": \"user\", \"content\": \"now $2\"}" >>"$talk"
    backtrail save -m "$2" --name "$1" --session-number 5 --tokens "$4" --attach conversation="$talk" --meta model=example
}

echo 'draft' >app.txt
checkpoint first auth-001 '' 12000
echo 'better' >app.txt
checkpoint second auth-002 '"auth-001"' 45000

backtrail show second
backtrail cat first --attachment conversation | grep -c . # the conversation at that time
backtrail restore first --only state                      # restores the list and the progress; the files stay
[ "$(cat progress.md app.txt)" = "$(printf 'working on auth-001\nbetter')" ]
backtrail undo
backtrail restore first # everything
[ "$(cat progress.md app.txt)" = "$(printf 'working on auth-001\ndraft')" ]
