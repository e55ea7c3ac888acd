"""Runs a Python program as the workers of a job on this machine, together with the job's servers (docs/python_launch.md).

    thinwire launch --workers 2 --servers 2 train.py ARGUMENTS      or python3 -m thinwire.launch with the same arguments

The servers start with the job that worker 0 describes: the job file and the settings of the program. Every line of output
begins with the name of its process. The command ends when all workers have ended; if a process fails, it ends the others.

    srun -N 4 thinwire launch --servers 2 train.py

In a step of Slurm with several tasks, each task becomes one worker of the job, as under torchrun: worker 0 starts the servers.

Exit codes: 0 if all workers ended with 0; otherwise that of the first process that failed; 64 for wrong arguments; 130 after
Ctrl-C.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from typing import NoReturn

from thinwire import _client
from thinwire.processes import POLL_SECONDS, STOP_SECONDS, Processes, end_text, number_in, server_program

_JOB_FILE = "job.textproto"
_ADDRESSES_FILE = "addresses"
_USAGE = 64  # as all programs of thinwire (docs/configuration.md)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(_USAGE, f"launch: {message}\n")


def _parse() -> argparse.Namespace:
    parser = _Parser(prog="thinwire launch", description=__doc__.split("\n", 1)[0], allow_abbrev=False,
                     epilog="Every setting of a job file is a flag, too, such as --mode async. The program's own values "
                            "replace those of flags.")
    parser.add_argument("--workers", type=int, help="the number of workers (default: 1; under srun the number of tasks)")
    parser.add_argument("--servers", type=int, default=1, help="the number of servers (default: 1)")
    parser.add_argument("--config", help="the job file (default: the settings of the program are the job)")
    parser.add_argument("--state_dir", help="the folder in which servers and workers keep their state (durability)")
    for name in ("uplink", "downlink"):
        parser.add_argument(f"--{name}", help=f"the {name} of each server and worker at most, such as 20mbit (default: no limit)")
    parser.add_argument("--server_program", help="the server's program (default: that of the build or thinwire-server)")
    for name in _settings():
        parser.add_argument(f"--{name}", type=_value, help=argparse.SUPPRESS)
    parser.add_argument("script", metavar="PROGRAM.py", help="the Python program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the arguments of the program")
    arguments = parser.parse_args()
    if _is_slurm_task() and arguments.workers is not None:
        parser.error("--workers: not valid under srun with several tasks (expected none, since each task is a worker, got "
                     f"{arguments.workers})")
    if arguments.workers is None:
        arguments.workers = 1
    for name in ("workers", "servers"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name}: out of range (expected at least 1, got {getattr(arguments, name)})")
    if not os.path.isfile(arguments.script):
        parser.error(f"{arguments.script}: no such file (expected a Python program)")
    if os.environ.get("THINWIRE_SITE"):
        parser.error("THINWIRE_SITE: only valid with an aggregator that runs already (expected none, since launch starts servers, "
                     f"got {os.environ['THINWIRE_SITE']})")
    if os.environ.get("THINWIRE_ADDRESSES"):
        parser.error("THINWIRE_ADDRESSES: only valid with servers that run already (expected none, since launch starts "
                     f"servers, got {os.environ['THINWIRE_ADDRESSES']})")
    return arguments


def _value(text: str) -> str:
    if text.endswith(".py"):  # a switch without value before the program
        raise argparse.ArgumentTypeError(f"missing value (expected a value such as true, got the program {text})")
    return text


def _settings() -> list[str]:
    """Returns the names of the job's settings that are not flags of launch itself."""
    return [name for name in _client.setting_names() if name not in ("workers", "servers")]


def _is_slurm_task() -> bool:
    """Returns whether this process is one of several tasks of a step that srun has started. A batch script belongs to no step."""
    return int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1 and "SLURM_PROCID" in os.environ


def _first_host(hosts: str) -> str:
    """Returns the first name of Slurm's list HOSTS, such as node01 of "node[01-03,07],gpu1"."""
    return re.sub(r"\[(\d+)[^]]*\]", r"\1", hosts).split(",")[0]


def _torchrun_variables() -> dict[str, str]:
    """Returns the variables that torchrun sets, for this task of Slurm. MASTER_ADDR and MASTER_PORT may be set already."""
    slurm = {name.removeprefix("SLURM_"): value for name, value in os.environ.items() if name.startswith("SLURM_")}
    count = slurm["STEP_NUM_TASKS"]
    variables = {"RANK": slurm["PROCID"], "WORLD_SIZE": count, "LOCAL_RANK": slurm.get("LOCALID", "0")}
    if slurm.get("STEP_NUM_NODES") == "1":
        variables["LOCAL_WORLD_SIZE"] = count
    host = _first_host(slurm.get("STEP_NODELIST", "localhost"))
    # All tasks choose the same port, and jobs that share a machine choose different ones.
    port = 20000 + (7 * int(slurm.get("JOB_ID", "0")) + int(slurm.get("STEP_ID", "0"))) % 10000
    return variables | {"MASTER_ADDR": os.environ.get("MASTER_ADDR", host), "MASTER_PORT": os.environ.get("MASTER_PORT", str(port))}


