#!/bin/bash
# Measures training rounds with each codec over a slow network. Real servers and synthetic workers run on separate
# hosts, which are network namespaces connected by a switch. The links carry 1 Gbit/s in each direction. For each
# topology and codec, the script prints
#
#   race TOPOLOGY CODEC MEDIAN_MS FLOOR_MS RATIO
#   rounds TOPOLOGY CODEC LONGEST_MS CHECKPOINTS
#   mean TOPOLOGY CODEC MEAN_MS
#
# MEDIAN_MS is the median duration of a round, from the first gradient until every worker has all parameters of the next
# step. FLOOR_MS is a lower bound of this duration: one round trip, and the time that the busiest link needs for its payload bytes in
# the busier direction, at the goodput of raw gRPC streams. The same run measures this goodput over that link, in both
# directions at once. RATIO is MEDIAN_MS / FLOOR_MS. LONGEST_MS is the longest round, CHECKPOINTS the number of
# checkpoints of each server, and MEAN_MS the mean round of the slowest worker.
#
# Codecs, each with its push codec and its pull codec:
#   raw fp32/fp32      fp8 fp8_e5m2/fp8_e5m2     onebit onebit/delta_onebit     topk_1 top 1 %/delta
#   bf16 bf16/bf16     auto auto/fp8_e5m2        table_4 table_4/delta_table_4  topk_01 top 0.1 %/delta
#
# Topologies:
#   apart     every server and every worker has its own host
#   together  each host runs a worker and a server; as in a ring all-reduce, part of the traffic stays inside the hosts
#
#   bench/race.sh                        both topologies, all codecs: some minutes
#   bench/race.sh --quick                the codecs raw, fp8 and topk_1 in topology apart: under a minute
#   bench/race.sh --rate 100mbit --mb 10 --codecs "raw fp8" --topologies apart --workers 4 --servers 2 --compute 0.05
#   bench/race.sh --rate none            links without a rate limit
#   bench/race.sh --durability log       servers with an event log in $TMPDIR (default: none)
#   bench/race.sh --durability checkpoint --checkpoint_seconds 10 --optimizer momentum --mb 400
#   bench/race.sh --round_trip 100ms --rate 100mbit --mb 25    hosts that are far apart; the congestion control is then cubic, and the
#                                        kernel sizes the socket buffers. Before each race, the script prints what
#                                        plain TCP takes for the same bytes, and before all of them PyTorch's all-reduce of
#                                        fp32: tcp TOPOLOGY CODEC MS, allreduce TOPOLOGY fp32 MS
#   bench/race.sh --round_trip 200ms --loss 0.0001 --idle_restart 0 --tcp_connections 4    a path that loses a packet in 10,000, hosts
#                                        with net.ipv4.tcp_slow_start_after_idle=0 (default: 1), plain TCP over four
#                                        connections (default: 1)
#   bench/race.sh --mode ssp --slack 4   another mode; --mode async; --consistency "in_flight: 4" adds fields of the job file. A worker
#                                        then begins rounds before the last ones end, so the mean round counts
#   bench/race.sh --congestion bbr       TCP congestion control bbr instead of reno; the workers then share a link less
#                                        evenly, and the slower worker of a round delays the other worker
#   bench/race.sh --socket_buffer 0      the kernel's default socket buffers instead of 128 KiB; the workers then also
#                                        share a link less evenly
#   bench/race.sh --topologies apart --codecs "raw bf16 fp8" --doctor 1    also prints the median that `thinwire doctor`
#                                        predicts: predicted TOPOLOGY CODEC MS; requires bazel build //cli:thinwire
#   bench/race.sh --topologies apart --codecs "fp32/fp8_e5m2 fp8_e4m3/fp8_e5m2 auto"    auto and fixed push codecs
#
# Requires root, iproute2 (bench/namespaces.sh), and the programs in bazel-bin (or --bin_dir): bazel build //server //bench:race_worker
# //bench:raw_wire. All processes run in namespaces named twrace-PID-... The script removes these namespaces when it
# ends, even if it is interrupted; the next run removes the namespaces of a killed run. The exit code is 1 if a race
# fails; the script still prints the results of the other races.
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
more_consistency=""
threads=0
round_trip=0ms
loss=0
idle_restart=1
tcp_connections=1
congestion=""
socket_buffer=""
mode=sync
slack=4
durability=none
checkpoint_seconds=60
optimizer=sgd
doctor=0

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --quick) topologies=apart codecs="raw fp8 topk_1" rounds=4; shift; continue ;;
  esac
  [ $# -ge 2 ] || { echo "race.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
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
    --consistency) more_consistency=$2 ;;
    --threads) threads=$2 ;;
    --round_trip) round_trip=$2 ;;
    --loss) loss=$2 ;;
    --idle_restart) idle_restart=$2 ;;
    --tcp_connections) tcp_connections=$2 ;;
    --mode) mode=$2 ;;
    --slack) slack=$2 ;;
    --congestion) congestion=$2 ;;
    --socket_buffer) socket_buffer=$2 ;;
    --durability) durability=$2 ;;
    --checkpoint_seconds) checkpoint_seconds=$2 ;;
    --optimizer) optimizer=$2 ;;
    --doctor) doctor=$2 ;;
    *) echo "race.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

