#!/usr/bin/env bash
# Builds the Debian packages thinwire and thinwire-worker (docs/install.md), for the Debian release of this machine.
#
#   deploy/deb.sh                 writes out/deb/thinwire_VERSION_amd64.deb and out/deb/thinwire-worker_VERSION_amd64.deb
#   deploy/deb.sh --out FOLDER    writes them to FOLDER
#
# $BAZEL is the Bazel command with its startup options, $BAZEL_FLAGS are additional build flags.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
fail() { echo "deb.sh: $1" >&2; exit "${2:-69}"; }

out=$root/out/deb
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --out) [ $# -ge 2 ] || fail "--out: missing value (expected a folder, got none)" 64; out=$(readlink -m "$2"); shift 2 ;;
    *) fail "$1: unknown flag (expected --out)" 64 ;;
  esac
done
command -v dpkg-shlibdeps >/dev/null || fail "dpkg-shlibdeps: not found (deploy/install_packages.sh installs dpkg-dev)"

read -ra bazel <<<"${BAZEL:-bazel}"
read -ra flags <<<"${BAZEL_FLAGS:-}"
cd "$root"
"${bazel[@]}" build "${flags[@]}" //cli:thinwire //server:server //worker:worker //experiments:laboratory
bin=$("${bazel[@]}" info "${flags[@]}" bazel-bin 2>/dev/null)

version=$(cat VERSION)
architecture=$(dpkg --print-architecture)
# All files have the time of the commit, so the same commit gives the same packages.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/debian" "$out"
cp deploy/deb/control "$work/debian/control"
maintainer=$(sed -n 's/^Maintainer: //p' deploy/deb/control)
cat >"$work/debian/changelog" <<CHANGES
thinwire ($version) bookworm; urgency=medium

  * /usr/share/doc/thinwire/CHANGELOG.md.gz lists the changes.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
CHANGES

# program PACKAGE FILE NAME: installs a program as /usr/bin/NAME.
program() {
  install -D -m 755 -s "$2" "$work/$1/usr/bin/$3"
}

# service PACKAGE NAME: installs the unit thinwire-NAME@.service and its settings.
service() {
  install -D -m 644 "deploy/systemd/thinwire-$2@.service" "$work/$1/lib/systemd/system/thinwire-$2@.service"
  install -D -m 644 "deploy/systemd/$2.env" "$work/$1/etc/thinwire/$2.env"
}

# package NAME: writes the package from the folder NAME.
package() {
  local name=$1 folder=$work/$1
  install -D -m 644 deploy/deb/copyright "$folder/usr/share/doc/$name/copyright"
  gzip -9n <"$work/debian/changelog" | install -D -m 644 /dev/stdin "$folder/usr/share/doc/$name/changelog.gz"
  mkdir -p "$folder/DEBIAN"
  for script in postinst prerm; do install -m 755 "deploy/deb/$name.$script" "$folder/DEBIAN/$script"; done
  (cd "$folder" && find etc -type f -printf '/%p\n' >DEBIAN/conffiles &&
    find usr lib -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  (cd "$work" && dpkg-shlibdeps -Tdebian/substvars --warnings=1 "$name"/usr/bin/* &&
    dpkg-gencontrol -p"$name" -P"$name" -Tdebian/substvars)
  dpkg-deb --root-owner-group --build "$folder" "$out/${name}_${version}_$architecture.deb"
}

program thinwire "$bin/cli/thinwire" thinwire
program thinwire "$bin/server/server" thinwire-server
service thinwire server
service thinwire mirror
documents=$work/thinwire/usr/share/doc/thinwire
install -D -m 644 -t "$documents" README.md docs/*.md
gzip -9n <CHANGELOG.md | install -m 644 /dev/stdin "$documents/CHANGELOG.md.gz"
install -D -m 644 -t "$documents/examples" examples/*.textproto
install -D -m 644 -t "$documents/experiments" experiments/*.textproto
program thinwire-worker "$bin/worker/worker" thinwire-worker
program thinwire-worker "$bin/experiments/laboratory" thinwire-laboratory
install -D -m 644 -t "$work/thinwire-worker/usr/share/thinwire/report" experiments/report/*.py
rm "$work"/thinwire-worker/usr/share/thinwire/report/{*_test,synthetic_results}.py
service thinwire-worker worker

# completion PACKAGE NAME COMMAND...: the scripts that COMMAND SHELL prints for the program NAME.
completion() {
  local share=$work/$1/usr/share name=$2
  shift 2
  "$@" bash | install -D -m 644 /dev/stdin "$share/bash-completion/completions/$name"
  "$@" zsh | install -D -m 644 /dev/stdin "$share/zsh/vendor-completions/_$name"
  "$@" fish | install -D -m 644 /dev/stdin "$share/fish/vendor_completions.d/$name.fish"
}
completion thinwire thinwire "$bin/cli/thinwire" completion
completion thinwire thinwire-server "$bin/server/server" --completion
completion thinwire-worker thinwire-worker "$bin/worker/worker" --completion
deploy/man_pages.sh "$bin/cli/thinwire" "$bin/server/server" "$bin/worker/worker" "$work/man"
"$bin/experiments/laboratory" --man >"$work/man/thinwire-laboratory.1"
for page in "$work"/man/*.1; do
  case $page in */thinwire-worker.1 | */thinwire-laboratory.1) owner=thinwire-worker ;; *) owner=thinwire ;; esac
  gzip -9n <"$page" | install -D -m 644 /dev/stdin "$work/$owner/usr/share/man/man1/$(basename "$page").gz"
done

package thinwire
package thinwire-worker
