#!/usr/bin/env bash
# Builds the Debian packages, installs them in a bare Debian 12, reads the manual pages, completes a command, and trains there as an
# ordinary user. The last line of the output is the result of the training. Requires root, mmdebstrap and a mirror of Debian.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

fail() { echo "deb_test.sh: $1" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deploy/deb.sh --out "$work/packages" >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; fail "deploy/deb.sh failed"; }
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "$work"/packages/*.deb || fail "lintian found errors or warnings"
fi

cat >"$work/inside.sh" <<'INSIDE'
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q install -y --no-install-recommends /packages/*.deb libopenblas0-pthread dataset-fashion-mnist \
  bash-completion man-db zsh
id thinwire
useradd --create-home tester
su tester -c '
  set -eu
  cd
  for program in thinwire thinwire-server thinwire-worker; do $program --version | head -n 1; done
  thinwire config check /usr/share/doc/thinwire/examples/*.textproto
  thinwire train --config /usr/share/doc/thinwire/examples/fashion_mnist_softmax.textproto --train_examples 6400
'
# man and the shells find the files of the packages.
for page in /usr/share/man/man1/thinwire*.1.gz; do
  name=$(basename "$page" .1.gz)
  man "$name" | grep -q "^ *$name" || { echo "man does not show $name" >&2; exit 1; }
  echo "page $name"
done
bash -c '. /usr/share/bash-completion/bash_completion
  _completion_loader thinwire || [ $? -eq 124 ]
  COMP_WORDS=(thinwire la) COMP_CWORD=1; _thinwire; echo "bash completes ${COMPREPLY[*]}"'
zsh -fc 'autoload -Uz compinit && compinit -u -D && autoload +X $_comps[thinwire] && echo "zsh loads $_comps[thinwire]"'
# A removed package leaves its settings, and nothing else of its own.
apt-get -q remove -y thinwire thinwire-worker
[ -e /etc/thinwire/server.env ] || { echo "no /etc/thinwire/server.env after the removal" >&2; exit 1; }
[ ! -e /usr/bin/thinwire ] || { echo "/usr/bin/thinwire after the removal" >&2; exit 1; }
INSIDE
mmdebstrap --variant=minbase --format=null --include=passwd,util-linux \
  --customize-hook="mkdir \"\$1/packages\" && cp '$work'/packages/*.deb '$work/inside.sh' \"\$1/packages/\"" \
  --customize-hook='chroot "$1" sh /packages/inside.sh' \
  bookworm - >"$work/install.log" 2>&1 || { tail -n 60 "$work/install.log" >&2; fail "the packages do not work in a bare Debian"; }
grep -E '^thinwire(-server|-worker|) |: ok$|^  (test accuracy|workers) |^(page|bash completes|zsh loads) ' "$work/install.log"
version=$(cat VERSION)
[ "$(grep -c "^thinwire.* $version (revision " "$work/install.log")" -eq 3 ] || fail "wrong versions (expected three times $version)"
for line in "page thinwire" "page thinwire-train" "page thinwire-server" "page thinwire-worker" \
  "bash completes launch" "zsh loads _thinwire"; do
  grep -qx "$line" "$work/install.log" || fail "no line \"$line\" from the installed packages"
done
accuracy=$(sed -n 's/^  test accuracy *//p' "$work/install.log")
[ -n "$accuracy" ] || fail "no test accuracy in the output of thinwire train"
echo "installed and trained: test accuracy $accuracy"
