"""Fuzzes a live server with random valid and malformed messages, while an honest worker trains at the same server.

    live_server SERVER [--seconds 15] [--seed 1] [--attackers 3] [--memory_mib 1024] [--first_joins 5]

Fails if the server ends, if the honest worker's stream ends, if its parameters differ from those that numpy computes, or if
the server's memory exceeds the limit. For a long run with sanitizers:

    bazel run --config=asan //tests/fuzz:live_server -- --seconds 1800 --memory_mib 4096
"""

import argparse
import collections
import math
import random
import sys
import threading
import time
import warnings

import grpc
import numpy as np

from proto import control_pb2
from tests.fuzz.attacker import WORKERS_OF_ATTACKER, Attacker
from tests.fuzz.mutations import mutate_message
from tests.python_client import codecs
from tests.python_client.client import READ_DELTAS, VERDICTS, Client
from tests.python_client.partition import Tensor, effective_shard_size, partition_hash
from tests.python_client.servers import Servers

TENSORS = [Tensor("w", (90, 70)), Tensor("v", (40, 3)), Tensor("b", (50,))]
LONGEST_ROUND = 150  # in seconds. A new server follows, because mutated steps use up the attackers' worker numbers
RATE = np.float32(0.125)
JOBS = {
    "masters": "push: fp32",
    "deltas": "push: fp32 pull: delta publish_every: 1",
}


def job(compression, workers):
    return f"""
      consistency {{ mode: async workers: {workers} start_timeout_seconds: 0.1 }}
      optimization {{ learning_rate: {RATE} }} compression {{ {compression} }}
    """


class Neighbour(threading.Thread):
    """The honest worker. It is the only worker whose gradients are not 0, so it knows the parameters of every step."""

    def __init__(self, servers, deltas):
        super().__init__(daemon=True)
        self.client = Client(servers.addresses, TENSORS, config=servers.config, timeout=None,
                             read_codec=READ_DELTAS if deltas else codecs.IDS["fp32"])
        self.rng = np.random.default_rng(1)
        self.expected = [self.rng.standard_normal(t.shape).astype(np.float32) for t in TENSORS]
        self.client.join(self.expected)
        self.client.start()
        self.incarnation = self.client.servers[0].joined.incarnation
        self.steps = 0
        self.failure = None
        self.stopping = False

    def run(self):
        try:
            while not self.stopping:
                self._check()
                self._step()
            self._check()
            self.client.leave()
        except Exception as error:  # any failure is a finding
            self.failure = error

    def _check(self):
        for got, expected, tensor in zip(self.client.parameters(), self.expected, TENSORS):
            if not np.array_equal(got, expected):
                raise AssertionError(f"step {self.steps}: {tensor.name} differs from the values that numpy computes")

    def _step(self):
        payloads = []
        for number, shard in enumerate(self.client.shards):
            gradient = self.rng.standard_normal(len(shard.values)).astype(np.float32)
            name = ("fp32", "fp8_e4m3", "topk", "qsgd")[self.steps % 4]
            payloads.append(codecs.encode(name, gradient))
            x = self.client.partition.gather(number, self.expected)
            v = codecs.decode(payloads[-1], len(gradient))
            self.client.partition.scatter(number, x - RATE * (np.float32(1 / 8) * (np.float32(8) * v)), self.expected)
        self.client.push(self.steps, payloads, 8)
        for verdict in self.client.verdicts():
            if verdict.kind != VERDICTS.ACCEPT:
                raise AssertionError(f"step {self.steps}: a push was not accepted: {verdict}")
        self.steps += 1
        time.sleep(0.005)


def watch(servers, neighbour, attackers, options, seconds):
    """Waits until the time is over or a problem appears. Returns the problems and the server's largest memory in MiB."""
    most_memory = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.1)
        if servers.processes[0].poll() is not None:
            return [f"the server ended with code {servers.processes[0].returncode}"], most_memory
        most_memory = max(most_memory, servers.rss_bytes(0) >> 20)
        if most_memory > options.memory_mib:
            return [f"the server uses {most_memory} MiB (expected at most {options.memory_mib})"], most_memory
        if not all(thread.is_alive() for thread in (neighbour, *attackers)):
            return ["a thread ended"], most_memory
    return [], most_memory


