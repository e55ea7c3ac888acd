#!/bin/sh
# Runs the tests, benchmarks and training runs of this bundle and prints a table; see ./run.sh --help. Requires python3,
# or the Python interpreter that $PYTHON names.
PYTHON=${PYTHON:-python3}
export PYTHON
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "run.sh: $PYTHON: cannot be used (expected Python 3.9 or newer; \$PYTHON names the interpreter)" >&2
  exit 69
fi
exec "$PYTHON" "$(dirname "$(readlink -f "$0")")/run.py" "$@"
