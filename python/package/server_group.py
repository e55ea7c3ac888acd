"""Runs the servers of a job for worker 0 (hosting.py). Standard input has the job file, as _client.job_text writes it.

    python3 -m thinwire.server_group --parent 4711 --listen 127.0.0.1 < job.textproto

Prints one line of JSON: {"ports": [4001, 4002]} when all servers listen, or {"error": "server 1 ..."} if one fails before.
Ends the servers after SIGTERM, and as soon as the parent process has ended, in whatever way.

Warnings and errors of the servers go to standard error. A server that fails later is reported there with the last lines of
its log. The others continue, so that the workers name the server that they have lost.
"""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time

from thinwire._client import Error
from thinwire.processes import POLL_SECONDS, Processes, end_text, number_in, server_program


class _Group:
    def __init__(self, arguments: argparse.Namespace):
        self._arguments = arguments
        self._ports: dict[str, int] = {}  # by the name of the server
        self._processes = Processes(self._receive)

    def start(self, job_file: str, count: int) -> list[int]:
        """Starts COUNT servers and returns their ports. Errors: Error if a server fails; SystemExit as _wait()."""
        addresses = ["127.0.0.1:0"] * count
        for number in reversed(range(count)):  # server 0 calls the others
            name = f"server {number}"
            self._processes.start(name, self._command(job_file, number, addresses))
            while name not in self._ports:
                for failed, code in self._processes.failures():
                    raise Error(": ".join([f"{failed} {end_text(code)}", *self._processes.last_lines(failed)[-1:]]))
                self._wait()
            addresses[number] = f"127.0.0.1:{self._ports[name]}"
        return [self._ports[f"server {number}"] for number in range(count)]

    def watch(self) -> None:
        """Reports servers that fail. Errors: SystemExit as _wait()."""
        reported: set[str] = set()
        while True:
            for name, code in self._processes.failures():
                if name not in reported:
                    reported.add(name)
                    lines = [f"thinwire: {name} {end_text(code)}; its log ends with:", *self._processes.last_lines(name)]
                    print("\n  ".join(lines), file=sys.stderr, flush=True)
            self._wait()

    def stop(self) -> None:
        self._processes.stop()

    def _wait(self) -> None:
        """Sleeps for a moment. Errors: SystemExit if the parent process has ended."""
        if os.getppid() != self._arguments.parent:
            sys.exit()
        time.sleep(POLL_SECONDS)

    def _receive(self, name: str, line: str) -> None:
        if line.startswith("listening "):
            self._ports[name] = int(line.rpartition(":")[2])
        elif not re.match(r"I\d{4}", line):  # a line of the severity INFO
            print(f"{name}: {line}", file=sys.stderr, flush=True)

    def _command(self, job_file: str, number: int, addresses: list[str]) -> list[str]:
        arguments = self._arguments
        command = [server_program(), "--config", job_file, "--server", str(number), "--listen", f"{arguments.listen}:0"]
        if number == 0:
            command += ["--addresses", ",".join(addresses)]
        if arguments.state_dir:
            command += ["--state_dir", arguments.state_dir]
        if arguments.credentials:
            command += ["--credentials", os.path.join(arguments.credentials, f"server-{number}")]
        if arguments.insecure:
            command.append("--insecure")
        return command


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m thinwire.server_group", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parent", type=int, required=True, help="the process with which the servers end")
    parser.add_argument("--listen", required=True, help="the host to listen on; each server takes a free port")
    parser.add_argument("--credentials", help="the folder with the credentials folders server-0, server-1, ...")
    parser.add_argument("--insecure", action="store_true", help="listens for other machines without credentials")
    parser.add_argument("--state_dir", help="the folder in which the servers keep their state")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit())
    job = sys.stdin.read()
    group = _Group(arguments)
    with tempfile.TemporaryDirectory() as folder:
        job_file = os.path.join(folder, "job.textproto")
        with open(job_file, "w", encoding="utf-8") as file:
            file.write(job)
        try:
            print(json.dumps({"ports": group.start(job_file, number_in(job, "servers"))}), flush=True)
            group.watch()
        except Error as error:
            print(json.dumps({"error": str(error)}), flush=True)
        finally:
            group.stop()


if __name__ == "__main__":
    main()
