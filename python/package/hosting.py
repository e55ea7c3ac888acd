"""The servers of a job that torchrun, or another launcher with its variables, has started without addresses of servers.

Worker 0 starts them beside itself and tells the others their addresses. Both use the store of torch.distributed's env://
rendezvous: that of torchrun's agent, or one that rank 0 opens at MASTER_PORT and shares with init_process_group().
"""

import functools
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from thinwire._client import Error
from thinwire.job import Process

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_POLL_SECONDS = 0.05
_STOP_SECONDS = 10  # the time that a worker has to leave when all are asked to stop

_jobs = itertools.count()  # numbers the jobs of this process, in the same order in all workers


def is_available() -> bool:
    """Returns whether this process has the variables of torchrun."""
    return all(name in os.environ for name in _VARIABLES)


class HostedServers:
    """The servers of a job, for one of its workers. Worker 0 owns them; they end with its process at the latest."""

    def __init__(self, job: str, process: Process):
        """Starts the servers of the job file JOB at worker 0, and waits for their addresses at the others.

        PROCESS: the arguments of init(). Errors: Error.
        """
        host, listen = _host()
        if listen != "127.0.0.1" and not process.credentials and not process.insecure:
            raise Error(
                "servers: reachable from other machines without credentials (expected THINWIRE_CREDENTIALS, or "
                f"THINWIRE_INSECURE=1 in a network that nobody else reaches, got neither for {host})"
            )
        self._group: subprocess.Popen[str] | None = None
        self._worker_count = int(os.environ["WORLD_SIZE"]) // process.processes
        self._store = _job_store()
        if os.environ["RANK"] == "0":
            servers: dict[str, Any] = {"start": time.time_ns(), "ports": []}
            try:
                servers["ports"] = self._start(job, listen, process)
            finally:
                self._store.set("servers", json.dumps(servers))
        else:
            servers = self._await_servers()
        if not servers["ports"]:
            raise Error("servers: not started (expected servers of worker 0, which reports the cause)")
        self._left = f"left/{servers['start']}"
        self.addresses = ",".join(f"{host}:{port}" for port in servers["ports"])

    def end(self, in_order: bool, is_stopped: Callable[[], bool]) -> None:
        """Ends the servers. If this worker left IN_ORDER, worker 0 first waits until the other workers have left, too.

        IS_STOPPED() returns whether this process was asked to stop. Worker 0 then waits no longer than _STOP_SECONDS.
        """
        try:
            self._store.add(self._left, 1)
            if self._group is not None and in_order:
                self._wait_for_others(is_stopped)
        except RuntimeError:
            pass  # the store has ended with worker 0 or with torchrun
        if self._group is not None:
            self._group.terminate()
            self._group.wait()
            if self._group.stdout is not None:
                self._group.stdout.close()

    def _wait_for_others(self, is_stopped: Callable[[], bool]) -> None:
        deadline = float("inf")
        while self._store.add(self._left, 0) < self._worker_count and time.monotonic() < deadline:
            if is_stopped():
                deadline = min(deadline, time.monotonic() + _STOP_SECONDS)
            time.sleep(_POLL_SECONDS)

    def _await_servers(self) -> dict[str, Any]:
        """Returns what worker 0 has set.

        The store of torchrun's agent may outlive the workers, and so have the servers of an earlier attempt, which a worker of
        the same rank has taken.
        """
        try:
            while True:
                servers: dict[str, Any] = json.loads(self._store.get("servers"))
                if self._store.add(f"taken/{servers['start']}/{os.environ['RANK']}", 1) == 1:
                    return servers
                time.sleep(_POLL_SECONDS)
        except RuntimeError as error:
            raise Error(f"servers: no addresses (expected them from worker 0): {error}") from None

    def _start(self, job: str, listen: str, process: Process) -> list[int]:
        """Starts the servers and returns their ports."""
        command = [sys.executable, "-m", "thinwire.server_group", "--parent", str(os.getpid()), "--listen", listen]
        if process.credentials:
            command += ["--credentials", str(pathlib.Path(process.credentials).resolve().parent)]
        if process.insecure:
            command.append("--insecure")
        if process.state_dir:
            command += ["--state_dir", process.state_dir]
        # The job file has all settings. Variables would replace them.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("THINWIRE_")}
        environment |= {"THINWIRE_UPLINK": process.uplink, "THINWIRE_DOWNLINK": process.downlink}  # of each server, too
        package = str(pathlib.Path(__file__).resolve().parents[1])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH")]))
        # In a session of its own, so that Ctrl-C does not end the servers before their workers.
        self._group = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       start_new_session=True)
        assert self._group.stdin is not None and self._group.stdout is not None
        with self._group.stdin as file:
            file.write(job)
        answer = json.loads(self._group.stdout.readline() or '{"error": "not started (expected a process for them)"}')
        if "error" in answer:
            raise Error(f"servers: {answer['error']}")
        ports: list[int] = answer["ports"]
        return ports


def _host() -> tuple[str, str]:
    """Returns the host at which all workers reach the servers, and the one on which the servers listen."""
    name = os.environ["MASTER_ADDR"]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"] or name in ("localhost", "127.0.0.1", "::1"):
        return "127.0.0.1", "127.0.0.1"
    # Listens everywhere, because the host may know its own name under another address than the other hosts do.
    return f"[{name}]" if ":" in name else name, "0.0.0.0"


def _job_store() -> Any:
    """Returns the part of the store that belongs to the next job of this process."""
    store = _open_store()
    from torch.distributed import PrefixStore

    return PrefixStore(f"thinwire/{next(_jobs)}", store)


@functools.lru_cache(maxsize=None)  # a store that rank 0 opens must outlive this job
def _open_store() -> Any:
    import torch.distributed  # only jobs of torchrun need it

    try:
        return next(torch.distributed.rendezvous("env://"))[0]
    except (RuntimeError, ValueError) as error:
        variables = ", ".join(f"{name}={os.environ[name]}" for name in _VARIABLES)
        raise Error(f"servers: no store for their addresses (expected that of torchrun, got {variables}): {error}") from None
