#!/usr/bin/env bash
# Walks docs/two_machines.md: runs its commands, exactly as they are printed, on three machines, which are namespaces with file
# systems of their own and links of 1 Gbit/s. The machines are bare Debian 12; the packages of deploy/deb.sh are installed by the commands of the page. The last line of the output is the result. Requires root,
# mmdebstrap and a mirror of Debian.
#
#   tests/walk.sh                 makes a bare Debian in a temporary folder and walks
#   tests/walk.sh --debian DIR    uses the bare Debian in DIR, and makes it if DIR does not exist
#   tests/walk.sh --packages DIR  uses the packages in DIR
#
# A block of commands begins with ```sh MACHINE... [fails] [until=PATTERN]:
#
#   MACHINE          own, a (10.0.0.1) or b (10.0.0.2)
#   fails            the exit code of the block must not be 0
#   until=PATTERN    the last command of the block is repeated until its output matches PATTERN
#
# Each machine has one login shell, so blocks may use variables of earlier blocks. Blocks without a machine are not run.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

page=docs/two_machines.md
fail() { echo "walk.sh: $1" >&2; exit 1; }

# make_debian DIR: a bare Debian 12 with sshd, and a user who may call sudo and log in on every machine. The libraries that the
# packages need are in apt's cache, because the machines do not reach a mirror.
make_debian() {
  mmdebstrap --variant=minbase --include=openssh-server,openssh-client,sudo,procps,curl --skip=cleanup/apt --dpkgopt=force-unsafe-io \
    --customize-hook="mkdir \"\$1/packages\" && cp '$work'/packages/*.deb \"\$1/packages/\"" \
    --customize-hook='chroot "$1" apt-get -q update' \
    --customize-hook='chroot "$1" sh -c "apt-get -q install -y --no-install-recommends --download-only /packages/*.deb libopenblas0-pthread dataset-fashion-mnist"' \
    --customize-hook='rm -r "$1/packages"' \
    --customize-hook='chroot "$1" useradd --create-home --shell /bin/bash user' \
    --customize-hook='echo "user ALL=(ALL) NOPASSWD: ALL" > "$1/etc/sudoers.d/user"' \
    --customize-hook='echo "StrictHostKeyChecking accept-new" > "$1/etc/ssh/ssh_config.d/walk.conf"' \
    --customize-hook='echo "127.0.0.1 localhost own a b" > "$1/etc/hosts"' \
    --customize-hook='chroot "$1" su user -c "ssh-keygen -q -t ed25519 -N \"\" -f ~/.ssh/id_ed25519 && cp ~/.ssh/id_ed25519.pub ~/.ssh/authorized_keys"' \
    bookworm "$1" >"$work/debian.log" 2>&1 || { tail -n 40 "$work/debian.log" >&2; fail "mmdebstrap failed"; }
}

if [ "${1:-}" != inside ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  debian=$work/debian packages=""
  while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1: missing value (expected a folder, got none)"
    case $1 in
      --debian) debian=$(readlink -m "$2") ;;
      --packages) packages=$(readlink -m "$2") ;;
      *) fail "$1: unknown flag (expected --debian or --packages)" ;;
    esac
    shift 2
  done
  if [ -n "$packages" ]; then
    cp -r "$packages" "$work/packages"
  else
    deploy/deb.sh --out "$work/packages" >"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; fail "deploy/deb.sh failed"; }
  fi
  [ -d "$debian" ] || make_debian "$debian"
  # Everything below ends with these namespaces: processes, mounts and links.
  unshare --mount --net --pid --fork --kill-child --mount-proc "$0" inside "$work" "$debian"
  exit
fi
work=$2
debian=$3
declare -A init input output  # Of each machine: the process that keeps its namespaces, and the two ends of its shell.

# start_machine NAME ADDRESS
start_machine() {
  local name=$1 root=$work/$1/root
  mkdir -p "$work/$name/upper" "$work/$name/overlay" "$root"
  mount -t overlay overlay -o "lowerdir=$debian,upperdir=$work/$name/upper,workdir=$work/$name/overlay" "$root"
  mount -t tmpfs tmpfs "$root/dev/shm"
  # This shell reaps the processes whose parents have ended.
  unshare --mount --net --pid --uts --ipc --fork --kill-child chroot "$root" bash -c \
    "mount -t proc proc /proc; hostname $name; mkdir -p /run/sshd; /usr/sbin/sshd && echo ready || echo failed; while :; do sleep 60 & wait; done" >"$work/$name/init.log" 2>&1 &
  until grep -Eq "^(ready|failed)$" "$work/$name/init.log"; do sleep 0.1; done
  grep -q "^ready$" "$work/$name/init.log" || fail "$name: sshd did not start: $(cat "$work/$name/init.log")"
  init[$name]=$(pgrep --parent $!)
  ip link add "to-$name" type veth peer name eth0 netns "${init[$name]}"
  ip link set "to-$name" master wire up
  nsenter --target "${init[$name]}" --net sh -c "ip link set lo up; ip address add $2/24 dev eth0; ip link set eth0 up;
    tc qdisc add dev eth0 root tbf rate 1gbit burst 1mb latency 20ms"
  tc qdisc add dev "to-$name" root tbf rate 1gbit burst 1mb latency 20ms

  mkfifo "$work/$name/input" "$work/$name/output"
  nsenter --target "${init[$name]}" --all --root --wdns=/ su --login user <"$work/$name/input" >"$work/$name/output" 2>&1 &
  exec {input[$name]}>"$work/$name/input" {output[$name]}<"$work/$name/output"
}