far=$([ "$round_trip" = 0ms ] || echo 1)
: "${congestion:=${far:+cubic}}" "${socket_buffer:=${far:+0}}"
: "${congestion:=reno}" "${socket_buffer:=131072}"
[[ $socket_buffer =~ ^[0-9]+$ ]] ||
  { echo "race.sh: --socket_buffer: not a size (expected bytes, or 0 for the kernel's default, got $socket_buffer)" >&2; exit 64; }
[ "$loss" = 0 ] || [ -n "$far" ] ||
  { echo "race.sh: --loss: not possible without --round_trip (expected 0, got $loss)" >&2; exit 64; }
case $mode in
  sync | async) consistency="mode: $mode" ;;
  ssp) consistency="mode: ssp slack: $slack" ;;
  *) echo "race.sh: --mode: unknown (expected sync, ssp or async, got $mode)" >&2; exit 64 ;;
esac
consistency="$consistency $more_consistency"
case $durability in
  none | checkpoint | log) ;;
  *) echo "race.sh: --durability: unknown (expected none, checkpoint or log, got $durability)" >&2; exit 64 ;;
esac
for program in server/server bench/race_worker bench/raw_wire; do
  [ -x "$bin_dir/$program" ] && continue
  echo "race.sh: $bin_dir/$program: not found (build it with: bazel build //server //bench:race_worker //bench:raw_wire)" >&2
  exit 69
done
# Prints the push codec, the pull codec and their settings as fields of the message Compression. Argument: codec.
compression() {
  case $1 in
    raw) echo 'push: fp32 pull: fp32' ;;
    bf16) echo 'push: bf16 pull: bf16' ;;
    fp8) echo 'push: fp8_e5m2 pull: fp8_e5m2' ;;
    onebit) echo 'push: onebit pull: delta_onebit' ;;
    table_4) echo 'push: table_4 pull: delta_table_4' ;;
    topk_1) echo 'push: topk density: 0.01 topk_values: fp8_e5m2 pull: delta' ;;
    topk_01) echo 'push: topk density: 0.001 topk_values: fp8_e5m2 pull: delta' ;;
    auto | fastest) echo "push: $1 pull: fp8_e5m2" ;;
    */*) echo "push: ${1%%/*} pull: ${1#*/}" ;;
    *) return 1 ;;
  esac
}
for codec in $codecs; do
  compression "$codec" > /dev/null && continue
  echo "race.sh: --codecs: unknown codec (expected raw, bf16, fp8, onebit, table_4, topk_1, topk_01, auto, fastest or PUSH/PULL, got $codec)" >&2
  exit 64
done

script=race.sh
prefix=twrace-$$
work=$(mktemp -d)

# The script sets small socket buffers only if the links have a rate limit. Without a rate limit, small buffers would be
# the bottleneck instead of the links.
buffer_limits=("net.ipv4.tcp_slow_start_after_idle=$idle_restart")
if [ "$socket_buffer" != 0 ] && [ "$rate" != none ]; then
  for side in rmem wmem; do
    buffer_limits+=("net.ipv4.tcp_$side=4096 $socket_buffer $socket_buffer")
  done
fi

source "$root/bench/namespaces.sh"

# Prints the goodput of host 1's link, in bytes per second and direction, while all hosts given as arguments exchange
# data with host 1. The result is the best of three measurements, because other load can only lower the goodput.
# Arguments: the numbers of the given hosts.
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

# Runs one job. Arguments: fields of the message Compression; host numbers of the servers, separated by spaces; host
# numbers of the workers, separated by spaces. Writes the output lines of the workers to $work/result.
run_job() {
  local fields=$1 server_hosts=$2 worker_hosts=$3 addresses="" pids="" daemons="" number=0 host ok=1 state=()
  local all_servers all_workers warm_rounds=2
  # With push codec auto, workers choose their codecs during the first rounds; these rounds are not timed.
  case $fields in *auto*) warm_rounds=6 ;; esac
  local recovery="recovery { durability: $durability checkpoint_seconds: $checkpoint_seconds }"
  [ "$durability" != none ] || recovery=""
  all_servers=$(echo $server_hosts | wc -w) all_workers=$(echo $worker_hosts | wc -w)
  for host in $server_hosts; do addresses="$addresses${addresses:+,}10.77.0.$host:7000"; done
  cat > "$work/job.textproto" << JOB
