"""Trains small jobs with real processes behind fault proxies, and injects faults that it draws from a seed.

    chaos --server SERVER --worker WORKER --proxy FAULT_PROXY [--seconds 30] [--seed 1] [--kill_servers]

Runs one job after another until SECONDS have passed. In each job, workers are killed (kill -9) and started again,
workers and servers are suspended (SIGSTOP), and connections are cut, half-open, reset and slowed down. Then all faults
end, and every worker must finish with exit code 0. The parameters must be finite, the test accuracy usual, and no
accepted gradient may exceed the staleness bound of its mode. The last line is the result. Job number N uses seed
SEED + N, so this command repeats a failure:

    bazel run //tests:chaos -- --seconds 1 --seed SEED_OF_THE_JOB

The faults and their times follow from the seed; the order of the messages does not.
"""

import argparse
import heapq
import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import grpc
import numpy as np

from proto import control_pb2, control_pb2_grpc
from tests.program import Failed, Program

SERVERS, WORKERS = 2, 3
MODES = {"sync": "mode: sync", "backup": "mode: backup backup: 1", "ssp": "mode: ssp slack: 2", "async": "mode: async"}
# The largest staleness of an accepted gradient. In ssp, each other worker pushes at most 2 * slack + 1 steps meanwhile.
MOST_STALENESS = {"sync": 0, "backup": 0, "ssp": (WORKERS - 1) * (2 * 2 + 1), "async": None}
FAULT_SECONDS = 8  # the time of faults in each job
END_SECONDS = 90  # a job without faults that takes longer than this hangs
LEAST_ACCURACY = 0.5
VALUES = 7850  # of the model softmax


