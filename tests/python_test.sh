#!/usr/bin/env bash
# Runs a Python test program. The first argument is the program; all further arguments are passed to the program.
exec python3 "$@"
