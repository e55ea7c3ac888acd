#!/bin/bash
# Kills a server of one training run at random moments with kill -9, and measures how soon the run goes on. `thinwire
# train` runs the job with a durability and starts the killed servers again. The job (sync with ordered_fold) is run
# twice, first undisturbed. Prints a markdown table of the recoveries and these lines:
#
#   seconds recovery.down      the longest time from a kill until the server listens again
#   seconds recovery.steps     the longest time from listening until some worker has reported two steps. The second step
#                              needs parameters of the restarted server. Workers report at most five steps per second, so
#                              the time until the next step is committed is up to 0.4 s shorter. Limit: --limit
#   checksum                   the checksums of the parameters of both runs, which must be equal with durability: log
#   repeated                   durability: checkpoint: the steps that the workers have repeated
#
#   bench/recovery.sh                          20 kills, about three minutes
#   bench/recovery.sh --kills 5 --seed 7 --model cnn
#   bench/recovery.sh --durability checkpoint  makes a checkpoint every 5 seconds
#
# The programs come from bazel-bin (or --bin_dir). The script leaves no process and no file behind, even if it is
# interrupted. The exit code is 1 if a run fails, the checksums differ or a recovery exceeds the limit (2 seconds).
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
kills=20
seed=1
model=softmax
servers=2
workers=3
limit=2
durability=log

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "recovery.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --kills) kills=$2 ;;
    --seed) seed=$2 ;;
    --model) model=$2 ;;
    --servers) servers=$2 ;;
    --workers) workers=$2 ;;
    --limit) limit=$2 ;;
    --durability) durability=$2 ;;
    *) echo "recovery.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

case $durability in
  log | checkpoint) ;;
  *) echo "recovery.sh: --durability: unknown value (expected log or checkpoint, got $durability)" >&2; exit 64 ;;
esac

for program in cli/thinwire server/server worker/worker; do
  [ -x "$bin_dir/$program" ] && continue
  echo "recovery.sh: $bin_dir/$program: not found (build it with: bazel build //cli:thinwire //server //worker)" >&2
  exit 69
done

echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc); $kills kills, seed $seed, model $model," \
  "$servers servers, $workers workers, durability $durability"
exec python3 /dev/fd/3 "$bin_dir" "$kills" "$seed" "$model" "$servers" "$workers" "$limit" "$durability" 3<<'PYTHON'
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

BIN, KILLS, SEED, MODEL = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
SERVERS, WORKERS, LIMIT, DURABILITY = int(sys.argv[5]), int(sys.argv[6]), float(sys.argv[7]), sys.argv[8]
BATCH, DELAY_MS, STEPS_PER_KILL, EPOCHS = 10, 20, 200, 5
TIMEOUT = 120  # maximum wait for a process, in seconds

# Runs a program and appends its output lines to a file, each with its time. `thinwire train` runs this instead of the
# servers and workers. The program ends with its wrapper, and the wrapper ends like the program, or by SIGKILL.
WRAPPER = """#!/usr/bin/env python3
import ctypes, os, signal, subprocess, sys, time
def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: None)  # the program receives the signal, too
program = sys.argv[0].rsplit("/", 1)[-1]
number = sys.argv[sys.argv.index("--" + program) + 1]
process = subprocess.Popen(["%(bin)s/" + program + "/" + program, *sys.argv[1:]], text=True, stdout=subprocess.PIPE,
                           preexec_fn=die_with_parent)
with open("%(folder)s/lines", "a") as lines:
    print(time.monotonic(), program, number, process.pid, "started", file=lines, flush=True)
    for line in process.stdout:
        print(line, end="", flush=True)
        print(time.monotonic(), program, number, process.pid, line.strip(), file=lines, flush=True)
code = process.wait()
if code < 0:
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(code)
"""


