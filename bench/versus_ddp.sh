#!/bin/bash
# Compares thinwire with PyTorch's DistributedDataParallel (DDP) over gloo, end to end: the same CNN on Fashion-MNIST with the
# same initial values, order of the examples, batches, schedule and optimizer. Two hosts, which are network namespaces, have
# a worker each; with thinwire each has a server too. The links have a limited rate in each direction. Every configuration
# is trained with each seed. The script prints
#
#   versus SYSTEM RATE[+ROUND_TRIP] SECONDS ACCURACY STEP_MS MEGABYTES    means over the seeds, with standard deviations
#
# SECONDS is the time of training without tests, from the first step. ACCURACY is the last test accuracy in per cent. STEP_MS is the
# median step. MEGABYTES is the number of bytes that both hosts sent, with all headers, from the start of the processes to their end.
#
# Systems:
#   ddp, ddp_fp16                     DDP, without and with the hook fp16_compress
#   ddp_powersgd_1, ddp_powersgd_2    DDP with the hook PowerSGD, rank 1 and 2
#   fp32, fp16                        thinwire with the same formats in both directions
#   fp8                               fp8_e5m2 in both directions
#   powersgd_1, powersgd_2            thinwire's powersgd, rank 1 and 2, with deltas in fp8_e5m2
#   topk_1, topk_01                   top 1 % and .1 %, lazy slots, exact deltas, density warm-up over half of the run
#   sparse                            recipe: sparse
#   alone                             thinwire without any exchange during the run: all steps are local, and the models are averaged once
#   diloco_H, diloco_H_F_T            torchft's DiLoCo over gloo: H local steps, F fragments (1 or 2), T local steps of overlap
#   local_H, local_H_F_T              the same with thinwire, in fp8_e5m2 with deltas; local_fp32_H: fp32 in both directions
#   python_SYSTEM                     SYSTEM with workers in Python (DistributedOptimizer) in place of the C++ worker
#   hook_fp32, hook_fp16, hook_fp8    DDP with thinwire's hook (GradientAverage), the formats in both directions
#
#   bench/versus_ddp.sh --python /opt/torch/bin/python3          all systems, 100 Mbit/s and 1 Gbit/s, three seeds: an hour
#   bench/versus_ddp.sh --systems "ddp fp8" --rates 100mbit --seeds "1" --epochs 2 --out DIR
#   bench/versus_ddp.sh --train_examples 2000 --seeds 1          a trial of some minutes
#   bench/versus_ddp.sh --local_steps                            local steps, against torchft's: 10 and 100 Mbit/s, without a round
#                                                                trip and with 100 ms, one seed
#   bench/versus_ddp.sh --round_trips "0ms 100ms"                also hosts at a distance (bazel build //bench:delay_link)
#
# Local steps are plain gradient descent with the rate 0.01, and Nesterov's momentum of 0.5 with the rate 0.7 (--outer_rate) averages them.
# Then STEP_MS is that of a local step with torchft, and of H local steps with thinwire.
#
# --out DIR keeps runs.jsonl, one line per run, and draws DIR/versus_ddp.svg, accuracy against time, with Debian's python3-matplotlib.
#
# Requires root, iproute2 (bench/namespaces.sh), bazel build //server //worker //python, and a Python with torch from PyPI
# (--python), in a folder of its own: python3 -m venv /opt/torch && /opt/torch/bin/pip install torch numpy torchft. The exit code
# is 1 if a run fails; the script still prints the results of the other runs.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
python=/opt/torch/bin/python3
systems="ddp fp32 ddp_fp16 fp16 fp8 ddp_powersgd_1 powersgd_1 ddp_powersgd_2 powersgd_2 topk_1 topk_01"
rates="100mbit 1gbit"
round_trips=0ms
outer_rate=0.7
outer_momentum=0.5
local_rate=0.01
seeds="1 2 3"
epochs=1
train_examples=60000
batch_size=32
learning_rate=0.05
data_dir=/usr/share/datasets/fashion-mnist
out=""

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --local_steps)
      systems="diloco_8 local_fp32_8 local_8 diloco_32 local_fp32_32 local_32 diloco_32_2_4 local_32_2_4"
      rates="10mbit 100mbit" round_trips="0ms 100ms" seeds=1 train_examples=57344  # 28 steps of 32 local steps
      shift
      continue
      ;;
  esac
  [ $# -ge 2 ] || { echo "versus_ddp.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --python) python=$2 ;;
    --systems) systems=$2 ;;
    --rates) rates=$2 ;;
    --round_trips) round_trips=$2 ;;
    --outer_rate) outer_rate=$2 ;;
    --seeds) seeds=$2 ;;
    --epochs) epochs=$2 ;;
    --train_examples) train_examples=$2 ;;
    --batch_size) batch_size=$2 ;;
    --learning_rate) learning_rate=$2 ;;
    --data_dir) data_dir=$2 ;;
    --out) out=$2 ;;
    *) echo "versus_ddp.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

