#!/usr/bin/env bash
# Runs a Python test program with Debian's Python, which has Debian's modules. The first argument is the program, or -m and a
# module; all further arguments are passed to the program.
exec /usr/bin/python3 "$@"
