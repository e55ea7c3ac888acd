#!/usr/bin/env python3
"""Measures what an aggregator saves on a slow link (docs/sites.md). Trains the same job twice behind one link of
--bandwidth: with --workers workers of the server, and with as many workers of one site. Prints the payload bytes that
cross the link per step, in each direction, and the mean time of a step.

  bench/sites.py                                    fp32 and fp8 over 100 Mbit/s, about two minutes
  bench/sites.py --bandwidth 20Mbit --latency 40ms --codecs topk:bf16

The programs come from bazel-bin: bazel build //server //worker //cli:thinwire //tests/fault_proxy
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from program import Program, wait_until  # pylint: disable=wrong-import-position

JOB = """
consistency {{ workers: {members} }}
optimization {{ learning_rate: 0.05 }}
compression {{ push: {push} pull: {pull} }}
task {{ model: cnn train_examples: {examples} test_examples: 100 batch_size: 8 }}
"""
SECONDS = 1200  # longer than a run takes


def run(flags, codecs, in_site, folder):
    """Returns the status of the server and the events of a worker, at the end of the run."""
    push, pull = codecs.split(":")
    job = folder / "job.textproto"
    job.write_text(JOB.format(members=1 if in_site else flags.workers, push=push, pull=pull,
                              examples=8 * flags.workers * flags.steps))
    programs = []

    def start(name, program, *arguments):
        programs.append(Program(str(folder), name, [str(ROOT / "bazel-bin" / program), *arguments]))
        return programs[-1]

    try:
        server = start("server", "server/server", "--config", str(job)).address()
        nearest = start("link", "tests/fault_proxy/fault_proxy", "--to", server, "--bandwidth", flags.bandwidth,
                        "--latency", flags.latency).address()
        site = ["--site", "0", "--site_workers", str(flags.workers)] if in_site else []
        if in_site:
            nearest = start("aggregator", "server/server", "--config", str(job), "--addresses", nearest, *site).address()
        workers = [start(f"worker{w}", "worker/worker", "--config", str(job), "--addresses", nearest, "--worker", str(w), *site)
                   for w in range(flags.workers)]
        for worker in workers:
            wait_until(lambda ended=worker.process: ended.poll() is not None, f"{worker.name} does not end", SECONDS)
            if worker.process.returncode != 0:
                raise SystemExit(f"sites.py: {worker.name} failed: {worker.log()[-2000:]}")
        command = [str(ROOT / "bazel-bin/cli/thinwire"), "status", "--json", "--addresses", server]
        status = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return status["servers"][0]["status"], [json.loads(line) for line in workers[0].output().splitlines()]
    finally:
        for program in programs:
            program.process.kill()
            program.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bandwidth", default="100Mbit")
    parser.add_argument("--latency", default="0ms")
    parser.add_argument("--codecs", nargs="+", default=["fp32:fp32", "fp8_e5m2:bf16"], help="PUSH:PULL")
    flags = parser.parse_args()
    print("| push:pull | aggregator | bytes pushed per step | pulled | mean step ms |\n|---|---|---|---|---|")
    for codecs in flags.codecs:
        for in_site in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                status, events = run(flags, codecs, in_site, pathlib.Path(folder))
            steps = [event["step"] for event in events if "step" in event]
            count = int(steps[-1]["step"]) - int(steps[0]["step"])
            milliseconds = 1e3 * (steps[-1]["seconds"] - steps[0]["seconds"]) / count
            print(f"| {codecs} | {'one' if in_site else 'none'} | {int(status['push_payload_bytes']) / flags.steps:,.0f} | "
                  f"{int(status['parameters_payload_bytes']) / flags.steps:,.0f} | {milliseconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
