"""Measures how much the admin ports and ten scrapes a second of every process cost.

    bazel run //tests/admin:scrape_cost -- [--seconds 20] [--rounds 3]

Prints the processor time of one scrape in a process that does nothing else, then the median step time of jobs without
admin ports and of jobs with admin ports and scrapes, which run in turns.
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


def step_seconds(arguments, scraped):
    """Returns the median of the mean step times between two reports, and the number of scrapes."""
    count = 0
    stop = threading.Event()
    with Cluster(arguments.server, arguments.worker, admin=scraped) as cluster:
        wait_until(lambda: last_step(cluster, "worker0")[0] >= 50, "step 50")

        def scrape(address):
            nonlocal count
            while not stop.wait(0.1):
                assert get(address, "/metrics")[0] == 200
                count += 1

        threads = [threading.Thread(target=scrape, args=[address]) for address in cluster.admin.values()]
        for thread in threads:
            thread.start()
        times = []
        before = last_step(cluster, "worker0")
        end = time.monotonic() + arguments.seconds
        while time.monotonic() < end:
            time.sleep(0.5)
            now = last_step(cluster, "worker0")
            if now[0] > before[0]:
                times.append((now[1] - before[1]) / (now[0] - before[0]))
            before = now
        stop.set()
        for thread in threads:
            thread.join()
    return statistics.median(times), count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for name, (scrape, idle) in scrape_seconds(arguments).items():
        print(f"{name}: {scrape * 1e3:.3f} ms of processor time per scrape, {idle * 1e3:.2f} ms per second without scrapes",
              flush=True)
    plain, scraped = [], []
    for number in range(arguments.rounds):
        plain.append(step_seconds(arguments, False)[0])
        step, count = step_seconds(arguments, True)
        scraped.append(step)
        print(f"round {number}: plain {plain[-1] * 1e3:.2f} ms, scraped {step * 1e3:.2f} ms, {count} scrapes", flush=True)
    ratio = statistics.median(scraped) / statistics.median(plain)
    print(f"median step: plain {statistics.median(plain) * 1e3:.2f} ms, "
          f"scraped {statistics.median(scraped) * 1e3:.2f} ms, {100 * (ratio - 1):+.1f} %")


if __name__ == "__main__":
    main()
