#!/bin/sh
# Three attempts at one task, side by side, each in a fork of the workspace. Tests decide, and the best one is adopted.
#
#   examples/parallel-attempts.sh NEW-DIRECTORY
#
# MODEL='claude -p' uses a real model in place of the stand-in.
set -eu
model=${MODEL:-sh $(cd "$(dirname "$0")" && pwd)/stand-in-model.sh}
mkdir -p "$1" && cd "$1"
cat >words.sh <<'SH'
# Functions for words.

count() {
    echo $#
}

SH
cat >checks.sh <<'SH' # prints the number of checks that pass
. ./words.sh
passed=0
check() { if [ "$1" = "$2" ]; then passed=$((passed + 1)); fi; }
check "$(shout a)" A
check "$(shout a b)" 'A B'
check "$(shout 'a  b')" 'A  B'
echo $passed
SH
backtrail save 'before the attempts'
backtrail fork "$PWD-try" --count 3

attempt() { # argument: its number
    cd "$PWD-try-$1"
    $model "write the function shout in words.sh, which prints its arguments in capitals (attempt $1)"
    backtrail save "attempt $1" --agent example --author agent
}
for number in 1 2 3; do
    attempt "$number" &
done
wait

# Meanwhile somebody works on the same file here.
sed -i.before 's/^# Functions for words\.$/# Functions for words and lines./' words.sh && rm words.sh.before

best=none
most=0
for number in 1 2 3; do
    passed=$(cd "$PWD-try-$number" && sh checks.sh 2>/dev/null) || passed=0
    echo "attempt $number passes $passed of 3 checks"
    if [ "$passed" -gt "$most" ]; then
        best=$number most=$passed
    fi
done
backtrail forks
[ "$best" != none ] || exit 1
backtrail adopt "$PWD-try-$best"
[ "$(sh checks.sh)" = "$most" ]
