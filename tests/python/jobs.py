"""Jobs for the tests of the Python package: real servers on this machine, and Python processes as workers."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

PACKAGE = os.path.abspath("python")  # in the runfiles of a test
PYTHONPATH = os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))  # the second: another PyTorch
SERVER = os.path.abspath("server/server")
sys.path.insert(0, PACKAGE)

from thinwire import _client  # noqa: E402
from thinwire.job import init, settings_of  # noqa: E402


def job_text(settings):
    """Returns the job file of SETTINGS, such as {"mode": "async"}."""
    return _client.job_text("", settings_of(settings))


class Servers:
    """The servers of one job. A context manager: at its end, the servers must stop in order."""

    def __init__(self, **settings):
        self.settings = {"servers": 2, "lease_seconds": 2, "start_timeout_seconds": 20, **settings}
        self.count = self.settings["servers"]
        self._folder = tempfile.TemporaryDirectory()
        self.state_dir = self._folder.name if "durability" in settings else ""
        self.job_file = os.path.join(self._folder.name, "job.textproto")
        with open(self.job_file, "w", encoding="utf-8") as file:
            file.write(job_text(self.settings))
        self._processes = [None] * self.count
        self._addresses = ["127.0.0.1:0"] * self.count

    @property
    def addresses(self):
        return ",".join(self._addresses)

    def __enter__(self):
        for number in reversed(range(self.count)):  # server 0 calls the others
            self.start(number)
        return self

    def __exit__(self, kind, error, trace):
        for process in self._processes:
            process.terminate()
        codes = [process.wait(30) for process in self._processes]
        for process in self._processes:
            process.stdout.close()
        if error is not None or any(codes):
            for number in range(self.count):
                print(f"--- server {number} ---\n{self.log(number)}", file=sys.stderr)
        self._folder.cleanup()
        assert not any(codes), f"exit codes of the servers: {codes}"

    def start(self, number):
        """Starts a server, at its former address if it ran before."""
        command = [SERVER, "--config", self.job_file, "--server", str(number), "--listen", self._addresses[number]]
        if number == 0:
            command += ["--addresses", self.addresses.replace("127.0.0.1:0", "127.0.0.1:1")]
        if self.state_dir:
            command += ["--state_dir", self.state_dir]
        with open(self._log_file(number), "a", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self._processes[number] = process
        line = process.stdout.readline()
        assert line.startswith("listening "), f"server {number} did not start:\n{self.log(number)}"
        self._addresses[number] = line.split()[1]

    def kill(self, number):
        self._processes[number].kill()
        self._processes[number].wait()
        self._processes[number].stdout.close()

    def signal(self, number, signal_number):
        self._processes[number].send_signal(signal_number)

    def await_checkpoints(self):
        """Waits until every server has a checkpoint."""
        deadline = time.monotonic() + 30
        while not all(os.path.exists(f"{self.state_dir}/server-{n}/LATEST") for n in range(self.count)):
            assert time.monotonic() < deadline, "no checkpoint"
            time.sleep(0.01)

    def worker(self, scenario, number, environment=None, **arguments):
        """Starts the function SCENARIO of worker.py as worker NUMBER; with ENVIRONMENT in place of the variable of its number."""
        general = {"PYTHONPATH": PYTHONPATH, "THINWIRE_ADDRESSES": self.addresses, "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **general, **(environment or {"THINWIRE_WORKER": str(number)})}
        if "RANK" in environment:
            environment.pop("THINWIRE_WORKER", None)
        return subprocess.Popen(
            [sys.executable, "tests/python/worker.py", scenario, json.dumps(self.settings), json.dumps(arguments)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _log_file(self, number):
        return os.path.join(self._folder.name, f"server{number}.log")

    def log(self, number):
        with open(self._log_file(number), encoding="utf-8", errors="replace") as file:
            return file.read()[-5000:]


class Job:
    """A job of one server and of this process as its only worker.

    A context manager whose value is MAKE_OPTIMIZER(settings of the job). At its end, the optimizer and the server stop.
    """

    def __init__(self, make_optimizer, **settings):
        self.servers = Servers(**{"servers": 1, "workers": 1, **settings})
        self.make_optimizer = make_optimizer

    def __enter__(self):
        self.servers.__enter__()
        init(worker=0, addresses=self.servers.addresses)
        try:
            self.optimizer = self.make_optimizer(dict(self.servers.settings))
        except BaseException as error:
            self.servers.__exit__(type(error), error, None)
            raise
        return self.optimizer

    def __exit__(self, kind, error, trace):
        self.optimizer.close()
        self.servers.__exit__(kind, error, trace)


def results_under_torchrun(scenario, settings, **arguments):
    """Runs the function SCENARIO of worker.py in four processes of torchrun. Returns their values that begin with "parameters"."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("THINWIRE_")}
    with tempfile.TemporaryDirectory() as folder:
        # PyTorch 1.13 with Python 3.11 needs --redirects and --tee.
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "4", "--redirects", "1", "--tee", "1",
             "tests/python/worker.py", scenario, json.dumps(settings), json.dumps(arguments)],
            env={**clean, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1", "TMPDIR": folder},
            capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return [json.loads(line) for line in re.findall(r"^\S*?(\{\"parameters\".*)$", done.stdout, re.MULTILINE)]


def start_group(case, servers, scenario, **arguments):
    """Starts SCENARIO in the two processes of a worker. They meet in a file that ends with the test CASE."""
    folder = tempfile.TemporaryDirectory()
    case.addCleanup(folder.cleanup)
    arguments = {"store": os.path.join(folder.name, "store"), **arguments}
    return [servers.worker(scenario, process, environment={"RANK": str(process), "WORLD_SIZE": "2"}, **arguments)
            for process in range(2)]


def await_training(processes):
    """Waits until the workers have joined and print the line "training"."""
    for process in processes:
        line = process.stdout.readline()
        assert line == "training\n", f"expected training, got {line!r}"


def result_of(process):
    """Waits for a worker and returns the JSON value of its last line."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, f"exit code {process.returncode}\n{output}\n{errors}"
    return json.loads(output.splitlines()[-1])


def results_of(processes):
    return [result_of(process) for process in processes]
