"""Starts real server processes for a test."""

import os
import subprocess
import tempfile

from google.protobuf import text_format

from proto import job_pb2


def job_config(text):
    return text_format.Parse(text, job_pb2.JobConfig())


class Servers:
    """The servers of one job. A context manager: at its end, all servers must stop in order."""

    def __init__(self, program, job_text, flags=()):
        self.config = job_config(job_text)
        self.processes = [None] * self.config.servers
        self.addresses = ["127.0.0.1:1"] * self.config.servers  # the lead does not need its own address
        self.clients = []  # clients to close before the servers stop, because a server waits for open connections
        self._folder = tempfile.TemporaryDirectory()
        self._program = program
        self._flags = list(flags)
        self._job_file = os.path.join(self._folder.name, "job.textproto")
        with open(self._job_file, "w", encoding="utf-8") as file:
            file.write(job_text)

    def __enter__(self):
        for number in reversed(range(self.config.servers)):
            self._start(number)
        return self

    def __exit__(self, kind, error, trace):
        for client in self.clients:
            client.close()
        for process in self.processes:
            process.terminate()
        codes = [process.wait(30) for process in self.processes]
        for process in self.processes:
            process.stdout.close()
        if error is not None or any(codes):
            print("\n".join(self.log(number) for number in range(len(self.processes))))
        self._folder.cleanup()
        assert not any(codes), f"exit codes of the servers: {codes}"

    def log(self, number):
        """The last lines of a server's log."""
        with open(self._log_file(number), encoding="utf-8", errors="replace") as file:
            return file.read()[-20000:]

    def rss_bytes(self, number):
        with open(f"/proc/{self.processes[number].pid}/status", encoding="utf-8") as file:
            line = next(line for line in file if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024

    def _log_file(self, number):
        return os.path.join(self._folder.name, f"server{number}.log")

    def _start(self, number):
        with open(self._log_file(number), "w", encoding="utf-8") as log:
            addresses = ["--addresses", ",".join(self.addresses)] if number == 0 else []
            process = subprocess.Popen(
                [self._program, "--config", self._job_file, "--server", str(number), "--listen", "127.0.0.1:0",
                 *addresses, *self._flags],
                stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes[number] = process
        line = process.stdout.readline()
        assert line.startswith("listening "), f"server {number} did not start:\n{self.log(number)}"
        self.addresses[number] = line.split()[1]
