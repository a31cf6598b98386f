#!/bin/sh
# An autonomous loop that works through a feature list. It takes a checkpoint before each change and runs a test after it.
# If the test fails, the change is rolled back. If it succeeds, a feature checkpoint is taken, which is kept forever.
# Each checkpoint records the tokens used so far.
#
#   examples/autonomous-loop.sh NEW-DIRECTORY
set -eu
examples=$(cd "$(dirname "$0")" && pwd)
model=${MODEL:-$examples/stand-in-model.sh}
mkdir -p "$1" && cd "$1"

cat >backtrail.toml <<'END'
[state]
features = "feature_list.json"
progress = "progress.md"
END
cat >test.sh <<'END'
. ./calc.sh
check() { [ "$1" = "$2" ] || { echo "expected $2, got $1" >&2; exit 1; }; }
for feature in "$@"; do
    case $feature in
    add) check "$(add 2 3)" 5 ;;
    subtract) check "$(subtract 5 3)" 2 ;;
    divide) check "$(divide 6 2)" 3 ;;
    esac
done
END
echo '# calculator' >calc.sh
features='add subtract divide'
completed=
tokens=0

write_list() { # writes the features with their status; Backtrail reads the current and completed ones from it
    separator='[' next=in_progress
    for each in $features; do
        case " $completed " in
        *" $each "*) status=done ;;
        *) status=$next next=todo ;;
        esac
        printf '%s{"id": "%s", "status": "%s"}' "$separator" "$each" "$status"
        separator=', '
    done >feature_list.json
    echo ']' >>feature_list.json
}

attempt() { # arguments: the feature, and more text for the prompt
    tokens=$((tokens + 1000))
    backtrail try -m "before $1" --timeout 5m --check "sh ./test.sh $completed $1" -- $model "implement $1$2"
}

write_list
echo '# Progress' >progress.md
backtrail save -m 'the session begins' --kind session --session-number 1 --tokens "$tokens"
for feature in $features; do
    if attempt "$feature" '' || attempt "$feature" '; the last attempt failed its test'; then
        completed="$completed $feature"
        write_list
        echo "- $feature: done" >>progress.md
        backtrail save -m "$feature is complete" --kind feature --name "$feature" --session-number 1 --tokens "$tokens"
    else
        echo "- $feature: given up" >>progress.md
    fi
done
backtrail list