class Failed(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Run:
    """One run of `thinwire train`, and the output lines of its servers and workers."""

    def __init__(self, folder, *flags):
        self.folder, self.read_bytes = folder, 0
        self.pids, self.lines = {}, []  # process ids of the servers by number; (time, program, number, text)
        self.step = 0                   # the largest step that a worker has reported
        os.mkdir(f"{folder}/bin")
        os.mkdir(f"{folder}/tmp")
        for program in ("server", "worker"):
            with open(f"{folder}/bin/{program}", "w") as f:
                f.write(WRAPPER % {"bin": BIN, "folder": folder})
            os.chmod(f"{folder}/bin/{program}", 0o755)
        with open(f"{folder}/job.textproto", "w") as f:
            examples = WORKERS * BATCH * STEPS_PER_KILL * KILLS // EPOCHS
            f.write(f'name: "recovery" servers: {SERVERS} recovery {{ durability: {DURABILITY} checkpoint_seconds: 5 }} '
                    f'consistency {{ mode: sync ordered_fold: true workers: {WORKERS} }} '
                    'optimization { optimizer: momentum learning_rate: 0.01 } '
                    f'task {{ model: {MODEL} train_examples: {min(examples, 60000)} test_examples: 1000 '
                    f'batch_size: {BATCH} epochs: {EPOCHS} }}')
        self.log = open(f"{folder}/train.log", "w")
        self.process = subprocess.Popen(
            [f"{BIN}/cli/thinwire", "train", "--config", f"{folder}/job.textproto", "--bin_dir", f"{folder}/bin",
             "--state_dir", f"{folder}/state", "--report", f"{folder}/report.json", *flags],
            stdout=self.log, stderr=self.log, env={**os.environ, "TMPDIR": f"{folder}/tmp"},
            preexec_fn=die_with_parent)

    def read(self):
        """Returns the new output lines of all processes."""
        path = f"{self.folder}/lines"
        if not os.path.exists(path):
            return []
        with open(path, "rb") as f:
            f.seek(self.read_bytes)
            text = f.read()
        text = text[:text.rfind(b"\n") + 1]
        self.read_bytes += len(text)
        new = []
        for line in text.decode().splitlines():
            at, program, number, pid, line = line.split(" ", 4)
            if program == "server":
                self.pids[int(number)] = int(pid)
            if line.startswith('{') and "step" in (event := json.loads(line)):
                self.step = max(self.step, int(event["step"]["step"]))
            new.append((float(at), program, int(number), line))
        return new

    def wait(self, matches):
        """Waits until MATCHES returns true for an output line, and returns the time of this line."""
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise Failed(f"the run ended early with exit code {self.process.returncode}:\n{self.messages()}")
            self.lines += self.read()
            while self.lines:
                line = self.lines.pop(0)
                if matches(*line):
                    return line[0]
            time.sleep(0.005)
        raise Failed(f"no progress within {TIMEOUT} s:\n{self.messages()}")

    def finish(self):
        """Waits until the run has ended, and returns its report."""
        self.process.wait()
        if self.process.returncode != 0:
            raise Failed(f"exit code {self.process.returncode}:\n{self.messages()}")
        with open(f"{self.folder}/report.json") as f:
            return json.load(f)

    def messages(self):
        with open(f"{self.folder}/train.log") as f:
            return f.read()[-3000:]

    def stop(self):
        self.process.kill()
        self.process.wait()


def recover(run, server):
    """Kills a server. Returns the times until it listens, and from then until a worker has reported two steps."""
    pid = run.pids[server]
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    listening = run.wait(lambda at, program, number, line: program == "server" and number == server and
                         at > killed and line.startswith("listening "))
    reports = {}

    def second_step(at, program, number, line):
        if program != "worker" or at < listening or not line.startswith('{"worker"') or '"step":{' not in line:
            return False
        reports[number] = reports.get(number, 0) + 1
        return reports[number] == 2

    return listening - killed, run.wait(second_step) - listening


def on_signal(number, frame):
    raise SystemExit(128 + number)


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, on_signal)
rng = random.Random(SEED)
down, steps, folders, run = [], [], [], None
try:
    folders.append(tempfile.TemporaryDirectory())
    run = Run(folders[0].name)
    undisturbed = run.finish()
    print(f"undisturbed: {undisturbed['steps']} steps, {undisturbed['seconds']:.1f} s", flush=True)
    folders.append(tempfile.TemporaryDirectory())
    run = Run(folders[1].name, "--restarts", str(KILLS), "--straggler", f"0:{DELAY_MS}ms")
    print("| kill | at step | server | killed until listening, s | listening until two steps, s |\n|---|---|---|---|---|")
    moments = sorted(rng.sample(range(10, int(undisturbed["steps"] * 0.9)), KILLS))
    for kill, moment in enumerate(moments, 1):
        if run.step < moment:
            run.wait(lambda *_: run.step >= moment)
        time.sleep(rng.uniform(0, 0.2))
        server = rng.randrange(SERVERS)
        at_step = run.step
        seconds = recover(run, server)
        down.append(seconds[0])
        steps.append(seconds[1])
        print(f"| {kill} | {at_step} | {server} | {seconds[0]:.2f} | {seconds[1]:.2f} |", flush=True)
    killed = run.finish()
except Failed as failure:
    print(f"failed: {failure}")
    sys.exit(1)
finally:
    if run is not None:
        run.stop()
    for folder in folders:
        folder.cleanup()
crc = [report["final_parameters_crc32c"] for report in (undisturbed, killed)]
print(f"seconds recovery.down {max(down):.2f}\nseconds recovery.steps {max(steps):.2f}")
print(f"checksum undisturbed {crc[0]:08x} killed {crc[1]:08x}, {len(killed['restarts'])} restarts, "
      f"{killed['rejoins']} rejoins, {killed['seconds']:.1f} s")
if DURABILITY == "checkpoint":
    print(f"repeated {killed['repeated_steps']} steps of {WORKERS} workers in {killed['rollbacks']} rollbacks")
same = crc[0] == crc[1] or DURABILITY != "log"
sys.exit(0 if same and max(steps) <= LIMIT and len(killed["restarts"]) == KILLS else 1)
PYTHON
