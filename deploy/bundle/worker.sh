#!/bin/sh
# Starts the worker of this bundle with the host's LibTorch: the `torch` Python package in the folder $THINWIRE_TORCH,
# or else the one that $PYTHON, or python3, would import.
bundle=$(dirname "$(readlink -f "$0")")/..
. "$bundle/share/requirements"
wanted="LibTorch ${torch%.*} with CUDA ${torch_cuda:-none}"

fail() {
  echo "worker: want $wanted, found $1" >&2
  exit 78
}

where=${THINWIRE_TORCH:-}
if [ -z "$where" ]; then
  where=$("${PYTHON:-python3}" -c 'import importlib.util
spec = importlib.util.find_spec("torch")
print(spec.submodule_search_locations[0] if spec else "")' 2>/dev/null)
  [ -n "$where" ] || fail "none: THINWIRE_TORCH is not set, and ${PYTHON:-python3} has no package torch"
fi
[ -f "$where/version.py" ] && [ -d "$where/lib" ] || fail "none at $where, which has no version.py and lib/"

# version.py says __version__ = '2.11.0+cu130' and cuda: Optional[str] = '13.0', or None.
found=$(sed -n "s/^__version__ = '\([^'+]*\).*/\1/p" "$where/version.py")
found_cuda=$(sed -n "s/^cuda[:a-zA-Z_ ]*.*= '\([^']*\)'.*/\1/p" "$where/version.py")
case $found in
  "${torch%.*}" | "${torch%.*}".*) ;;
  *) fail "$found at $where" ;;
esac
[ "${found_cuda%%.*}" = "${torch_cuda%%.*}" ] || fail "$found with CUDA ${found_cuda:-none} at $where"

path=$where/lib
for folder in "$where"/../nvidia/*/lib; do
  if [ -d "$folder" ]; then path=$path:$folder; fi
done
LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$bundle/libexec/worker" "$@"
