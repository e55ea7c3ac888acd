#!/usr/bin/env bash
# Builds the Python wheel, installs it in a virtual environment of a bare Debian 12, which has none of the libraries that the build
# uses, trains there with NumPy and two servers, starts a program with `thinwire launch`, and removes it. The last line of the output is the result. Requires root, mmdebstrap,
# a mirror of Debian and PyPI.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

fail() { echo "wheel_test.sh: $1" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deploy/wheel.sh "$work/packages" >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; fail "deploy/wheel.sh failed"; }
/usr/bin/python3 -m pip download --quiet --dest "$work/packages" numpy

# Least squares: with two workers, each step applies the mean of their gradients.
cat >"$work/train.py" <<'PYTHON'
import os
import sys

import numpy
from thinwire import _client

worker = int(os.environ["THINWIRE_WORKER"])
settings = [("workers", ["2"], "test"), ("servers", ["2"], "test"), ("learning_rate", ["0.5"], "test"), ("push", ["fp8_e5m2"], "test")]
if len(sys.argv) > 1:
    open(sys.argv[1], "w").write(_client.job_text("", settings))
    sys.exit()
client = _client.Client(config="", settings=settings, tensors=[("w", [8])], worker=worker,
                        addresses=os.environ["THINWIRE_ADDRESSES"])
truth = numpy.arange(8, dtype=numpy.float32)
client.join([numpy.zeros(8, numpy.float32)])
client.wait_all()
w = client.replica(0)
for step in range(100):
    x = numpy.random.default_rng(2 * step + worker).normal(size=(64, 8)).astype(numpy.float32)
    gradient = x.T @ (x @ (w - truth)) / 64
    client.begin_step()
    client.ready(0, gradient)
    client.end_step()
    client.next_step()
    client.wait_all()
client.leave()
print(f"worker {worker}: error {numpy.abs(w - truth).max():.4f}")
client.close()
PYTHON
cat >"$work/inside.sh" <<'INSIDE'
set -eu
cd /root
python3 -m venv environment
. environment/bin/activate
pip install --quiet --no-index --find-links /packages thinwire
thinwire --version | head -n 1
thinwire-server --version | head -n 1
export THINWIRE_ADDRESSES=127.0.0.1:7000,127.0.0.1:7001
THINWIRE_WORKER=0 python /packages/train.py job.textproto
thinwire-server --config job.textproto --server 1 2>server-1 & one=$!
thinwire-server --config job.textproto --server 0 2>server-0 & zero=$!
THINWIRE_WORKER=1 python /packages/train.py >worker-1 & worker=$!
THINWIRE_WORKER=0 python /packages/train.py
wait $worker
cat worker-1
unset THINWIRE_ADDRESSES
echo 'import os; print("launched", os.environ["THINWIRE_WORKERS"])' >launched.py
thinwire launch --workers 2 launched.py
kill $zero $one
wait $zero && wait $one && echo "servers ended with 0"
pip uninstall --quiet --yes thinwire
[ ! -e environment/bin/thinwire ] && echo "removed"
INSIDE
mmdebstrap --variant=minbase --format=null --include=python3-venv \
  --customize-hook="mkdir \"\$1/packages\" && cp '$work'/packages/*.whl '$work/inside.sh' '$work/train.py' \"\$1/packages/\"" \
  --customize-hook='chroot "$1" sh /packages/inside.sh' \
  bookworm - >"$work/install.log" 2>&1 || { tail -n 40 "$work/install.log" >&2; fail "the wheel does not work in a bare Debian"; }
grep -E '^(thinwire|worker [01]: (error|launched)|servers ended|removed)' "$work/install.log"
version=$(cat VERSION)
[ "$(grep -c "^thinwire.* $version (revision " "$work/install.log")" -eq 2 ] || fail "wrong versions (expected two times $version)"
for line in "servers ended with 0" removed; do grep -qx "$line" "$work/install.log" || fail "no line \"$line\" from the bare Debian"; done
[ "$(grep -c '^worker [01]: error 0\.0' "$work/install.log")" -eq 2 ] || fail "wrong errors (expected two below 0.1)"
[ "$(grep -c '^worker [01]: launched 2$' "$work/install.log")" -eq 2 ] || fail "wrong output of thinwire launch (expected two workers)"
echo "installed and trained: $(sed -n 's/^worker 0: //p' "$work/install.log"), $(sed -n 's/.*: \([0-9]* bytes\)$/\1/p' "$work/build.log")"
