"""The job of this process: the arguments of init(), the numbers of the workers, and the settings."""

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from thinwire import _client
from thinwire._client import Error

Setting = tuple[str, list[str], str]  # a name, the values, and the place for messages

STOPPED = 75  # the exit code of a worker that was asked to stop (docs/failures.md)
_POLL_SECONDS = 0.05


class Process(NamedTuple):
    """The arguments of init()."""

    worker: int
    addresses: str  # "": not known, or those of a file that `thinwire launch` writes
    config: str
    credentials: str
    insecure: bool
    state_dir: str
    uplink: str
    downlink: str
    site: int | None  # None: the worker belongs to no site
    site_workers: int
    site_backup: int
    processes: int  # that are one worker together


_process: Process | None = None  # None before init()
_stop_requested = False
_stop_ends_process = False


def init(worker: int | str | None = None, addresses: str | None = None, config: str | None = None,
         credentials: str | None = None, insecure: bool | None = None, state_dir: str | None = None, processes: int = 1,
         uplink: str | None = None, downlink: str | None = None, site: int | None = None, site_workers: int | None = None,
         site_backup: int | None = None) -> None:
    """Sets the settings of this process. An argument that is None has the value of its environment variable.

    In the main thread, also handles SIGTERM unless the program does: the worker leaves after its step (docs/python.md).

    Args:
      worker: the number of this worker, from 0, in a site among its workers. THINWIRE_WORKER, else RANK, which torchrun sets,
        else 0. "auto": server 0 of the addresses chooses a free number.
      addresses: host:port of every server, in the order of their numbers, separated by commas; in a site that of its
        aggregator. THINWIRE_ADDRESSES. Without both, worker 0 starts the servers under torchrun (docs/python_launch.md).
      config: the path of the job file, which the servers read too. THINWIRE_CONFIG. Without it, the job consists of the
        settings of DistributedOptimizer and of the environment.
      credentials: the folder with ca.pem, cert.pem and key.pem. THINWIRE_CREDENTIALS; none: plaintext.
      insecure: allows plaintext to servers on other machines. THINWIRE_INSECURE.
      state_dir: the folder in which the worker keeps its residuals. THINWIRE_STATE_DIR.
      processes: the number of processes that are one worker together (local_group). RANK and WORLD_SIZE count processes.
      uplink: the rate that the bytes sent stay below on average, in bits per second, such as 20mbit. THINWIRE_UPLINK.
      downlink: the same for the bytes received. THINWIRE_DOWNLINK.
      site: the number of the site to which this worker belongs (docs/sites.md), with the job file `config`. THINWIRE_SITE; none:
        no site.
      site_workers: the number of workers of this site. Required with a site. THINWIRE_SITE_WORKERS.
      site_backup: the rounds of the site wait for all its workers except this number. THINWIRE_SITE_BACKUP, else 0.
    """
    global _process
    if not isinstance(processes, int) or processes < 1:
        raise Error(f"processes: wrong value (expected a whole number from 1, got {processes!r})")
    if int(os.environ.get("WORLD_SIZE", processes)) % processes:
        raise Error(f"processes: does not divide WORLD_SIZE (expected a divisor of {os.environ['WORLD_SIZE']}, got {processes})")
    if worker is None and os.environ.get("THINWIRE_WORKER") == "auto":
        worker = "auto"
    if worker is None:
        worker = _number("THINWIRE_WORKER", 0) if "THINWIRE_WORKER" in os.environ else _number("RANK", 0) // processes
    if worker != "auto" and (not isinstance(worker, int) or worker < 0):
        raise Error(f"worker: wrong value (expected a whole number from 0, or auto, got {worker!r})")
    if insecure is None:
        insecure = os.environ.get("THINWIRE_INSECURE", "").lower() in ("1", "true", "yes", "on")
    own: dict[str, Any] = {
        "addresses": _given(addresses, "THINWIRE_ADDRESSES"),
        "config": _given(config, "THINWIRE_CONFIG"),
        "credentials": _given(credentials, "THINWIRE_CREDENTIALS"),
        "insecure": insecure,
        "state_dir": _given(state_dir, "THINWIRE_STATE_DIR"),
    }
    if worker == "auto":
        if not own["addresses"] or processes > 1:
            raise Error("worker: auto needs the addresses of running servers, and one process per worker "
                        f"(expected these, got addresses {own['addresses']!r} and {processes} processes)")
        worker = _client.claim_number(**own)
    _process = Process(
        worker=int(worker),
        uplink=_given(uplink, "THINWIRE_UPLINK"),
        downlink=_given(downlink, "THINWIRE_DOWNLINK"),
        **_site(site, site_workers, site_backup),
        processes=processes,
        **own,
    )
    # A program with a handler of its own keeps it.
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _request_stop)


def rank() -> int:
    """Returns the number of this worker, from 0, among those of all sites. Errors: Error before init(); those of world_size()."""
    own = process("rank()")
    return own.worker if own.site is None else own.worker * _job_workers(own) + own.site


def world_size() -> int:
    """Returns the number of workers with which the job starts: THINWIRE_WORKERS, else `workers` of the job file, else WORLD_SIZE.

    1 if there are none. In a site: this number, which is that of the sites, times `site_workers`. The argument `workers` of an optimizer is not known here. `live` of an optimizer has the workers that
    are there at the moment. Errors: Error before init(), and for a wrong number or job file.
    """
    own = process("world_size()")
    return _job_workers(own) * (1 if own.site is None else own.site_workers)


