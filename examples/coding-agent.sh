#!/bin/sh
# A coding agent that names each file before it changes it. Every step can be taken back, for one file or for all.
#
#   examples/coding-agent.sh NEW-DIRECTORY
set -eu
mkdir -p "$1" && cd "$1"
session=demo
echo 'one' >a.txt
echo 'one' >b.txt
echo 'secret/' >.gitignore
mkdir -p secret && echo 'one' >secret/key

edit() { # arguments: the file and its new content; stands for a tool call
    backtrail step --session "$session" --agent example --tool Edit -m "before editing $1" "$1"
    echo "$2" >"$1"
}

edit a.txt two
edit b.txt two
edit secret/key two # captured although git ignores it, because the step named it
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
