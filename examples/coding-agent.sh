#!/bin/sh
# A coding agent: says which file it is about to change, so that every step can be taken back, one file or all of them.
#
#   examples/coding-agent.sh NEW-DIRECTORY
set -eu
mkdir -p "$1" && cd "$1"
session=demo
echo 'one' >a.txt
echo 'one' >b.txt
echo 'secret/' >.gitignore
mkdir -p secret && echo 'one' >secret/key

edit() { # file, new content: what a tool call does
    backtrail step --session "$session" --agent example --tool Edit -m "before editing $1" "$1"
    echo "$2" >"$1"
}

edit a.txt two
edit b.txt two
edit secret/key two # ignored by git, and captured all the same: the step named it
edit a.txt three
backtrail step --session "$session" -m 'the end'

backtrail diff step:1 step:5 --name-status
backtrail restore step:2 a.txt # one file, as it was before the second step
backtrail restore step:3 secret/key
[ "$(cat a.txt b.txt secret/key)" = "$(printf 'two\ntwo\none')" ]
backtrail undo # the last restore
[ "$(cat secret/key)" = two ]
backtrail restore step:1 # everything, as it was before the first step
[ "$(cat a.txt b.txt)" = "$(printf 'one\none')" ]
