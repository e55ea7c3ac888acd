#!/bin/sh
# Starts the worker or the laboratory of this bundle, by the name of this file, with the host's LibTorch: the `torch` Python package in the folder $THINWIRE_TORCH,
# or the package that $PYTHON (default python3) imports.
program=$(basename "$0")
bundle=$(dirname "$(readlink -f "$0")")/..
. "$bundle/share/requirements"
cuda_of() { if [ -n "$1" ]; then echo "with CUDA $1"; else echo "without CUDA"; fi; }
expected="${torch%.*} $(cuda_of "$torch_cuda")"

fail() {
  echo "$program: wrong LibTorch (expected $expected, got $1)" >&2
  exit 78
}

package=${THINWIRE_TORCH:-}
if [ -z "$package" ]; then
  package=$("${PYTHON:-python3}" -c 'import importlib.util
spec = importlib.util.find_spec("torch")
print(spec.submodule_search_locations[0] if spec else "")' 2>/dev/null)
  [ -n "$package" ] || fail "none: THINWIRE_TORCH is not set, and ${PYTHON:-python3} has no package torch"
fi
[ -f "$package/version.py" ] && [ -d "$package/lib" ] || fail "none in $package, which has no version.py and lib/"

# The torch package's version.py has lines such as __version__ = '2.11.0+cu130' and cuda: Optional[str] = '13.0'. The
# value of cuda is None if the package was built without CUDA.
found=$(sed -n "s/^__version__ = '\([^'+]*\).*/\1/p" "$package/version.py")
found_cuda=$(sed -n "s/^cuda[:a-zA-Z_ ]*.*= '\([^']*\)'.*/\1/p" "$package/version.py")
got="$found $(cuda_of "$found_cuda") in $package"
case $found in
  "${torch%.*}" | "${torch%.*}".*) ;;
  *) fail "$got" ;;
esac
[ "${found_cuda%%.*}" = "${torch_cuda%%.*}" ] || fail "$got"

path=$package/lib
for folder in "$package"/../nvidia/*/lib; do
  if [ -d "$folder" ]; then path=$path:$folder; fi
done
LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$bundle/libexec/$program" "$@"
