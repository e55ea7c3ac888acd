#!/usr/bin/env bash
# Runs a Python test program: the first argument is the program, the rest are its arguments.
exec python3 "$@"