def failures(neighbour, attackers, counts):
    """Returns the problems that the threads, which have been told to stop, found."""
    problems = [f"attacker {a.number} failed: {a.failure!r}" for a in attackers if a.failure is not None]
    if neighbour.is_alive():
        problems.append("the honest worker hangs")
    if neighbour.failure is not None:
        problems.append(f"the honest worker failed: {neighbour.failure!r}")
    problems += [f"no {what}: this run tested nothing" for what in ("joined", "verdicts", "parameters") if counts[what] == 0]
    if neighbour.steps < 5:
        problems.append(f"the honest worker made only {neighbour.steps} steps")
    return problems


def fuzz(options, name, seed, seconds):
    """Returns whether the server and the honest worker survived."""
    workers = 1 + options.attackers * WORKERS_OF_ATTACKER
    with Servers(options.server, job(JOBS[name], workers)) as servers:
        neighbour = Neighbour(servers, deltas=name == "deltas")
        stop = threading.Event()
        attackers = [Attacker(f"{seed}/{name}", number, servers.addresses[0], neighbour, stop)
                     for number in range(options.attackers)]
        servers.clients += [neighbour.client, *attackers]
        for thread in [neighbour, *attackers]:
            thread.start()
        problems, most_memory = watch(servers, neighbour, attackers, options, seconds)
        for attacker in attackers if problems else []:
            print(f"attacker {attacker.number} did: {' '.join(attacker.log)}")
        stop.set()
        neighbour.stopping = True
        for thread in [neighbour, *attackers]:
            thread.join(60)
        counts = sum((attacker.counts for attacker in attackers), collections.Counter())
        problems += failures(neighbour, attackers, counts)
        print(f"{name}, seed {seed}: {neighbour.steps} honest steps, at most {most_memory} MiB, "
              + ", ".join(f"{what} {count}" for what, count in sorted(counts.items())), flush=True)
        for problem in problems:
            print("PROBLEM:", problem)
        if problems:
            print(servers.log(0))
    return not problems


def fuzz_first_joins(options, seed):
    """Sends mutated Joins to a server without a model until one of them defines the model. Returns whether it survived."""
    rng = random.Random(seed)
    results = collections.Counter()
    with Servers(options.server, job(JOBS["masters"], 4), ["--memory_budget", str(128 << 20)]) as servers:
        valid = Client(servers.addresses, TENSORS, config=servers.config)
        servers.clients.append(valid)
        control = valid.servers[0].control
        while sum(results.values()) < 200 and results["joined"] == 0:
            request = control_pb2.JoinRequest()
            request.CopyFrom(valid.request)
            for _ in range(rng.choice((1, 2, 3, 10))):
                mutate_message(rng, rng.choice([request, *request.tensors]))
            if rng.random() < 0.9:  # another hash would hide what the server thinks of the tensors
                tensors = [Tensor(tensor.name, tuple(tensor.shape)) for tensor in request.tensors]
                servers_or_1 = request.servers or 1
                size = effective_shard_size(tensors, request.shard_size, servers_or_1)
                request.partition_hash = partition_hash(tensors, size, servers_or_1)
            try:
                control.Join(request, timeout=10)
                results["joined"] += 1
            except grpc.RpcError as error:
                results[str(error.code())] += 1
            if servers.processes[0].poll() is not None or servers.rss_bytes(0) >> 20 > options.memory_mib:
                print(f"PROBLEM: the server ended or uses too much memory after this Join:\n{str(request)[:2000]}")
                return False
        print(f"first joins, seed {seed}: {dict(results)}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="the path of the server program")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--attackers", type=int, default=3)
    parser.add_argument("--memory_mib", type=int, default=1024)
    parser.add_argument("--first_joins", type=int, default=5, help="servers that get mutated first Joins")
    options = parser.parse_args()
    warnings.simplefilter("error")  # protobuf warns of a message that it parses in part
    rounds = math.ceil(options.seconds / (len(JOBS) * LONGEST_ROUND))
    seconds = options.seconds / (len(JOBS) * rounds)
    seeds = range(options.seed, options.seed + rounds)
    good = [fuzz(options, name, seed, seconds) for seed in seeds for name in JOBS]
    good += [fuzz_first_joins(options, f"{options.seed}/{number}") for number in range(options.first_joins)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
