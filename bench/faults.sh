#!/bin/bash
# Kills a process of a real cluster with kill -9 and measures the effect on the other processes. The cluster has two
# servers and four workers, one process each. Prints a markdown table and one line `seconds faults.NAME VALUE` per case:
#
#   sync, backup, async   A worker is killed. The figure is the longest time, after the kill, in which one of the other
#                         workers reports no step. Workers report at most five steps per second, so 0.2 s means no
#                         delay. Limit: in sync, the lease plus the tolerance; in backup and async, the tolerance.
#   server                A server is killed. The figure is the time until the last worker has exited. The table shows
#                         the last error message of a worker. Limit: silence_seconds plus the tolerance.
#   return                With durability: log, a server is killed and started again, then the lead. The figure is the
#                         longest time from "listening" to the next step of a worker. Limit: 1 s plus the tolerance.
#
#   bench/faults.sh                      all cases, about a minute
#   bench/faults.sh --lease 2 --silence 4 --cases "sync server"
#
# The programs come from bazel-bin (or --bin_dir). The script leaves no process and no file behind, even if it is
# interrupted. The exit code is 1 if a case fails or exceeds its limit. --tolerance (default: 1 second) is part of each
# limit.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
cases="sync backup async server return"
lease=5
silence=5
tolerance=1

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "faults.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --cases) cases=$2 ;;
    --lease) lease=$2 ;;
    --silence) silence=$2 ;;
    --tolerance) tolerance=$2 ;;
    *) echo "faults.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

for program in server worker; do
  [ -x "$bin_dir/$program/$program" ] && continue
  echo "faults.sh: $bin_dir/$program/$program: not found (build it with: bazel build //server //worker)" >&2
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
SERVERS, WORKERS, KILLED_WORKER = 2, 4, 3
TIMEOUT = 60  # maximum wait for an output line, in seconds
MODES = {"sync": "mode: sync", "backup": "mode: backup backup: 1", "async": "mode: async", "server": "mode: sync",
         "return": "mode: sync"}
LIMITS = {"sync": LEASE, "backup": 0, "async": 0, "server": SILENCE, "return": 1}
KILLED = {"server": "a server", "return": "a server, then the lead; both return"}  # default: a worker


