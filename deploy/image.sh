#!/usr/bin/env bash
# Builds a container image with the programs of thinwire, and names it localhost/thinwire:dev and localhost/thinwire:VERSION
# (docs/install.md). Needs mmdebstrap and podman, a mirror of Debian, but no registry of images.
#
#   deploy/image.sh                              the Debian packages of deploy/deb.sh and Fashion-MNIST, for CPUs
#   deploy/image.sh --cuda --torch DIR           the bundle of deploy/bundle.sh and the torch package DIR, for GPUs;
#                                                named localhost/thinwire:dev-cuda and localhost/thinwire:VERSION-cuda
#   deploy/image.sh --archive FILE               also writes the image to FILE, in the OCI layout
#   deploy/image.sh --dry_run                    prints the commands and runs none of them
#
# $MIRROR is the mirror of Debian (default http://deb.debian.org/debian); deploy/deb.sh and deploy/bundle.sh read $BAZEL and
# $BAZEL_FLAGS.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
fail() { echo "image.sh: $1" >&2; exit "${2:-69}"; }

archive="" torch="" cuda=false dry_run=false
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --cuda) cuda=true; shift; continue ;;
    --dry_run) dry_run=true; shift; continue ;;
    --archive | --torch) [ $# -ge 2 ] || fail "$1: missing value (expected one, got none)" 64 ;;
    *) fail "$1: unknown flag (expected --cuda, --torch, --archive or --dry_run)" 64 ;;
  esac
  case $1 in
    --archive) archive=$2 ;;
    --torch) torch=$2 ;;
  esac
  shift 2
done
[ $cuda = false ] || [ -n "$torch" ] ||
  fail "--torch: missing (expected the folder of a torch package, because of --cuda, got none)" 64
[ $cuda = true ] || [ -z "$torch" ] || fail "--torch: only valid with --cuda (got $torch)" 64

run() { if $dry_run; then printf '%q ' "$@"; echo; else "$@"; fi; }
for program in mmdebstrap podman; do
  $dry_run || command -v $program >/dev/null || fail "$program: not found (apt-get install $program)"
done

cd "$root"
version=$(cat VERSION)
mirror=${MIRROR:-http://deb.debian.org/debian}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

sources=("deb $mirror bookworm main" "deb $mirror bookworm-updates main"
  "deb http://deb.debian.org/debian-security bookworm-security main")
# Documents and translations, except licences and examples, are not part of the image.
options=(--variant=essential --format=tar --components=main
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/doc/thinwire/examples/*'
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*'
  --customize-hook='chroot "$1" groupadd --gid 65532 nonroot'
  --customize-hook='chroot "$1" useradd --uid 65532 --gid 65532 --create-home --home-dir /var/lib/thinwire/home nonroot')
changes=(--change 'USER 65532:65532' --change 'WORKDIR /var/lib/thinwire/home' --change 'CMD ["thinwire","--help"]'
  --change "LABEL org.opencontainers.image.title=thinwire" --change "LABEL org.opencontainers.image.version=$version"
  --change "LABEL org.opencontainers.image.revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)")
suffix=""
if $cuda; then
  suffix=-cuda
  torch=$(readlink -f "$torch")
  bundle=$root/out/image/bundle
  run deploy/bundle.sh --torch "$torch" --out "$bundle"
  options+=(--include=passwd,libstdc++6,libgomp1,rclone,ca-certificates
    --customize-hook="mkdir -p \"\$1/opt/torch\" && cp -r '$bundle' \"\$1/opt/thinwire\" && cp -r '$torch' \"\$1/opt/torch/torch\""
    --customize-hook="if [ -d '$torch/../nvidia' ]; then cp -r '$torch/../nvidia' \"\$1/opt/torch/\"; fi"
    --customize-hook='ln -s /opt/thinwire/bin/thinwire "$1/usr/bin/thinwire"'
    --customize-hook='for name in server worker; do ln -s /opt/thinwire/bin/$name "$1/usr/bin/thinwire-$name"; done')
  changes+=(--change 'ENV THINWIRE_TORCH=/opt/torch/torch' --change 'ENV NVIDIA_VISIBLE_DEVICES=all'
    --change 'ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility')
else
  run deploy/deb.sh --out "$work/packages"
  if ! $dry_run; then
    (cd "$work/packages" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)
    chmod -R a+rX "$work/packages"
  fi
  sources+=("deb [trusted=yes] copy:$work/packages ./")
  options+=(--include=passwd,thinwire,thinwire-worker,libopenblas0-pthread,dataset-fashion-mnist,rclone,ca-certificates)
fi

run mmdebstrap "${options[@]}" bookworm "$work/root.tar" "${sources[@]}"
run podman import "${changes[@]}" "$work/root.tar" "localhost/thinwire:$version$suffix"
run podman tag "localhost/thinwire:$version$suffix" "localhost/thinwire:dev$suffix"
[ -z "$archive" ] || run podman save --format oci-archive --output "$archive" "localhost/thinwire:$version$suffix"
