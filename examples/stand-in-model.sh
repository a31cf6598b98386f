#!/bin/sh
# A stand-in for a language model, so that the examples run without a network: it takes a prompt and edits files as a
# model's tools would. Put a real one in its place with MODEL=…, for instance MODEL='claude -p'.
set -eu
prompt=$1
case $prompt in
*divide*failed*) echo 'divide() { [ "$2" -ne 0 ] && echo $(($1 / $2)); }' >>calc.sh ;;
*divide*) # Wrong at the first attempt, and untidy.
    echo 'divide() { echo $(($1 * $2)); }' >>calc.sh
    echo 'left behind' >scratch.tmp
    ;;
*add*) echo 'add() { echo $(($1 + $2)); }' >>calc.sh ;;
*subtract*) echo 'subtract() { echo $(($1 - $2)); }' >>calc.sh ;;
*) echo "I don't know how to: $prompt" >&2 && exit 1 ;;
esac
