#!/bin/bash
# Races the codecs over a thin wire: real servers and synthetic workers on hosts of their own, which are network
# namespaces that a switch joins by links of 1 Gbit/s each way. Prints for each topology and codec
#
#   race TOPOLOGY CODEC MEDIAN_MS FLOOR_MS RATIO
#
# the median round (from the first gradient until every worker has all the parameters of the next step), the least it
# could take, and their ratio. The floor is the payload bytes of the busiest link, of its busier direction, at the
# goodput that bare gRPC streams reach over that link both ways at once, measured in the same run; a codec both ways:
#
#   raw fp32/fp32      fp8 fp8_e5m2/fp8_e5m2     onebit onebit/delta_onebit     topk_1 top 1 %/what changed
#   bf16 bf16/bf16     auto auto/fp8_e5m2        table_4 table_4/delta_table_4  topk_01 top 0.1 %/what changed
#
#   apart     each server on a host of its own
#   together  a server beside each worker: half of what two hosts exchange stays inside them, as in a ring all-reduce
#
#   bench/race.sh                        both topologies, all codecs: some minutes
#   bench/race.sh --quick                raw, fp8 and topk_1, apart, in under a minute
#   bench/race.sh --rate 100mbit --mb 10 --codecs "raw fp8" --topologies apart --workers 4 --servers 2 --compute 0.05
#   bench/race.sh --rate none            the hosts' links unshaped
#   bench/race.sh --congestion bbr       another control of TCP than reno: shares are less even, and the slower worker
#                                        of a round keeps the other waiting
#   bench/race.sh --socket_buffer 0      sockets as large as the kernel likes, not 128 KiB: the same effect
#   bench/race.sh --topologies apart --codecs "fp32/fp8_e5m2 fp8_e4m3/fp8_e5m2 auto"    auto beside fixed push codecs
#
# Wants root, iproute2, and the programs of bazel-bin (or --bin_dir): bazel build //server //bench:race_worker
# //bench:raw_wire. Everything is in namespaces named twrace-PID-...; they and the processes in them go when the script
# ends, also when it is interrupted, and what a killed run left goes when the next begins. The exit code is 1 if a race
# fails; those that succeed are printed all the same.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
topologies="apart together"
codecs="raw bf16 fp8 onebit table_4 topk_1 topk_01"
mb=100
workers=2
servers=1
rounds=8
rate=1gbit
compute=0
threads=0
congestion=reno
socket_buffer=131072

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --quick) topologies=apart codecs="raw fp8 topk_1" rounds=4; shift; continue ;;
  esac
  [ $# -ge 2 ] || { echo "race.sh: $1: want a value, got none" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --topologies) topologies=$2 ;;
    --codecs) codecs=$2 ;;
    --mb) mb=$2 ;;
    --workers) workers=$2 ;;
    --servers) servers=$2 ;;
    --rounds) rounds=$2 ;;
    --rate) rate=$2 ;;
    --compute) compute=$2 ;;
    --threads) threads=$2 ;;
    --congestion) congestion=$2 ;;
    --socket_buffer) socket_buffer=$2 ;;
    *) echo "race.sh: $1: unknown; --help tells the flags" >&2; exit 64 ;;
  esac
  shift 2
done

[[ $socket_buffer =~ ^[0-9]+$ ]] ||
  { echo "race.sh: --socket_buffer: want bytes, or 0 for the kernel's choice, got $socket_buffer" >&2; exit 64; }
for program in server/server bench/race_worker bench/raw_wire; do
  [ -x "$bin_dir/$program" ] && continue
  echo "race.sh: no program $bin_dir/$program; bazel build //server //bench:race_worker //bench:raw_wire" >&2
  exit 69
done
[ "$(id -u)" = 0 ] || { echo "race.sh: want root, to make network namespaces" >&2; exit 69; }
export PATH=$PATH:/usr/sbin:/sbin

# push, pull and settings of a codec, as fields of Compression.
compression() {
  case $1 in
    raw) echo 'push: "fp32" pull: "fp32"' ;;
    bf16) echo 'push: "bf16" pull: "bf16"' ;;
    fp8) echo 'push: "fp8_e5m2" pull: "fp8_e5m2"' ;;
    onebit) echo 'push: "onebit" pull: "delta_onebit"' ;;
    table_4) echo 'push: "table_4" pull: "delta_table_4"' ;;
    topk_1) echo 'push: "topk" density: 0.01 topk_values: "fp8_e5m2" pull: "delta"' ;;
    topk_01) echo 'push: "topk" density: 0.001 topk_values: "fp8_e5m2" pull: "delta"' ;;
    auto | fastest) echo "push: \"$1\" pull: \"fp8_e5m2\"" ;;
    */*) echo "push: \"${1%%/*}\" pull: \"${1#*/}\"" ;;
    *) return 1 ;;
  esac
}
for codec in $codecs; do
  compression "$codec" > /dev/null && continue
  echo "race.sh: $codec: want raw, bf16, fp8, onebit, table_4, topk_1, topk_01, auto, fastest, or PUSH/PULL" >&2
  exit 64
