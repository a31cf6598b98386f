#!/bin/sh
# A stand-in for a language model, so that the examples run without a network. It takes a prompt and edits files like the
# tools of a model. Use a real model with MODEL=…, for instance MODEL='claude -p'.
set -eu
prompt=$1
case $prompt in
*'shout'*'attempt 1'*) echo 'shout() { echo "$1"; }' >>words.sh ;;
*'shout'*'attempt 2'*) echo "shout() { echo \"\$*\" | tr '[:lower:]' '[:upper:]'; }" >>words.sh ;;
*'shout'*'attempt 3'*) echo "shout() { echo \$* | tr '[:lower:]' '[:upper:]'; }" >>words.sh ;;
*divide*failed*) echo 'divide() { [ "$2" -ne 0 ] && echo $(($1 / $2)); }' >>calc.sh ;;
*divide*) # The first attempt is wrong and leaves a stray file.
    echo 'divide() { echo $(($1 * $2)); }' >>calc.sh
    echo 'left behind' >scratch.tmp
    ;;
*add*) echo 'add() { echo $(($1 + $2)); }' >>calc.sh ;;
*subtract*) echo 'subtract() { echo $(($1 - $2)); }' >>calc.sh ;;
*) echo "I don't know how to: $prompt" >&2 && exit 1 ;;
esac