name: "race" servers: $all_servers consistency { $consistency workers: $all_workers } optimization { optimizer: $optimizer learning_rate: 0.01 }
compression { $fields } silence_seconds: 60 $recovery
JOB
  if [ "$durability" != none ]; then
    rm -rf "$work/state"
    state=(--state_dir "$work/state")
  fi
  for host in $server_hosts; do
    (on "$host" "$bin_dir/server/server" --config "$work/job.textproto" --server "$number" --addresses "$addresses" \
      --threads "$threads" --insecure "${state[@]}") > "$work/server-$number.out" 2> "$work/server-$number.out.err" &
    daemons="$daemons $!"
    await_listening "$work/server-$number.out" $! || return 1
    number=$((number + 1))
  done
  number=0
  for host in $worker_hosts; do
    (on "$host" "$bin_dir/bench/race_worker" --config "$work/job.textproto" --worker "$number" --addresses "$addresses" \
      --tensors "$tensors" --rounds "$rounds" --warm_rounds "$warm_rounds" --compute_seconds "$compute") \
      > "$work/worker-$number.out" 2> "$work/worker-$number.err" &
    pids="$pids $!"
    number=$((number + 1))
  done
  for host in $pids; do wait "$host" || ok=0; done
  checkpoints=$(ls -d "$work"/state/server-*/checkpoint-* 2> /dev/null | grep -v '\.tmp$' | sed 's/.*-0*//' | sort -n | tail -n 1)
  kill $daemons 2> /dev/null
  wait $daemons 2> /dev/null
  [ $ok = 1 ] || { cat "$work"/worker-*.err | grep -v '^[IW][0-9]' | head -n 3 >&2; return 1; }
  cat "$work"/worker-*.out > "$work/result"
}

# Prints the prediction of `thinwire doctor` for the job in $work/job.textproto: host 2, a worker's, measures its link to
# host 1. Argument: topology, codec.
predict() {
  local server
  (on 1 "$bin_dir/cli/thinwire" doctor --insecure --listen 10.77.0.1:7800) > "$work/doctor" 2> "$work/doctor.err" &
  server=$!
  await_listening "$work/doctor" $server || return 1
  (on 2 "$bin_dir/cli/thinwire" doctor --config "$work/job.textproto" --addresses 10.77.0.1:7800 --insecure --json \
    --compute "${compute}s" --parameters $((${tensors%\**} * 1024 * 1024))) > "$work/prediction" || return 1
  kill $server 2> /dev/null
  wait $server 2> /dev/null
  python3 - "$1" "$2" "$work/prediction" << 'PYTHON'
import json
import sys

topology, codec, path = sys.argv[1:]
with open(path) as f:
    report = json.load(f)
own = report["codecs"][0]
for row in report["predictions"]:
    if (row["push"], row["pull"]) == (own["push"], own["pull"]):
        print("predicted %s %s %.1f" % (topology, codec, row["step_ms"]), flush=True)
PYTHON
}

# Prints the result line of a race. Arguments: topology, codec, goodput.
print_result() {
  python3 - "$1" "$2" "$3" "$servers_of_race" "$work/result" "$checkpoints" "${round_trip%ms}" << 'PYTHON'
import json
import statistics
import sys

topology, codec, goodput, servers, path, checkpoints, round_trip_ms = sys.argv[1:]
with open(path) as f:
    workers = [json.loads(line) for line in f]
count, servers = len(workers), int(servers)
push = sum(w["push_bytes"] for w in workers) / count
pull = sum(w["pull_bytes"] for w in workers) / count
if topology == "apart":
    # A worker's link carries its pushes in one direction and its pulls in the other. A server's link carries the
    # server's share of the pushes and pulls of all workers.
    busiest = max(push, pull) * max(1, count / servers)
else:
    # Each host runs a worker and a server. The host sends the pushes of its worker to the servers on other hosts, and
    # the answers of its server to the workers on other hosts.
    busiest = (push + pull) * (1 - 1 / count)
floor = busiest / float(goodput) + int(round_trip_ms) / 1e3
# A round ends when the slowest worker has received its parameters.
rounds = list(map(max, zip(*(w["seconds"] for w in workers))))
median = statistics.median(rounds)
for chosen in workers[0]["push_codecs"]:
    print("choice %s %s %s: %s, %s" % (topology, codec, chosen["group"], chosen["codec"], chosen["reason"]))
print("race %s %s %.1f %.1f %.2f" % (topology, codec, 1e3 * median, 1e3 * floor, median / floor), flush=True)
print("mean %s %s %.1f" % (topology, codec, 1e3 * max(statistics.mean(w["seconds"]) for w in workers)), flush=True)
print("rounds %s %s %.1f %s" % (topology, codec, 1e3 * max(rounds), checkpoints or 0), flush=True)
PYTHON
}