# --- the rest is for the package ---


def process(user: str) -> Process:
    """Returns the arguments of init() for USER, the name of a function or class. Errors: Error before init()."""
    if _process is None:
        raise Error(f"init: not called (expected thinwire.init() before {user})")
    return _process


def stop_requested() -> bool:
    """Returns whether this process has received SIGTERM."""
    return _stop_requested


@contextlib.contextmanager
def stop_ends_process() -> Iterator[None]:
    """A context in which SIGTERM raises SystemExit at once: the worker has no step that it should complete before."""
    global _stop_ends_process
    if _stop_requested:
        raise SystemExit(STOPPED)
    _stop_ends_process = True
    try:
        yield
    finally:
        _stop_ends_process = False


def settings(arguments: Mapping[str, Any]) -> list[Setting]:
    """Returns the settings of the job for _client.Client: defaults, then the environment, then ARGUMENTS."""
    own = process("settings()")
    found: list[Setting] = []
    if not own.config and own.site is None:
        # Without a job file, the addresses and torchrun tell the sizes of the job. In a site, they are those of the site.
        if own.addresses:
            found.append(("servers", [str(own.addresses.count(",") + 1)], "addresses"))
        if "WORLD_SIZE" in os.environ:
            found.append(("workers", [str(_number("WORLD_SIZE", 1) // own.processes)], "WORLD_SIZE"))
    for name in _client.setting_names():
        variable = "THINWIRE_" + name.upper()
        if variable in os.environ:
            found.append((name, [os.environ[variable]], variable))
    return found + settings_of(arguments)


def settings_of(arguments: Mapping[str, Any]) -> list[Setting]:
    """Returns the settings {name: value} as _client.Client and _client.job_text take them."""
    found = []
    for name, value in arguments.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        word = _group_text if name == "parameter_group" else _word
        found.append((name, [word(v) for v in values], name))
    return found


def offer_job(job: list[Setting]) -> None:
    """Writes the job file of the settings JOB for the program that starts the servers, if it has asked for it."""
    path = os.environ.get("THINWIRE_WRITE_JOB")
    if path is None:
        return
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(_client.job_text(process("offer_job()").config, job))
    os.replace(path + ".tmp", path)


def await_addresses() -> str:
    """Returns the addresses of the servers, for which `thinwire launch --hosts` may have promised a file; "" if there are none."""
    path = os.environ.get("THINWIRE_ADDRESSES_FILE")
    addresses = process("await_addresses()").addresses
    if addresses or path is None:
        return addresses
    with stop_ends_process():
        while not os.path.exists(path):  # launch ends this process if the servers fail
            time.sleep(_POLL_SECONDS)
    with open(path, encoding="utf-8") as file:
        return file.read()


def _job_workers(own: Process) -> int:
    """Returns `workers` of the job: the number of its workers, or of its sites."""
    if "THINWIRE_WORKERS" in os.environ:
        return _number("THINWIRE_WORKERS", 1)
    if own.config:
        return _client.file_workers(own.config)
    return max(1, _number("WORLD_SIZE", 1) // own.processes) if own.site is None else 1


def _site(site: int | None, workers: int | None, backup: int | None) -> dict[str, Any]:
    """Returns the fields of Process about the site, from the arguments of init()."""
    if site is None and "THINWIRE_SITE" in os.environ:
        site = _number("THINWIRE_SITE", 0)
    if workers is None and "THINWIRE_SITE_WORKERS" in os.environ:
        workers = _number("THINWIRE_SITE_WORKERS", 1)
    if backup is None and "THINWIRE_SITE_BACKUP" in os.environ:
        backup = _number("THINWIRE_SITE_BACKUP", 0)
    for name, number, least in (("site", site, 0), ("site_workers", workers, 1), ("site_backup", backup, 0)):
        if number is not None and (not isinstance(number, int) or number < least):
            raise Error(f"{name}: wrong value (expected a whole number from {least}, got {number!r})")
        if number is not None and site is None:
            raise Error(f"{name}: only valid with site (expected the number of a site, got {number} and no site)")
    if site is not None and workers is None:
        raise Error("site_workers: missing (expected the number of workers of the site)")
    return {"site": site, "site_workers": workers or 0, "site_backup": backup or 0}


def _request_stop(number: int, frame: FrameType | None) -> None:
    global _stop_requested
    _stop_requested = True
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second signal ends the process at once
    if _stop_ends_process:
        raise SystemExit(STOPPED)


def _given(value: str | None, variable: str) -> str:
    return os.environ.get(variable, "") if value is None else str(value)


def _number(variable: str, default: int) -> int:
    """Returns the whole number of VARIABLE, which is at least DEFAULT."""
    text = os.environ.get(variable, str(default))
    if not text.isdecimal() or int(text) < default:
        raise Error(f"{variable}: wrong value (expected a whole number from {default}, got {text!r})")
    return int(text)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _group_text(group: object) -> str:
    if not isinstance(group, dict):
        raise Error(f"parameter_group: wrong value (expected a dict such as {{'match': '*.bias', 'weight_decay': 0}}, got {group!r})")
    return " ".join(f"{name}: {json.dumps(value) if name == 'match' else _word(value)}" for name, value in group.items())