# Prints the settings of a thinwire system as fields of a job. Argument: system.
job_fields() {
  local warm='density_warmup: 0.5 topk_values: fp8_e5m2 pull: delta'
  case $1 in
    fp32) echo 'compression { push: fp32 pull: fp32 }' ;;
    fp16) echo 'compression { push: fp16 pull: fp16 }' ;;
    local_fp32_*) echo 'compression { push: fp32 pull: fp32 }' ;;
    local_*) echo 'compression { push: fp8_e5m2 pull: delta_fp8_e5m2 }' ;;
    fp8) echo 'compression { push: fp8_e5m2 pull: fp8_e5m2 }' ;;
    powersgd_*) echo "compression { push: powersgd powersgd_rank: ${1#powersgd_} topk_values: bf16 shard_size: 262144 pull: delta_fp8_e5m2 }" ;;
    alone) echo '' ;;
    sparse) echo 'compression { recipe: sparse }' ;;
    topk_1) echo "compression { push: topk density: 0.01 $warm }" ;;
    topk_01) echo "compression { push: topk density: 0.001 $warm }" ;;
    *) return 1 ;;
  esac
}
# Sets local, fragments and overlap. Argument: a system with local steps, SYSTEM_H or SYSTEM_H_F_T.
read_local_steps() {
  local rest=${1#diloco_}
  rest=${rest#local_} rest=${rest#fp32_}
  fragments=1 overlap=0
  [[ $rest =~ ^([0-9]+)(_([0-9]+)_([0-9]+))?$ ]] || return 1
  local=${BASH_REMATCH[1]}
  [ -z "${BASH_REMATCH[2]}" ] || fragments=${BASH_REMATCH[3]} overlap=${BASH_REMATCH[4]}
}

needs_torch=0 needed=torch.distributed
for system in $systems; do
  case $system in
    diloco_*) needs_torch=1 needed=torchft ;;&
    diloco_* | local_*)
      read_local_steps "$system" || {
        echo "versus_ddp.sh: --systems: wrong name (expected such as ${system%%_*}_8 or ${system%%_*}_32_2_4, got $system)" >&2
        exit 64
      }
      ;;
    ddp | ddp_fp16 | ddp_powersgd_1 | ddp_powersgd_2 | hook_fp32 | hook_fp16 | hook_fp8) needs_torch=1 ;;
    *)
      case $system in python_*) needs_torch=1 ;; esac
      job_fields "${system#python_}" > /dev/null || {
        echo "versus_ddp.sh: --systems: unknown system (expected one of those that --help lists, got $system)" >&2
        exit 64
      }
      ;;
  esac
done
if [ $needs_torch = 1 ] && ! "$python" -c "import $needed" 2> /dev/null; then
  echo "versus_ddp.sh: --python: cannot import $needed (expected a Python that has it, got $python)" >&2
  exit 69
fi
for program in server/server worker/worker; do
  [ -x "$bin_dir/$program" ] && continue
  echo "versus_ddp.sh: $bin_dir/$program: not found (build it with: bazel build //server //worker)" >&2
  exit 69
done

script=versus_ddp.sh
prefix=twddp-$$
work=$(mktemp -d)
congestion=reno
buffer_limits=()
rate=none
round_trip=0ms
source "$root/bench/namespaces.sh"

# Prints the bytes that both hosts have sent.
sent_bytes() {
  local host sum=0
  for host in 1 2; do sum=$((sum + $(on $host cat /sys/class/net/eth0/statistics/tx_bytes))); done
  echo $sum
}

# Waits for the processes PIDS; fails if one of them does. Copies the lines of the first worker to $work/result.
await_workers() {
  local pid ok=0
  for pid in $1; do wait "$pid" || ok=1; done
  cp "$work/worker-0.out" "$work/result"
  return $ok
}

# Trains in PyTorch. Arguments: method of bench/ddp_worker.py, seed, further flags of the program.
run_torch() {
  local pids="" rank
  for rank in 0 1; do
    (GLOO_SOCKET_IFNAME=eth0 on $((rank + 1)) "$python" "$root/bench/ddp_worker.py" --rank $rank --workers 2 \
      --address 10.77.0.1:7900 --method "$1" --seed "$2" --data_dir "$data_dir" --epochs "$epochs" \
      --batch_size "$batch_size" --train_examples "$train_examples" --learning_rate "$learning_rate" $3 --host 10.77.0.$((rank + 1))) \
      > "$work/worker-$rank.out" 2> "$work/worker-$rank.err" &
    pids="$pids $!"
  done
  await_workers "$pids"
}

