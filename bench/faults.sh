#!/bin/bash
# Kills daemons of a real cluster with kill -9 and measures what the others notice: two servers, four workers, one
# process each. Prints a markdown table and one line `seconds faults.NAME VALUE` for each case:
#
#   sync, backup, async   a worker is killed: the longest time after that in which some other worker told no step.
#                         Workers tell at most five steps a second, so 0.2 s is nothing. Want: sync within the lease
#                         and 1 s, the others at once.
#   server                a server is killed: the time until the last worker has exited, and what they said. Want:
#                         within silence_seconds and 1 s.
#
#   bench/faults.sh                      about a minute
#   bench/faults.sh --lease 2 --silence 4 --cases "sync server"
#
# Reads the programs of bazel-bin (or --bin_dir). Leaves no process and no file, also when interrupted. The exit code is
# 1 if a case fails or takes longer than wanted, --tolerance seconds (1) allowed.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
cases="sync backup async server"
lease=5
silence=5
tolerance=1

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "faults.sh: $1: want a value, got none" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --cases) cases=$2 ;;
    --lease) lease=$2 ;;
    --silence) silence=$2 ;;
    --tolerance) tolerance=$2 ;;
    *) echo "faults.sh: $1: unknown; --help tells the flags" >&2; exit 64 ;;
  esac
  shift 2
done

for program in server worker; do
  [ -x "$bin_dir/$program/$program" ] && continue
  echo "faults.sh: no program $bin_dir/$program/$program; bazel build //server //worker" >&2
  exit 69
done

echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc); lease $lease s, silence $silence s"
exec python3 /dev/fd/3 "$bin_dir" "$cases" "$lease" "$silence" "$tolerance" 3<<'PYTHON'
import ctypes
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

BIN, CASES, LEASE, SILENCE, TOLERANCE = sys.argv[1], sys.argv[2].split(), *map(float, sys.argv[3:])
SERVERS, WORKERS, VICTIM = 2, 4, 3
PATIENCE = 60
MODES = {"sync": 'mode: "sync"', "backup": 'mode: "backup" backup: 1', "async": 'mode: "async"',
         "server": 'mode: "sync"'}
WANTED = {"sync": LEASE, "backup": 0, "async": 0, "server": SILENCE}


class Failed(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    """Daemons, and their lines with the time at which each came."""

    def __init__(self, folder):
        self.folder, self.processes, self.lines, self.step = folder, {}, queue.Queue(), {}

    def train(self, mode):
        """Starts a job and waits until every worker is well under way."""
        addresses = []
        for server in range(SERVERS):
            self.start("server", server, f'job: "faults" server: {server} servers: {SERVERS} '
                       f'consistency {{ {MODES[mode]} workers: {WORKERS} lease_seconds: {LEASE} }} '
                       'optimization { learning_rate: 0.001 }')
            _, _, line = self.next(lambda name, line: line.startswith("listening "))
            addresses.append(line.split()[1])
        quoted = ", ".join(f'"{address}"' for address in addresses)
        for worker in range(WORKERS):
            self.start("worker", worker, f'job: "faults" worker: {worker} workers: {WORKERS} '
                       f'servers: [ {quoted} ] silence_seconds: {SILENCE} delay_seconds: 0.02 task {{ '
                       'model: "softmax" train_examples: 6000 test_examples: 100 epochs: 100000 }')
        while len(self.step) < WORKERS or min(self.step.values()) < 20:
            self.next(lambda name, line: True)

    def start(self, program, number, config):
        name = f"{program} {number}"
        path = os.path.join(self.folder, f"{program}-{number}.textproto")
        with open(path, "w") as f:
            f.write(config)
        with open(path + ".log", "w") as log:
            process = subprocess.Popen([os.path.join(BIN, program, program), "--config", path], text=True,
                                       stdout=subprocess.PIPE, stderr=log, preexec_fn=die_with_parent)
        self.processes[name] = process
        threading.Thread(target=self.read, args=(name, process), daemon=True).start()

    def read(self, name, process):
        for line in process.stdout:
            self.lines.put((time.monotonic(), name, line.strip()))
        process.wait()
        self.lines.put((time.monotonic(), name, ""))  # its end

    def next(self, wanted, patience=PATIENCE):
        """The next line that is wanted: (time, name, line); None after PATIENCE."""
        until = time.monotonic() + patience
        while True:
            try:
                at, name, line = self.lines.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                if patience < PATIENCE:
                    return None
                raise Failed(f"nothing came within {PATIENCE} s") from None
            if line.startswith("{"):
                event = json.loads(line)
                if event["event"] == "step":
                    self.step[name] = event["step"]
            if line == "" and self.processes[name].returncode not in (69, -9):
                raise Failed(f"{name} ended with {self.processes[name].returncode}")
            if wanted(name, line):
                return at, name, line

    def kill(self, name):
        self.processes[name].kill()
        return time.monotonic()

    def stop(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()


def worker_dies(cluster):
    """Seconds, and what was said meanwhile."""
    killed = cluster.kill(f"worker {VICTIM}")
    last = {f"worker {w}": killed for w in range(WORKERS) if w != VICTIM}
    longest, said, until = 0, set(), killed + LEASE + TOLERANCE + 2
    while time.monotonic() < until:
        came = cluster.next(lambda name, line: name in last and line.startswith("{"), until - time.monotonic())
        if came is None:
            break
        at, name, line = came
        event = json.loads(line)
        if event["event"] == "waiting" and event["text"]:
            said.add(event["text"].split(": ", 1)[-1])
        if event["event"] == "step" and at > last[name]:
            longest, last[name] = max(longest, at - last[name]), at
    return max([longest] + [until - at for at in last.values()]), said


def server_dies(cluster):
    killed = cluster.kill("server 1")
    left, said, told, last = {f"worker {w}" for w in range(WORKERS)}, set(), killed, killed
    while left:
        at, name, line = cluster.next(lambda name, line: name in left and (line == "" or '"error"' in line))
        if line:
            # One of the workers' messages stands for all: they differ in number and time only.
            said = {json.loads(line)["message"].split(";")[0]}
            told = at
        else:
            left.remove(name)
            last = max(last, at)
    return last - killed, {f"after {told - killed:.2f} s, the last: {text}" for text in said}


def stopped(number, frame):
    raise SystemExit(128 + number)


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, stopped)
figures, ended_well = [], True
print("| killed | mode | seconds | want at most | what the others said |\n|---|---|---|---|---|", flush=True)
for case in CASES:
    if case not in MODES:
        sys.exit(f"faults.sh: case {case}: want {', '.join(MODES)}")
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(folder)
        try:
            cluster.train(case)
            seconds, said = (server_dies if case == "server" else worker_dies)(cluster)
        except Failed as failure:
            print(f"| {case} | failed: {failure} | | | |", flush=True)
            ended_well = False
            continue
        finally:
            cluster.stop()
    most = WANTED[case] + TOLERANCE
    ended_well = ended_well and seconds <= most
    figures.append((case, seconds))
    print("| %s | %s | %.2f | %.2f | %s |" % (
        "a server" if case == "server" else "a worker", "sync" if case == "server" else case, seconds, most,
        "; ".join(sorted(said)) or "nothing"), flush=True)
for case, seconds in figures:
    print(f"seconds faults.{case} {seconds:.2f}")
sys.exit(0 if ended_well else 1)
PYTHON
