"""Measures how much the admin ports and ten scrapes a second of every process cost.

    bazel run //tests/admin:scrape_cost -- [--seconds 20] [--rounds 3]

Runs jobs without admin ports and jobs with admin ports and scrapes, in turns, and prints the median step time of each.
"""

import argparse
import json
import statistics
import threading
import time

from tests.admin.cluster import Cluster, get, wait_until


def last_step(cluster, name):
    """Returns (step, seconds of training) of the last step event of a worker."""
    for line in reversed(cluster.events(name)):
        if line.endswith("}") and '"step":{' in line:
            step = json.loads(line)["step"]
            return int(step["step"]), step["seconds"]
    return 0, 0.0


def measure(arguments, scraped):
    """Returns (the median over half-second windows of the mean step time, the number of scrapes)."""
    count = 0
    stop = threading.Event()
    with Cluster(arguments.server, arguments.worker, admin=scraped) as cluster:
        wait_until(lambda: last_step(cluster, "worker0")[0] >= 100, "step 100")

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
    plain, scraped = [], []
    for number in range(arguments.rounds):
        plain.append(measure(arguments, False)[0])
        step, count = measure(arguments, True)
        scraped.append(step)
        print(f"round {number}: plain {plain[-1] * 1e3:.3f} ms, scraped {step * 1e3:.3f} ms, {count} scrapes", flush=True)
    ratio = statistics.median(scraped) / statistics.median(plain)
    print(f"median step: plain {statistics.median(plain) * 1e3:.3f} ms, "
          f"scraped {statistics.median(scraped) * 1e3:.3f} ms, {100 * (ratio - 1):+.1f} %")


if __name__ == "__main__":
    main()
