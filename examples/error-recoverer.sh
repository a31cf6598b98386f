#!/bin/sh
# An error recoverer: whatever way a risky command fails, the files are as they were, and nothing is lost.
#
#   examples/error-recoverer.sh NEW-DIRECTORY
set -eu
mkdir -p "$1" && cd "$1"
echo 'schema 1' >schema
echo 'row' >data

recover() { # what it is, then options for `try` with the command
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

# What a failed one had done can still be looked at.
backtrail list --all