def _become_worker(arguments: argparse.Namespace) -> NoReturn:
    """Replaces this task of Slurm by the program."""
    environment = dict(os.environ) | _torchrun_variables() | _settings_in_environment(arguments, ("servers",))
    os.execve(sys.executable, [sys.executable, arguments.script, *arguments.arguments], environment)


def _settings_in_environment(arguments: argparse.Namespace, numbers: Iterable[str]) -> dict[str, str]:
    """Returns the variables with which a worker reads the settings of the flags, with those of NUMBERS."""
    values = {name: getattr(arguments, name) for name in (*numbers, "config", "state_dir", "uplink", "downlink", *_settings())}
    return {"THINWIRE_" + name.upper(): str(value) for name, value in values.items() if value is not None}


def _environment(arguments: argparse.Namespace, folder: str) -> dict[str, str]:
    """Returns the environment of the workers."""
    environment = dict(os.environ) | _settings_in_environment(arguments, ("workers", "servers"))
    environment["THINWIRE_ADDRESSES_FILE"] = os.path.join(folder, _ADDRESSES_FILE)
    environment["PYTHONUNBUFFERED"] = "1"
    environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // arguments.workers)))
    return environment


def _start_servers(arguments: argparse.Namespace, program: str, processes: Processes, listening: Mapping[str, str],
                   folder: str) -> None:
    """Starts the servers that can start, each on a free port: server 0, which calls the others, when those listen.

    LISTENING has the addresses of the servers that listen, by name, and does not change during this call. When all do, the
    workers get their addresses.
    """
    names = [f"server {number}" for number in range(arguments.servers)]
    addresses = [listening.get(name, "127.0.0.1:0") for name in names]
    for number, name in enumerate(names):
        if processes.is_started(name) or (number == 0 and not all(other in listening for other in names[1:])):
            continue
        command = [program, "--config", os.path.join(folder, _JOB_FILE), "--server", str(number), "--listen", "127.0.0.1:0"]
        if number == 0:
            command += ["--addresses", ",".join(addresses)]
        for flag in ("state_dir", "uplink", "downlink"):
            if value := getattr(arguments, flag):
                command += [f"--{flag}", value]
        processes.start(name, command)
    path = os.path.join(folder, _ADDRESSES_FILE)
    if all(name in listening for name in names) and not os.path.exists(path):
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(",".join(addresses))
        os.replace(path + ".tmp", path)


def _run(arguments: argparse.Namespace, processes: Processes, listening: dict[str, str], folder: str) -> int:
    """Starts all processes and returns the exit code of the command. PROCESSES add the servers that listen to LISTENING."""
    program = arguments.server_program or server_program()
    job_file = os.path.join(folder, _JOB_FILE)
    environment = _environment(arguments, folder)
    for number in range(arguments.workers):
        own = dict(environment, THINWIRE_WORKER=str(number))
        if number == 0:
            own["THINWIRE_WRITE_JOB"] = job_file
        processes.start(f"worker {number}", [sys.executable, arguments.script, *arguments.arguments], own)
    while not processes.ended("worker"):
        if os.path.exists(job_file):
            _start_servers(arguments, program, processes, dict(listening), folder)
        if processes.failures():
            break
        time.sleep(POLL_SECONDS)
    failures = processes.failures()
    if not failures:
        return 0
    name, code = failures[0]
    print(f"launch: {name} {end_text(code)}", file=sys.stderr)
    return code if code > 0 else 128 - code


def _drain_seconds(job_file: str) -> int:
    """Returns the job's drain_seconds, within which a worker ends after SIGTERM; 0 if worker 0 has not described the job."""
    if not os.path.exists(job_file):
        return 0
    with open(job_file, encoding="utf-8") as file:
        return number_in(file.read(), "drain_seconds")


def main() -> None:
    arguments = _parse()
    if _is_slurm_task():
        _become_worker(arguments)
    # Ends the processes after SIGTERM, too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    listening: dict[str, str] = {}

    def receive(name: str, line: str) -> None:
        print(f"{name}: {line}", flush=True)
        if name.startswith("server ") and line.startswith("listening "):
            listening[name] = line.removeprefix("listening ")

    processes = Processes(receive)
    with tempfile.TemporaryDirectory() as folder:
        try:
            code = _run(arguments, processes, listening, folder)
        except _client.Error as error:
            sys.exit(f"launch: {error}")
        except KeyboardInterrupt:
            code = 130
        finally:
            # The servers take what the workers push at their end.
            processes.stop("worker", _drain_seconds(os.path.join(folder, _JOB_FILE)) + STOP_SECONDS)
            processes.stop()
    sys.exit(code)


if __name__ == "__main__":
    main()
