#!/bin/sh
# Runs what this bundle brings and prints a table: ./run.sh --help. Wants python3, or what $PYTHON says.
PYTHON=${PYTHON:-python3}
export PYTHON
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  echo "run.sh: want Python 3.9 or newer, $PYTHON is none; PYTHON says which" >&2
  exit 69
fi
exec "$PYTHON" "$(dirname "$(readlink -f "$0")")/run.py" "$@"
