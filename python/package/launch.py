"""Runs a Python program as the workers of a job on this machine, together with the job's servers (docs/python.md).

    python3 -m thinwire.launch --workers 2 --servers 2 train.py ARGUMENTS

The servers start with the job that worker 0 describes: the job file and the settings of the program. Every line of output
begins with the name of its process. The command ends when all workers have ended; if a process fails, it ends the others.

Exit codes: 0 if all workers ended with 0; otherwise that of the first process that failed; 130 after Ctrl-C.
"""

import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

_POLL_SECONDS = 0.05
_STOP_SECONDS = 15


def _server_program():
    """Returns the path of the server's program: that of the wheel, of a build tree or of the Debian package."""
    package = pathlib.Path(__file__).resolve().parent
    for program in (package / "bin" / "thinwire-server", package.parents[1] / "server" / "server"):
        if program.exists():
            return str(program)
    found = shutil.which("thinwire-server")
    if found is None:
        sys.exit("launch: no server program (expected --server_program, bazel-bin/server/server or thinwire-server, got none)")
    return found


def _free_addresses(count):
    """Returns addresses with ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


class _Processes:
    """The processes of a job. Copies their output line by line."""

    def __init__(self):
        self._processes = []  # pairs of a name and a process
        self._readers = []
        self._lock = threading.Lock()

    def start(self, name, command, environment):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace")
        self._processes.append((name, process))
        reader = threading.Thread(target=self._copy, args=(name, process.stdout), daemon=True)
        reader.start()
        self._readers.append(reader)

    def _copy(self, name, lines):
        for line in lines:
            with self._lock:
                sys.stdout.write(f"{name}: {line}" if line.endswith("\n") else f"{name}: {line}\n")
                sys.stdout.flush()

    def failed(self):
        """Returns the name and the exit code of a process that has failed, or None."""
        for name, process in self._processes:
            if process.poll():
                return name, process.returncode
        return None

    def ended(self, kind):
        """Returns whether all processes whose names begin with KIND have ended."""
        return all(process.poll() is not None for name, process in self._processes if name.startswith(kind))

    def stop(self):
        """Ends all processes, with SIGKILL if SIGTERM does not end them."""
        for _, process in self._processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for _, process in self._processes:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join(1)


def _run(arguments, processes, folder):
    """Starts all processes and returns the exit code of the command."""
    addresses = _free_addresses(arguments.servers)
    job_file = os.path.join(folder, "job.textproto")
    environment = dict(os.environ)
    environment.update({
        "PYTHONUNBUFFERED": "1",
        "THINWIRE_ADDRESSES": ",".join(addresses),
        "THINWIRE_WORKERS": str(arguments.workers),
        "THINWIRE_SERVERS": str(arguments.servers),
    })
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // arguments.workers)))
    if arguments.state_dir:
        environment["THINWIRE_STATE_DIR"] = arguments.state_dir
    for number in range(arguments.workers):
        own = dict(environment, THINWIRE_WORKER=str(number))
        if number == 0:
            own["THINWIRE_WRITE_JOB"] = job_file
        processes.start(f"worker {number}", [sys.executable, arguments.script, *arguments.arguments], own)
    started = False
    while not processes.ended("worker"):
        if not started and os.path.exists(job_file):
            for number in range(arguments.servers):
                command = [arguments.server_program or _server_program(), "--config", job_file, "--server", str(number),
                           "--addresses", ",".join(addresses)]
                if arguments.state_dir:
                    command += ["--state_dir", arguments.state_dir]
                processes.start(f"server {number}", command, dict(os.environ))
            started = True
        if processes.failed():
            break
        time.sleep(_POLL_SECONDS)
    failed = processes.failed()
    if failed is None:
        return 0
    name, code = failed
    print(f"launch: {name} failed with exit code {code}", file=sys.stderr)
    return code if code > 0 else 128 - code


def main():
    parser = argparse.ArgumentParser(prog="python3 -m thinwire.launch", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--workers", type=int, default=1, help="the number of workers (default: 1)")
    parser.add_argument("--servers", type=int, default=1, help="the number of servers (default: 1)")
    parser.add_argument("--state_dir", help="the folder in which servers and workers keep their state (durability)")
    parser.add_argument("--server_program", help="the server's program (default: that of the build or thinwire-server)")
    parser.add_argument("script", help="the Python program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")
    arguments = parser.parse_args()
    for name in ("workers", "servers"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name}: out of range (expected at least 1, got {getattr(arguments, name)})")
    # Ends the processes after SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    processes = _Processes()
    with tempfile.TemporaryDirectory() as folder:
        try:
            code = _run(arguments, processes, folder)
        except KeyboardInterrupt:
            code = 130
        finally:
            processes.stop()
    sys.exit(code)


if __name__ == "__main__":
    main()