class Cluster:
    """The processes of one job. A context manager: at its end, no process is left."""

    def __init__(self, options, seed):
        self.options = options
        self.random = random.Random(seed)
        self.mode = self.random.choice(list(MODES))
        self.folder = tempfile.mkdtemp(prefix="thinwire-chaos-")
        self.servers, self.workers, self.proxies = [None] * SERVERS, [None] * WORKERS, {}
        self.addresses = ["127.0.0.1:0"] * SERVERS
        self.busy = set()  # names of processes with a fault
        self.counts = {}  # number of faults by name
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for program in self.programs:
            program.signal(signal.SIGCONT)
            program.signal(signal.SIGKILL)
            program.process.wait()
        if kind is not None:
            for program in [*self.servers, *self.workers]:
                if program is not None:
                    print(f"--- {program.name}: exit code {program.process.returncode}\n{program.log()[-2000:]}"
                          f"{program.output()[-500:]}")
        shutil.rmtree(self.folder)

    def start(self):
        durability = "recovery { durability: log }" if self.options.kill_servers else ""
        self.job = os.path.join(self.folder, "job.textproto")
        with open(self.job, "w", encoding="utf-8") as file:
            file.write(f'name: "chaos" servers: {SERVERS} silence_seconds: 20 {durability} '
                       f"consistency {{ {MODES[self.mode]} workers: {WORKERS} lease_seconds: 2 "
                       "start_timeout_seconds: 60 } "
                       "optimization { learning_rate: 0.02 } "
                       "task { model: softmax train_examples: 3000 test_examples: 500 batch_size: 50 epochs: 18 }")
        for number in reversed(range(SERVERS)):
            self.start_server(number)
        for worker, server in itertools.product(range(WORKERS), range(SERVERS)):
            self.proxies[worker, server] = self.run(
                f"proxy{worker}{server}", [self.options.proxy, "--to", self.addresses[server], "--slice", "1400"],
                commands=True)
        for worker in range(WORKERS):
            self.start_worker(worker)

    def run(self, name, arguments, commands=False):
        program = Program(self.folder, name, arguments, commands)
        self.programs.append(program)
        return program

    def start_server(self, number):
        arguments = [self.options.server, "--config", self.job, "--server", str(number), "--listen",
                     self.addresses[number]]
        if number == 0:
            # The lead does not use its own address, but the list must not have port 0.
            known = [address if not address.endswith(":0") else "127.0.0.1:1" for address in self.addresses]
            arguments += ["--addresses", ",".join(known)]
        if self.options.kill_servers:
            arguments += ["--state_dir", os.path.join(self.folder, "state")]
        self.servers[number] = self.run(f"server{number}", arguments)
        self.addresses[number] = self.servers[number].address()

    def start_worker(self, number):
        addresses = [self.proxies[number, server].address() for server in range(SERVERS)]
        self.workers[number] = self.run(
            f"worker{number}", [self.options.worker, "--config", self.job, "--worker", str(number), "--addresses",
                                ",".join(addresses), "--delay", "15ms"])

    def inject(self):
        """Begins a random fault. Returns (seconds, function): the fault's duration and the function that ends it."""
        faults = ["kill_worker", "stop_worker", "stop_server", "cut", "half_open", "slow", "reset"]
        if self.options.kill_servers:
            faults += ["kill_server"] * 2
        fault = self.random.choice(faults)
        server, worker = self.random.randrange(SERVERS), self.random.randrange(WORKERS)
        seconds = self.random.uniform(0.2, 3)
        cut = self.random.choice(["cut up", "cut down", "cut both"])
        program = self.servers[server] if fault.endswith("server") else self.workers[worker]
        if program.name in self.busy:
            return None
        proxies = [self.proxies[worker, number] for number in range(SERVERS)]

        def tell(*commands):
            for proxy in proxies:
                for command in commands:
                    proxy.command(command)

        def kill():
            if program.process.poll() is None:
                program.signal(signal.SIGKILL)
                program.process.wait()
                program.killed = True

        def restart():
            if program.killed:
                self.start_server(server) if fault == "kill_server" else self.start_worker(worker)

        begin, end = {
            "kill_worker": (kill, restart),
            "kill_server": (kill, restart),
            "stop_worker": (lambda: program.signal(signal.SIGSTOP), lambda: program.signal(signal.SIGCONT)),
            "stop_server": (lambda: program.signal(signal.SIGSTOP), lambda: program.signal(signal.SIGCONT)),
            "cut": (lambda: tell(cut), lambda: tell("restore")),
            "half_open": (lambda: tell("half-open"), lambda: tell("restore")),
            "slow": (lambda: tell("latency 100ms", "bandwidth 2Mbit"),
                     lambda: tell("latency 0s", "bandwidth unlimited")),
            "reset": (lambda: tell("reset"), lambda: None),
        }[fault]
        begin()
        self.busy.add(program.name)
        self.counts[fault] = self.counts.get(fault, 0) + 1

        def finish():
            end()
            self.busy.discard(program.name)

        return seconds, finish

    def check_running(self):
        """Raises Failed if a process ended by itself with an error."""
        for program in [*self.servers, *self.workers]:
            code = program.process.poll()
            if code is None or program.killed or (code == 0 and program in self.workers):
                continue
            raise Failed(f"{program.name} ended with code {code}")

    def run_faults(self):
        """Injects faults until FAULT_SECONDS after all workers have begun to train."""
        end = time.monotonic() + END_SECONDS
        while not all('"step"' in worker.output() for worker in self.workers):
            self.check_running()
            if time.monotonic() > end:
                raise Failed("the job does not begin")
            time.sleep(0.05)
        end = time.monotonic() + FAULT_SECONDS
        next_fault, order, active = time.monotonic(), itertools.count(), []
        while time.monotonic() < end or active:
            now = time.monotonic()
            if next_fault <= now < end:
                next_fault = now + self.random.uniform(0.2, 1.2)
                begun = self.inject()
                if begun is not None:
                    heapq.heappush(active, (now + begun[0], next(order), begun[1]))
            while active and (active[0][0] <= now or now >= end):
                heapq.heappop(active)[2]()
            self.check_running()
            time.sleep(0.05)

    def wait_for_end(self):
        """Waits until all workers have finished. Returns the test accuracies."""
        end = time.monotonic() + END_SECONDS
        while any(worker.process.poll() is None for worker in self.workers):
            self.check_running()
            if time.monotonic() > end:
                hanging = [worker.name for worker in self.workers if worker.process.poll() is None]
                raise Failed(f"{', '.join(hanging)} did not finish within {END_SECONDS} s")
            time.sleep(0.05)
        self.check_running()
        accuracies = []
        for worker in self.workers:
            events = [json.loads(line) for line in worker.output().splitlines() if line.startswith("{")]
            done = next((event["done"] for event in events if "done" in event), None)
            if done is None:
                raise Failed(f"{worker.name} did not report that it is done")
            if "final_test_accuracy" in done:
                accuracies.append(done["final_test_accuracy"])
        return accuracies

    def check_result(self, accuracies):
        """Checks the final parameters, the accuracy and the staleness of all pushes. Returns the number of pushes."""
        values, pushes = [], 0
        for address in self.addresses:
            with grpc.insecure_channel(address) as channel:
                control = control_pb2_grpc.ControlStub(channel)
                status = control.Status(control_pb2.StatusRequest(), timeout=30)
                chunks = control.Masters(control_pb2.MastersRequest(), timeout=30)
                values += [np.frombuffer(chunk.values, dtype="<f4") for chunk in chunks]
            pushes += status.accepted_pushes
            most, worst = MOST_STALENESS[self.mode], max(status.staleness, default=0)
            if most is not None and worst > most:
                raise Failed(f"mode {self.mode}: wrong staleness (expected at most {most}, got {worst})")
        values = np.concatenate(values)
        if values.size != VALUES or not np.isfinite(values).all() or not values.any():
            raise Failed(f"wrong parameters (expected {VALUES} finite values, got {values.size})")
        if not accuracies or min(accuracies) < LEAST_ACCURACY:
            raise Failed(f"wrong test accuracy (expected at least {LEAST_ACCURACY}, got {accuracies})")
        if pushes == 0:
            raise Failed("no push was accepted")
        return pushes

    def stop(self):
        for program in [*self.servers, *self.proxies.values()]:
            program.signal(signal.SIGTERM)
        for program in [*self.servers, *self.proxies.values()]:
            if program.process.wait(30) != 0:
                raise Failed(f"{program.name} ended with code {program.process.returncode} after SIGTERM")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--proxy", required=True)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill_servers", action="store_true", help="kills servers too, with durability: log")
    options = parser.parse_args()
    end, job_count, fault_count = time.monotonic() + options.seconds, 0, 0
    while job_count == 0 or time.monotonic() < end:
        seed = options.seed + job_count
        with Cluster(options, seed) as cluster:
            try:
                cluster.start()
                cluster.run_faults()
                accuracies = cluster.wait_for_end()
                pushes = cluster.check_result(accuracies)
                cluster.stop()
            except Failed as failure:
                print(f"seed {seed}, mode {cluster.mode}, faults {cluster.counts}: {failure}", flush=True)
                print(f"chaos: failed; repeat it with: --seconds 1 --seed {seed}")
                raise
        print(f"seed {seed}: mode {cluster.mode}, {pushes} pushes, accuracy {accuracies}, faults {cluster.counts}",
              flush=True)
        job_count += 1
        fault_count += sum(cluster.counts.values())
    if fault_count == 0:
        sys.exit("chaos: failed: no fault was injected")
    last = options.seed + job_count - 1
    print(f"chaos: passed; {job_count} jobs, {fault_count} faults, seeds {options.seed} to {last}")


if __name__ == "__main__":
    main()
