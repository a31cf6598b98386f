#!/bin/sh
# An error recoverer. However a risky command fails, the files are restored and nothing is lost.
#
#   examples/error-recoverer.sh NEW-DIRECTORY
set -eu
mkdir -p "$1" && cd "$1"
echo 'schema 1' >schema
echo 'row' >data

recover() { # arguments: a description, then the options and the command for `try`
    what=$1
    shift
    if backtrail try -m "before: $what" "$@"; then
        echo "$what: succeeded"
    else
        echo "$what: failed with $?, and was taken back"
    fi
}

recover 'a migration that breaks half-way' -- sh -c 'echo "schema 2" >schema; : >data; echo x >half-done.tmp; exit 3'
recover 'a migration that never ends' --timeout 1 -- sh -c 'echo "schema 2" >schema; sleep 600'
recover 'a migration that loses rows' --check 'grep -q row data' -- sh -c 'echo "schema 2" >schema; : >data'
[ "$(cat schema data)" = "$(printf 'schema 1\nrow')" ] && [ ! -e half-done.tmp ]
recover 'a good migration' --check 'grep -q row data' -- sh -c 'echo "schema 2" >schema'

# The changes of a failed command can still be inspected.
backtrail list --all