# Starts the program floor_worker.py on all workers' hosts and prints the median of the rounds, each of which ends with its slowest worker.
# The program prints its round times. Arguments: word that names the line, topology, codec; then one list of arguments per host.
run_floor() {
  local name=$1 topology=$2 codec=$3 pids="" number=0 line
  shift 3
  rm -f "$work"/floor-*.out
  for line; do
    (on ${line%% *} /usr/bin/python3 "$root/bench/floor_worker.py" ${line#* } --rounds "$rounds" --compute_seconds "$compute") \
      > "$work/floor-$number.out" 2> "$work/floor-$number.err" &
    pids="$pids $!"
    number=$((number + 1))
  done
  for number in $pids; do wait "$number" || { cat "$work"/floor-*.err >&2; return 1; }; done
  python3 -c 'import json, statistics, sys
rounds = map(max, zip(*(json.loads(line)["seconds"] for line in sys.stdin)))
print("'"$name $topology $codec"' %.1f" % (1e3 * statistics.median(rounds)), flush=True)' < <(cat "$work"/floor-*.out)
}

# Prints what plain TCP takes for the bytes of the last race. Arguments: topology, codec, hosts of the servers, hosts of the workers.
print_tcp() {
  local server worker pids="" lines=() push pull share ok=1
  read -r push pull < <(python3 -c 'import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(*(round(sum(row[key] for row in rows) / len(rows)) for key in ("push_bytes", "pull_bytes")))' < "$work/result")
  share=$(echo $3 | wc -w)
  for server in $3; do
    (on $server /usr/bin/python3 "$root/bench/floor_worker.py" serve --listen "10.77.0.$server:7900") \
      > "$work/tcp-$server" 2> "$work/tcp-$server.err" &
    pids="$pids $!"
    await_listening "$work/tcp-$server" $! || return 1
  done
  for worker in $4; do
    for server in $3; do
      [ "$worker" = "$server" ] || lines+=("$worker tcp --to 10.77.0.$server:7900 --push $((push / share)) --pull $((pull / share)) --connections $tcp_connections")
    done
  done
  run_floor tcp "$1" "$2" "${lines[@]}" || ok=0
  kill $pids 2> /dev/null
  wait $pids 2> /dev/null
  [ $ok = 1 ]
}

# Prints what an all-reduce of the gradients in fp32 takes. Arguments: topology, hosts of the workers.
print_allreduce() {
  local worker rank=0 lines=()
  for worker in $2; do
    lines+=("$worker allreduce --rank $rank --workers $workers --address 10.77.0.${2%% *}:7901 --push $((mb * 1000000))")
    rank=$((rank + 1))
  done
  GLOO_SOCKET_IFNAME=eth0 run_floor allreduce "$1" fp32 "${lines[@]}"
}

# A model of at least 10 MB consists of matrices of 4 MiB. Each matrix is split into four shards of the maximum size.
tensors="$(((mb * 1000000 + 2097152) / 4194304))*1024x1024"
[ "$mb" -ge 10 ] || tensors="10*$((mb * 25))x1000"
failed=0
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc); $rate, round trip $round_trip, $mode, $mb MB, $workers workers, tensors $tensors"
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
    *) echo "race.sh: --topologies: unknown topology (expected apart or together, got $topology)" >&2; exit 64 ;;
  esac
  make_network "$hosts" || { echo "race.sh: cannot create the network namespaces" >&2; exit 69; }
  goodput=$(measure_goodput $measured) || { echo "race.sh: cannot measure the goodput of the link" >&2; exit 1; }
  echo "goodput $topology $(awk "BEGIN { printf \"%.1f\", $goodput * 8 / 1e6 }") Mbit/s each way"
  [ -z "$far" ] || print_allreduce "$topology" "$(echo $worker_hosts)" || failed=1
  for codec in $codecs; do
    if run_job "$(compression "$codec")" "$server_hosts" "$worker_hosts"; then
      print_result "$topology" "$codec" "$goodput"
      [ -z "$far" ] || print_tcp "$topology" "$codec" "$server_hosts" "$worker_hosts" || failed=1
      [ "$doctor" = 0 ] || predict "$topology" "$codec"
    else
      echo "race $topology $codec failed"
      failed=1
    fi
  done
  remove_namespaces $$
done
exit $failed