class Failed(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    """The server and worker processes, and a queue of their output lines with arrival times."""

    def __init__(self, folder):
        self.folder, self.processes, self.lines, self.step = folder, {}, queue.Queue(), {}

    def train(self, mode):
        """Starts a job and waits until every worker has finished 20 steps."""
        self.job = os.path.join(self.folder, "job.textproto")
        with open(self.job, "w") as f:
            f.write(f'name: "faults" servers: {SERVERS} silence_seconds: {SILENCE} '
                    f'consistency {{ {MODES[mode]} workers: {WORKERS} lease_seconds: {LEASE} }} '
                    'optimization { learning_rate: 0.001 } '
                    'task { model: softmax train_examples: 6000 test_examples: 100 epochs: 100000 } '
                    + ("recovery { durability: log }" if mode == "return" else ""))
        self.flags = ["--state_dir", os.path.join(self.folder, "state")] if mode == "return" else []
        self.addresses = ["127.0.0.1:0"] * SERVERS
        for server in reversed(range(SERVERS)):  # server 0 needs the addresses of the others
            self.listen(server)
        for worker in range(WORKERS):
            self.start("worker", worker, "--config", self.job, "--worker", str(worker),
                       "--addresses", ",".join(self.addresses), "--delay", "20ms")
        while len(self.step) < WORKERS or min(self.step.values()) < 20:
            self.next(lambda name, line: True)

    def listen(self, server):
        """Starts a server at its address. Returns the time of its line "listening"."""
        peers = ["--addresses", ",".join(self.addresses)] if server == 0 else []
        self.start("server", server, "--config", self.job, "--server", str(server), "--listen", self.addresses[server],
                   *peers, *self.flags)
        at, _, line = self.next(lambda name, line: line.startswith("listening "))
        self.addresses[server] = line.split()[1]
        return at

    def start(self, program, number, *flags):
        name = f"{program} {number}"
        with open(os.path.join(self.folder, f"{program}-{number}.log"), "w") as log:
            process = subprocess.Popen([os.path.join(BIN, program, program), *flags], text=True,
                                       stdout=subprocess.PIPE, stderr=log, preexec_fn=die_with_parent)
        self.processes[name] = process
        threading.Thread(target=self.read, args=(name, process), daemon=True).start()

    def read(self, name, process):
        for line in process.stdout:
            self.lines.put((time.monotonic(), name, line.strip()))
        process.wait()
        self.lines.put((time.monotonic(), name, ""))  # an empty line means that process NAME has exited

    def next(self, matches, timeout=TIMEOUT):
        """Returns the next matching line as (time, name, line). Without one, returns None after a TIMEOUT shorter than
        the default, and raises Failed after the default."""
        until = time.monotonic() + timeout
        while True:
            try:
                at, name, line = self.lines.get(timeout=max(0, until - time.monotonic()))
            except queue.Empty:
                if timeout < TIMEOUT:
                    return None
                raise Failed(f"no output from any process within {TIMEOUT} s") from None
            if line.startswith("{"):
                event = json.loads(line)
                if "step" in event:
                    self.step[name] = int(event["step"]["step"])
            if line == "" and self.processes[name].returncode not in (69, -9):
                raise Failed(f"{name} exited with {self.processes[name].returncode}")
            if matches(name, line):
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
    """Kills a worker. Returns the longest time between two steps of one of the other workers, and the texts of
    "waiting" events."""
    killed = cluster.kill(f"worker {KILLED_WORKER}")
    last = {f"worker {w}": killed for w in range(WORKERS) if w != KILLED_WORKER}
    longest, messages, until = 0, set(), killed + LEASE + TOLERANCE + 2
    while time.monotonic() < until:
        came = cluster.next(lambda name, line: name in last and line.startswith("{"), until - time.monotonic())
        if came is None:
            break
        at, name, line = came
        event = json.loads(line)
        if "waiting" in event and event["waiting"]["text"]:
            messages.add(event["waiting"]["text"].split(": ", 1)[-1])
        if "step" in event and at > last[name]:
            longest, last[name] = max(longest, at - last[name]), at
    return max([longest] + [until - at for at in last.values()]), messages


def server_dies(cluster):
    """Kills a server. Returns the time until the last worker has exited, and the last error message."""
    killed = cluster.kill("server 1")
    running, messages, reported, last = {f"worker {w}" for w in range(WORKERS)}, set(), killed, killed
    while running:
        at, name, line = cluster.next(lambda name, line: name in running and (line == "" or '"error"' in line))
        if line:
            # The workers' error messages differ only in the worker number and the time; the table shows the last
            # message.
            messages = {json.loads(line)["error"]["message"].split(";")[0]}
            reported = at
        else:
            running.remove(name)
            last = max(last, at)
    return last - killed, {f"last message, after {reported - killed:.2f} s: {text}" for text in messages}


def servers_return(cluster):
    """Kills each server and starts it again. Returns the longest time from "listening" to a worker's next step, and a
    message per server."""
    longest, messages = 0, set()
    for server in (1, 0):
        killed = cluster.kill(f"server {server}")
        while cluster.next(lambda name, line: (name, line) == (f"server {server}", "")) is None:
            pass
        # An outage of three seconds. All steps that were reported before it have arrived when it ends.
        while cluster.next(lambda name, line: False, max(0, killed + 3 - time.monotonic())) is not None:
            pass
        before = dict(cluster.step)
        at = cluster.listen(server)
        last = at
        while any(cluster.step[name] <= before[name] for name in before):
            last, _, _ = cluster.next(lambda name, line: '"step"' in line)
        messages.add(f"server {server}: {last - at:.2f} s")
        longest = max(longest, last - at)
    return longest, messages


def on_signal(number, frame):
    raise SystemExit(128 + number)


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, on_signal)
figures, passed = [], True
print("| killed | mode | seconds | limit | messages of the other processes |\n|---|---|---|---|---|", flush=True)
for case in CASES:
    if case not in MODES:
        sys.exit(f"faults.sh: --cases: unknown case (expected {', '.join(MODES)}, got {case})")
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(folder)
        try:
            cluster.train(case)
            seconds, messages = {"server": server_dies, "return": servers_return}.get(case, worker_dies)(cluster)
        except Failed as failure:
            print(f"| {case} | failed: {failure} | | | |", flush=True)
            passed = False
            continue
        finally:
            cluster.stop()
    limit = LIMITS[case] + TOLERANCE
    passed = passed and seconds <= limit
    figures.append((case, seconds))
    print("| %s | %s | %.2f | %.2f | %s |" % (
        KILLED.get(case, "a worker"), "sync" if case in KILLED else case, seconds, limit,
        "; ".join(sorted(messages)) or "none"), flush=True)
for case, seconds in figures:
    print(f"seconds faults.{case} {seconds:.2f}")
sys.exit(0 if passed else 1)
PYTHON
