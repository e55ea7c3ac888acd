"""Starts a real job of two servers and two workers, all with an admin port."""

import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

JOB = """
  name: "watched"
  servers: 2
  consistency { mode: sync workers: 2 }
  optimization { optimizer: momentum learning_rate: 0.05 }
  compression { push: fp8_e5m2 }
  recovery { durability: log }
  task { model: mlp dataset: fashion_mnist train_examples: 2000 test_examples: 500 batch_size: 50 epochs: 1000 device: "cpu" }
"""
WAIT_SECONDS = 90  # longer than any wait takes on a busy machine


def get(address, path):
    """Returns (status, text) of a page."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=WAIT_SECONDS) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_until(done, what):
    """Polls until done() is true."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline, f"timeout: {what}"
        time.sleep(0.05)


class Cluster:
    """A context manager. The job trains until the end of the block. `admin` maps a process's name to its admin address."""

    def __init__(self, server, worker, job=JOB, worker_flags=(), admin=True, trace=False, workers=(0, 1)):
        self.admin = {}
        self.processes = {}
        self._programs = {"server": server, "worker": worker}
        self._worker_flags = list(worker_flags)
        self._has_admin = admin
        self._has_trace = trace
        self._workers = workers
        self.addresses = ["127.0.0.1:1", "127.0.0.1:1"]  # the lead does not need its own address
        self._folder = tempfile.TemporaryDirectory()
        self._job_file = self.path("job.textproto")
        with open(self._job_file, "w", encoding="utf-8") as file:
            file.write(job)

    def path(self, name):
        return os.path.join(self._folder.name, name)

    def log(self, name):
        with open(self.path(f"{name}.log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def events(self, name):
        """The lines of a worker's standard output so far."""
        with open(self.path(f"{name}.out"), encoding="utf-8") as file:
            return file.read().splitlines()

    def start(self, program, number, *flags):
        name = f"{program}{number}"
        command = [self._programs[program], "--config", self._job_file, f"--{program}", str(number), *flags]
        if self._has_admin:
            command += ["--admin", "127.0.0.1:0"]
        if self._has_trace:
            command += ["--trace", self.path(f"{name}.trace")]
        with open(self.path(f"{name}.log"), "w", encoding="utf-8") as log, open(
            self.path(f"{name}.out"), "w", encoding="utf-8"
        ) as out:
            self.processes[name] = subprocess.Popen(command, stdout=out, stderr=log)
        if self._has_admin:
            self.admin[name] = self._find(name, "log", r"\] admin (\S+)$")

    def _find(self, name, ending, pattern):
        """Waits until a file of a process has a line with PATTERN and returns the pattern's group."""
        found = []

        def search():
            with open(self.path(f"{name}.{ending}"), encoding="utf-8") as file:
                found[:] = re.findall(pattern, file.read(), re.MULTILINE)
            assert self.processes[name].poll() is None, f"{name} ended:\n{self.log(name)}"
            return found

        wait_until(search, f"{name} prints {pattern}")
        return found[0]

    def __enter__(self):
        for number in (1, 0):
            self.start_server(number, "127.0.0.1:0")
        for number in self._workers:
            self.start_worker(number)
        return self

    def start_server(self, number, address=None):
        """Starts a server, again at its own address if ADDRESS is None."""
        flags = ["--state_dir", self.path("state"), "--listen", address or self.addresses[number]]
        if number == 0:
            flags += ["--addresses", ",".join(self.addresses)]
        self.start("server", number, *flags)
        self.addresses[number] = self._find(f"server{number}", "out", r"^listening (\S+)$")

    def start_worker(self, number):
        self.start("worker", number, "--addresses", ",".join(self.addresses), *self._worker_flags)

    def __exit__(self, kind, error, trace):
        if error is not None:
            for name in self.processes:
                print(f"{name}:\n{self.log(name)[-3000:]}")
        for name in ("worker0", "worker1", "server0", "server1"):
            process = self.processes.get(name)
            if process is not None and process.poll() is None:
                process.terminate()
                process.wait(WAIT_SECONDS)
        self._folder.cleanup()

    def get(self, name, path):
        return get(self.admin[name], path)

    def metrics(self, name):
        """Returns {metric with its labels, without job_name and role: value}."""
        status, text = self.get(name, "/metrics")
        assert status == 200, text
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                metric, value = line.rsplit(" ", 1)
                metric = re.sub(r',?job_name="[^"]*",role="[^"]*"', "", metric).replace("{}", "")
                values[metric] = float(value)
        return values

    def wait_for_step(self, step):
        """Waits until both workers have reported STEP."""
        for name in ("worker0", "worker1"):
            wait_until(lambda name=name: self.metrics(name)["thinwire_worker_step"] >= step, f"{name} at step {step}")