# Trains with the C++ workers. Argument: the addresses of the servers.
run_workers() {
  local pids="" number
  for number in 0 1; do
    (on $((number + 1)) "$bin_dir/worker/worker" --config "$work/job.textproto" --worker $number --addresses "$1" --insecure) \
      > "$work/worker-$number.out" 2> "$work/worker-$number.err" &
    pids="$pids $!"
  done
  await_workers "$pids"
}

# Trains with thinwire. Arguments: system, seed.
run_thinwire() {
  local addresses=10.77.0.1:7000,10.77.0.2:7000 number daemons="" ok=0 lazy="" task="" optimizer codecs=${1#python_}
  case $codecs in topk_*) lazy='lazy_slots: true' ;; esac
  case $1 in
    local_*)
      read_local_steps "$1"
      optimizer="optimizer: nesterov momentum: $outer_momentum learning_rate: $outer_rate"
      task="local_steps: $local local_learning_rate: $local_rate fragments: $fragments overlap_steps: $overlap"
      ;;
    alone)
      optimizer='optimizer: sgd learning_rate: 1'
      task="local_steps: $((epochs * ((train_examples / 2 + batch_size - 1) / batch_size)))"
      task="$task local_optimizer: momentum local_learning_rate: $learning_rate"
      ;;
    hook_*) codecs=${1#hook_} optimizer='optimizer: average' ;;
    # The program sets the rate of each step.
    python_*) optimizer="optimizer: momentum momentum: 0.9 learning_rate: $learning_rate $lazy" ;;
    *) optimizer="optimizer: momentum momentum: 0.9 learning_rate: $learning_rate schedule: cosine $lazy" ;;
  esac
  cat > "$work/job.textproto" << JOB
name: "versus" servers: 2 consistency { workers: 2 }
optimization { $optimizer }
$(job_fields "$codecs")
task { model: cnn dataset: fashion_mnist data_dir: "$data_dir" batch_size: $batch_size epochs: $epochs seed: $2 train_examples: $train_examples $task }
JOB
  for number in 0 1; do
    (on $((number + 1)) "$bin_dir/server/server" --config "$work/job.textproto" --server $number \
      --listen 10.77.0.$((number + 1)):7000 --addresses $addresses --insecure) \
      > "$work/server-$number.out" 2> "$work/server-$number.out.err" &
    daemons="$daemons $!"
    await_listening "$work/server-$number.out" $! || return 1
  done
  case $1 in
    hook_* | python_*)
      PYTHONPATH=$bin_dir/python THINWIRE_CONFIG=$work/job.textproto THINWIRE_ADDRESSES=$addresses THINWIRE_INSECURE=1 \
        run_torch "${1%%_*}" "$2" "" || ok=1
      ;;
    *) run_workers $addresses || ok=1 ;;
  esac
  kill $daemons 2> /dev/null
  wait $daemons 2> /dev/null
  return $ok
}

failed=0
echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc); $epochs epochs, $train_examples examples, batches of $batch_size, seeds $seeds"
for rate in $rates; do
  for round_trip in $round_trips; do
    congestion=$([ "$round_trip" = 0ms ] && echo reno || echo cubic)
    make_network 2 || { echo "versus_ddp.sh: cannot create the network namespaces" >&2; exit 69; }
    link=$rate$([ "$round_trip" = 0ms ] || echo "+$round_trip")
    for seed in $seeds; do
      for system in $systems; do
        before=$(sent_bytes)
        case $system in
          ddp*) run_torch "$system" "$seed" "" ;;
          diloco_*)
            read_local_steps "$system"
            run_torch diloco "$seed" "--learning_rate $local_rate --outer_learning_rate $outer_rate --momentum $outer_momentum \
              --local_steps $local --fragments $fragments --overlap_steps $overlap"
            ;;
          *) run_thinwire "$system" "$seed" ;;
        esac || {
          echo "versus $system $link seed $seed failed: $(grep -hv '^[IW][0-9]' "$work"/worker-*.err | tail -n 1)"
          failed=1
          continue
        }
        /usr/bin/python3 "$root/bench/versus_ddp_report.py" add "$work/runs.jsonl" "$system" "$link" "$seed" \
          $(($(sent_bytes) - before)) "$work/result" || failed=1
      done
    done
    remove_namespaces $$
  done
done
if [ -n "$out" ]; then
  mkdir -p "$out" && cp "$work/runs.jsonl" "$out/" || failed=1
fi
/usr/bin/python3 "$root/bench/versus_ddp_report.py" show "$work/runs.jsonl" $out || failed=1
exit $failed