done

prefix=twrace-$$
work=$(mktemp -d)

# The namespaces of the run with this PID, and all that runs in them.
remove_namespaces() {
  local name
  for name in $(ip netns list 2> /dev/null | awk '{print $1}' | grep "^twrace-$1-"); do
    ip netns pids "$name" 2> /dev/null | xargs -r kill -9 2> /dev/null
    ip netns delete "$name" 2> /dev/null
  done
}

clean_up() {
  trap '' INT TERM
  exec 2> /dev/null  # where bash would tell what was killed
  remove_namespaces $$
  wait
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for pid in $(ip netns list 2> /dev/null | sed -n 's/^twrace-\([0-9]*\)-.*/\1/p' | sort -u); do
  grep -qs race.sh "/proc/$pid/cmdline" || remove_namespaces "$pid"
done

# What leaves either end of a link leaves it at the rate. The bucket holds two segments of the largest size that the
# kernel hands over at once; the queue is that of a switch.
shape() {
  [ "$rate" = none ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 128kb latency 20ms
}

# Host NUMBER, with the address 10.77.0.NUMBER, at the switch.
make_host() {
  local host=$prefix-h$1
  ip netns add "$host" &&
    ip -n "$prefix-switch" link add "port$1" type veth peer name eth0 netns "$host" &&
    ip -n "$prefix-switch" link set "port$1" master switch up &&
    ip -n "$host" address add "10.77.0.$1/24" dev eth0 &&
    ip netns exec "$host" sysctl -qw "net.ipv4.tcp_congestion_control=$congestion" "${buffer_limits[@]}" &&
    ip -n "$host" link set eth0 up && ip -n "$host" link set lo up &&
    shape "$prefix-switch" "port$1" && shape "$host" eth0
}

# Where no link is the bottleneck, buffers must not be it.
buffer_limits=()
if [ "$socket_buffer" != 0 ] && [ "$rate" != none ]; then
  for side in rmem wmem; do
    buffer_limits+=("net.ipv4.tcp_$side=4096 $socket_buffer $socket_buffer")
  done
fi

# Hosts 1 to COUNT.
make_network() {
  local i
  ip netns add "$prefix-switch" && ip -n "$prefix-switch" link add switch type bridge &&
    ip -n "$prefix-switch" link set switch up || return 1
  for i in $(seq "$1"); do make_host "$i" || return 1; done
}

# Runs a command on host NUMBER.
on() {
  local host=$prefix-h$1
  shift
  exec ip netns exec "$host" "$@"
}

# Waits until LOG says where its program, PID, listens.
await_listening() {
  for _ in $(seq 200); do
    grep -qs '^listening ' "$1" && return
    kill -0 "$2" 2> /dev/null || break
    sleep 0.05
  done
  echo "race.sh: a server did not start: $(tail -n 1 "$1.err")" >&2
  return 1
}

# Bytes per second each way, over the link of host 1, while all the given hosts exchange with it: the best of three
# times, since whatever else runs only takes from it.
measure_goodput() {
  local bytes=$((mb * 500000 / $#)) host pids server best=0
  [ "$bytes" -ge 16777216 ] || bytes=16777216
  (on 1 "$bin_dir/bench/raw_wire" serve 10.77.0.1:7700) > "$work/raw" 2> "$work/raw.err" &
  server=$!
  await_listening "$work/raw" $server || return 1
  for _ in 1 2 3; do
    pids=""
    for host; do
      (on "$host" "$bin_dir/bench/raw_wire" send 10.77.0.1:7700 "$bytes") > "$work/sent-$host" &
      pids="$pids $!"
    done
    wait $pids
    best=$(for host; do cat "$work/sent-$host"; done | awk -v best="$best" '
      { sum += $2; if (begin == "" || $3 < begin) begin = $3; if ($4 > end) end = $4 }
      END { now = end > begin ? sum / (end - begin) : 0; print (now > best ? now : best) }')
  done
  kill "$server" 2> /dev/null
  wait "$server" 2> /dev/null
  [ "$best" != 0 ] && echo "$best"
}

# One job: NAME, the hosts of its servers and of its workers. Leaves the workers' lines in $work/result.
run_job() {
  local fields=$1 server_hosts=$2 worker_hosts=$3 addresses="" pids="" daemons="" number=0 host ok=1
  local all_servers all_workers warm_rounds=2
  # A rule needs some rounds to choose.
  case $fields in *auto*) warm_rounds=6 ;; esac
  all_servers=$(echo $server_hosts | wc -w) all_workers=$(echo $worker_hosts | wc -w)
  for host in $server_hosts; do
    cat > "$work/server-$number" << CONFIG
job: "race" server: $number servers: $all_servers threads: $threads listen: "10.77.0.$host:7000" insecure: true
consistency { workers: $all_workers } optimization { learning_rate: 0.01 } compression { $fields }
CONFIG
    (on "$host" "$bin_dir/server/server" --config "$work/server-$number") \
      > "$work/server-$number.out" 2> "$work/server-$number.out.err" &
    daemons="$daemons $!"
    await_listening "$work/server-$number.out" $! || return 1
    addresses="$addresses servers: \"10.77.0.$host:7000\""
    number=$((number + 1))
  done
  number=0
  for host in $worker_hosts; do
    cat > "$work/worker-$number" << CONFIG
job: "race" worker: $number workers: $all_workers $addresses compression { $fields } silence_seconds: 60
CONFIG
    (on "$host" "$bin_dir/bench/race_worker" --config "$work/worker-$number" --tensors "$tensors" \
      --rounds "$rounds" --warm_rounds "$warm_rounds" --compute_seconds "$compute") > "$work/worker-$number.out" 2> "$work/worker-$number.err" &
    pids="$pids $!"
    number=$((number + 1))
  done
  for host in $pids; do wait "$host" || ok=0; done
  kill $daemons 2> /dev/null
  wait $daemons 2> /dev/null
  [ $ok = 1 ] || { cat "$work"/worker-*.err | grep -v '^[IW][0-9]' | head -n 3 >&2; return 1; }
  cat "$work"/worker-*.out > "$work/result"
}

# The line of a race, from the workers' lines and the goodput.
tell() {
  python3 - "$1" "$2" "$3" "$servers_of_race" "$work/result" << 'PYTHON'
import json
import statistics
import sys

topology, codec, goodput, servers, path = sys.argv[1:]
with open(path) as f:
    workers = [json.loads(line) for line in f]
count, servers = len(workers), int(servers)
push = sum(w["push_bytes"] for w in workers) / count
pull = sum(w["pull_bytes"] for w in workers) / count
if topology == "apart":
    # A worker's link carries what it pushes one way and pulls the other; a server's, its share of all workers'.
    busiest = max(push, pull) * max(1, count / servers)
else:
    # A host sends its worker's pushes to the other servers, and its server's answers to the other workers.
    busiest = (push + pull) * (1 - 1 / count)
floor = busiest / float(goodput)
# A round is over when the slowest worker has its parameters.
median = statistics.median(map(max, zip(*(w["seconds"] for w in workers))))
for chosen in workers[0]["push_codecs"]:
    print("choice %s %s %s: %s, %s" % (topology, codec, chosen["group"], chosen["codec"], chosen["reason"]))
print("race %s %s %.1f %.1f %.2f" % (topology, codec, 1e3 * median, 1e3 * floor, median / floor), flush=True)
PYTHON
}

# Matrices of 4 MiB, four shards of the largest size each.
tensors="$(((mb * 1000000 + 2097152) / 4194304))*1024x1024"
[ "$mb" -ge 10 ] || tensors="10*$((mb * 25))x1000"
failed=0
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc); $rate, $mb MB, $workers workers, tensors $tensors"
for topology in $topologies; do
  case $topology in
    apart)
      server_hosts=$(seq "$servers")
      worker_hosts=$(seq $((servers + 1)) $((servers + workers)))
      hosts=$((servers + workers)) measured=$worker_hosts servers_of_race=$servers
      ;;
    together)
      server_hosts=$(seq "$workers")
      worker_hosts=$server_hosts
      hosts=$workers measured=$(seq 2 "$workers") servers_of_race=$workers
      ;;
    *) echo "race.sh: $topology: want apart or together" >&2; exit 64 ;;
  esac
  make_network "$hosts" || { echo "race.sh: could not make the network" >&2; exit 69; }
  goodput=$(measure_goodput $measured) || { echo "race.sh: could not measure the link" >&2; exit 1; }
  echo "goodput $topology $(awk "BEGIN { printf \"%.1f\", $goodput * 8 / 1e6 }") Mbit/s each way"
  for codec in $codecs; do
    if run_job "$(compression "$codec")" "$server_hosts" "$worker_hosts"; then
      tell "$topology" "$codec" "$goodput"
    else
      echo "race $topology $codec failed"
      failed=1
    fi
  done
  remove_namespaces $$
done
exit $failed