# run MACHINE FILE: runs the commands in FILE in the shell of MACHINE and prints the output, which is also in $text. Returns the
# exit code of the last command that failed, or 0.
run() {
  local line
  cp "$2" "$work/$1/root/tmp/block"
  echo 'code=0; trap "code=\$?" ERR; . /tmp/block </dev/null; trap - ERR; echo; echo "exit code: $code"' >&"${input[$1]}"
  text=""
  while IFS= read -r -t 900 line <&"${output[$1]}" || fail "$1: no end of the commands within 900 s"; do
    [[ $line =~ ^exit\ code:\ ([0-9]+)$ ]] && return "${BASH_REMATCH[1]}"
    [ -z "$line" ] || echo "    $line"
    text+=$line$'\n'
  done
}

# run_block MACHINE FILE CONDITION...
run_block() {
  local machine=$1 file=$2 condition code pattern="" fails=false end=$((SECONDS + 180))
  for condition in "${@:3}"; do
    case $condition in
      fails) fails=true ;;
      until=*) pattern=${condition#until=} ;;
      *) fail "$page: $condition: unknown word after the machines (expected fails or until=PATTERN)" ;;
    esac
  done
  sed "s/^/$machine\$ /" "$file"
  while :; do
    code=0
    run "$machine" "$file" || code=$?
    grep -qE -- "$pattern" <<<"$text" && break
    [ $SECONDS -lt $end ] || fail "$machine: the output never matched within 180 s (expected $pattern)"
    tail -n 1 "$2" >"$work/last"
    file=$work/last
    sleep 1
  done
  if $fails; then
    [ "$code" -ne 0 ] || fail "$machine: the block must fail (expected an exit code other than 0, got 0)"
  else
    [ "$code" -eq 0 ] || fail "$machine: the block failed (expected exit code 0, got $code)"
  fi
}

# command_on MACHINE COMMANDS: runs commands that are not on the page.
command_on() {
  printf '%s\n' "$2" >"$work/command"
  run "$1" "$work/command"
}

# A worker without credentials does not get in, also if it insists (--insecure), even at the number of a worker that the job lacks.
after_step_6() {
  local code=0
  sed 's/workers: 4/& start_timeout_seconds: 3/' "$work/own/root/home/user/job.textproto" >"$work/b/root/tmp/plaintext.textproto"
  command_on b "THINWIRE_CREDENTIALS= thinwire-worker --config /tmp/plaintext.textproto --worker 4 --insecure --state_dir /tmp/plaintext >/tmp/plaintext.log 2>&1" || code=$?
  [ $code -eq 69 ] || fail "a worker without credentials ends with $code (expected 69): $(tail -n 3 "$work/b/root/tmp/plaintext.log")"
  command_on own "thinwire status" || fail "thinwire status fails after the worker without credentials"
  grep -q "4 of 4 live" <<<"$text" || fail "a worker without credentials changed the job"
  refused=1
}

after_step_7() {
  local code
  command_on own "curl --silent --output page.html --write-out '%{http_code}' http://10.0.0.1:9100/ && grep -o fashion page.html | head -n 1" ||
    fail "the page of the lead does not answer"
  [[ $text = 200fashion* ]] || fail "the page of the lead differs (expected 200 and the name fashion, got $text)"
  page_read=1
}

# The server serves the new certificate.
after_step_11() {
  local home=$work/own/root/home/user end=$((SECONDS + 30)) expected served=""
  expected=$(openssl x509 -noout -serial -in "$home/certs/server-0/cert.pem")
  until [ "$served" = "$expected" ]; do
    [ $SECONDS -lt $end ] || fail "server 0 does not use its new certificate (expected $expected, got $served)"
    served=$(nsenter --target "${init[own]}" --net openssl s_client -connect 10.0.0.1:7000 -cert "$home/certs/operator/cert.pem" \
      -key "$home/certs/operator/key.pem" -alpn h2 </dev/null 2>/dev/null | openssl x509 -noout -serial || true)
  done
  rotated=1
}

after_step_13() {
  accuracy=$(sed -n 's/^test accuracy *//p' <<<"$all_text" | tail -n 1)
}

ip link add wire type bridge
ip link set wire up
start_machine own 10.0.0.3
start_machine a 10.0.0.1
start_machine b 10.0.0.2
cp "$work"/packages/*.deb "$work/own/root/home/user/"

refused=0 page_read=0 rotated=0 accuracy="" step="" block_count=0 all_text=""
words=()  # Of the block that is being read; empty outside of blocks with a machine.
in_block=false
after_step() { if declare -F "after_step_$step" >/dev/null; then "after_step_$step"; fi; }
while IFS= read -r line <&3; do
  if $in_block; then
    if [ "$line" != '```' ]; then printf '%s\n' "$line" >>"$work/block"; continue; fi
    in_block=false
    conditions=()
    for word in "${words[@]}"; do case $word in own | a | b) ;; *) conditions+=("$word") ;; esac; done
    for word in "${words[@]}"; do
      case $word in
        own | a | b) run_block "$word" "$work/block" "${conditions[@]}"; all_text+=$text; block_count=$((block_count + 1)) ;;
      esac
    done
    continue
  fi
  case $line in
    '```sh '*) in_block=true; : >"$work/block"; read -ra words <<<"${line#'```sh '}" ;;
    '## '*) after_step; step=${line#'## '}; step=${step%%.*}; echo "$line" ;;
  esac
done 3<"$page"
after_step

[ "$refused$page_read$rotated" = 111 ] || fail "$page: a step is missing (expected the checks after steps 6, 7 and 11)"
[ -n "$accuracy" ] || fail "no test accuracy in the output of thinwire evaluate"
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 0.85) }' || fail "the test accuracy is too low (expected above 0.85, got $accuracy)"
echo "walked: $block_count blocks, $SECONDS s: test accuracy $accuracy"
