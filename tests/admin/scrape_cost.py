"""Measures how much admin ports, scrapes and traces cost a training job.

    bazel run -c opt //tests/admin:scrape_cost -- [--seconds 20] [--rounds 3] [--scrapes 1] [--trace]

Prints the processor time of one scrape in a process that does nothing else. Then runs jobs without admin ports and jobs
with admin ports, whose processes are all scraped --scrapes times a second, in turns. With --trace, the latter also write
traces. Prints the median step time and the processor time per step of both.
"""

import argparse
import json
import os
import signal
import statistics
import threading
import time

from tests.admin.cluster import JOB, Cluster, get, wait_until

SCRAPES = 1000


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def scrape_seconds(arguments):
    """Returns {name: (processor time of one scrape, processor time of one second without scrapes)}."""
    job = JOB.replace("workers: 2 }", "workers: 2 lease_seconds: 600 }")
    results = {}
    with Cluster(arguments.server, arguments.worker, job) as cluster:
        cluster.wait_for_step(50)
        # The other processes wait for the stopped worker and do nothing else.
        cluster.processes["worker1"].send_signal(signal.SIGSTOP)
        wait_until(lambda: cluster.metrics("worker0")["thinwire_worker_wait_seconds"] > 1, "worker 0 waits")
        for name in ("server0", "server1", "worker0"):
            pid = cluster.processes[name].pid
            before, start = processor_seconds(pid), time.monotonic()
            time.sleep(5)
            idle = (processor_seconds(pid) - before) / (time.monotonic() - start)
            before, start = processor_seconds(pid), time.monotonic()
            for _ in range(SCRAPES):
                assert cluster.get(name, "/metrics")[0] == 200
            used = processor_seconds(pid) - before - idle * (time.monotonic() - start)
            results[name] = (used / SCRAPES, idle)
        cluster.processes["worker1"].send_signal(signal.SIGCONT)
    return results


def last_step(cluster, name):
    """Returns (step, seconds of training) of the last step event of a worker."""
    for line in reversed(cluster.events(name)):
        if line.endswith("}") and '"step":{' in line:
            step = json.loads(line)["step"]
            return int(step["step"]), step["seconds"]
    return 0, 0.0


def run(arguments, watched):
    """Returns (median of the mean step times between two reports, processor seconds of all processes per step)."""
    stop = threading.Event()
    with Cluster(arguments.server, arguments.worker, admin=watched, trace=watched and arguments.trace) as cluster:
        wait_until(lambda: last_step(cluster, "worker0")[0] >= 50, "step 50")

        def scrape(address):
            while not stop.wait(1 / arguments.scrapes):
                assert get(address, "/metrics")[0] == 200

        def used():
            return sum(processor_seconds(process.pid) for process in cluster.processes.values())

        threads = [threading.Thread(target=scrape, args=[address]) for address in cluster.admin.values()]
        for thread in threads:
            thread.start()
        times = []
        used_before = used()
        first = before = last_step(cluster, "worker0")
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            time.sleep(0.5)
            now = last_step(cluster, "worker0")
            if now[0] > before[0]:
                times.append((now[1] - before[1]) / (now[0] - before[0]))
            before = now
        per_step = (used() - used_before) / (before[0] - first[0])
        stop.set()
        for thread in threads:
            thread.join()
    return statistics.median(times), per_step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scrapes", type=float, default=1, help="scrapes of each process per second")
    parser.add_argument("--trace", action="store_true", help="the watched jobs also write traces")
    arguments = parser.parse_args()
    for name, (scrape, idle) in scrape_seconds(arguments).items():
        print(f"{name}: {scrape * 1e3:.3f} ms of processor time per scrape, {idle * 1e3:.2f} ms per second without scrapes",
              flush=True)
    rounds = []
    for number in range(arguments.rounds):
        # The order changes from round to round, so that a trend of the machine does not favor one side.
        order = (False, True) if number % 2 == 0 else (True, False)
        results = {watched: run(arguments, watched) for watched in order}
        rounds.append((results[False], results[True]))
        print(f"round {number}: " + ", ".join(
            f"{name} {results[watched][0] * 1e3:.2f} ms, {results[watched][1] * 1e3:.2f} ms of processor time"
            for watched, name in ((False, "plain"), (True, "watched"))), flush=True)
    for i, name in enumerate(("median step", "processor time per step")):
        plain, watched = (statistics.median(side[i] for side in sides) for sides in zip(*rounds))
        ratios = sorted(with_it[i] / without[i] for without, with_it in rounds)
        print(f"{name}: plain {plain * 1e3:.2f} ms, watched {watched * 1e3:.2f} ms, {100 * (watched / plain - 1):+.1f} % "
              f"(rounds {100 * (ratios[0] - 1):+.1f} to {100 * (ratios[-1] - 1):+.1f} %)")


if __name__ == "__main__":
    main()
