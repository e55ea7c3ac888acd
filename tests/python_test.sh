#!/usr/bin/env bash
# Runs a Python test program. The first argument is the program, the others are its arguments.
exec python3 "$@"
