"""The processes of a job on this machine: the server's program, and child processes that never outlive their parent."""

import collections
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from thinwire._client import Error

POLL_SECONDS = 0.05  # the interval at which parents look at their processes

STOP_SECONDS = 10  # between SIGTERM and SIGKILL
_TAIL_LINES = 5
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl  # found here, since a new child process should do as little as possible


def server_program() -> str:
    """Returns the path of the server's program: that of the wheel, of a build tree or of the Debian package."""
    package = pathlib.Path(__file__).resolve().parent
    for program in (package / "bin" / "thinwire-server", package.parents[1] / "server" / "server"):
        if program.exists():
            return str(program)
    found = shutil.which("thinwire-server")
    if found is None:
        raise Error("servers: no server program (expected bazel-bin/server/server or thinwire-server, got none)")
    return found


def number_in(job: str, name: str) -> int:
    """Returns the value of the whole number NAME in the text JOB of a job, which has all fields, as _client.job_text writes it."""
    found = re.search(rf"^ *{name}: (\d+)$", job, re.MULTILINE)
    assert found is not None, "job_text() writes all fields"
    return int(found.group(1))


def end_text(code: int) -> str:
    """Returns how a process with the return code CODE has ended, such as "failed with exit code 7"."""
    return f"failed with exit code {code}" if code > 0 else f"was killed by signal {-code}"


def _end_with(parent: int) -> None:
    """Lets the kernel kill this process when the thread of PARENT that has started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent ended before the call, of which the kernel would never tell
        os._exit(1)


class Processes:
    """Child processes with names. The kernel kills them if this process ends without stop().

    Only the main thread calls start(), since the kernel kills the children of a thread that ends.
    """

    def __init__(self, receive: Callable[[str, str], None]):
        """RECEIVE(name, line) takes the lines of output, without their ends, from several threads, one after the other."""
        self._processes: dict[str, subprocess.Popen[str]] = {}  # by name, in the order of their starts
        self._readers: dict[str, threading.Thread] = {}
        self._tails: dict[str, collections.deque[str]] = {}
        self._receive = receive
        self._lock = threading.Lock()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        parent = os.getpid()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   errors="replace", preexec_fn=lambda: _end_with(parent))
        self._processes[name] = process
        self._tails[name] = collections.deque(maxlen=_TAIL_LINES)
        self._readers[name] = threading.Thread(target=self._read, args=(name, process.stdout), daemon=True)
        self._readers[name].start()

    def _read(self, name: str, lines: IO[str]) -> None:
        for line in lines:
            with self._lock:
                self._tails[name].append(line.rstrip("\n"))
                self._receive(name, line.rstrip("\n"))

    def is_started(self, name: str) -> bool:
        """Returns whether start() was called with NAME."""
        return name in self._processes

    def failures(self) -> list[tuple[str, int]]:
        """Returns the names and the return codes of the processes that have failed."""
        return [(name, process.returncode) for name, process in self._processes.items() if process.poll()]

    def ended(self, kind: str) -> bool:
        """Returns whether all processes whose names begin with KIND have ended."""
        return all(process.poll() is not None for name, process in self._processes.items() if name.startswith(kind))

    def last_lines(self, name: str) -> list[str]:
        """Returns the last lines of the output of a process that has ended."""
        self._readers[name].join(1)
        with self._lock:
            return list(self._tails[name])

    def stop(self, kind: str = "", seconds: float = STOP_SECONDS) -> None:
        """Ends all processes whose names begin with KIND, with SIGKILL if SIGTERM does not end them within SECONDS."""
        processes = [process for name, process in self._processes.items() if name.startswith(kind)]
        for process in processes:
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + seconds
        for process in processes:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for name, reader in self._readers.items():
            if name.startswith(kind):
                reader.join(1)
