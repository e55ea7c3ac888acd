"""Starts processes of this machine with the arguments of rendered pods, and asks their probes.

    pods_test SERVER WORKER THINWIRE
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from tests.admin.cluster import WAIT_SECONDS, get, wait_until
from tests.k8s.credentials import make_secrets, secret_files
from tests.k8s.manifests import container_of, job_text, main, make_pod, overlay, pod_count

THINWIRE = os.path.abspath(sys.argv.pop())
PROGRAMS = {"worker": os.path.abspath(sys.argv.pop()), "server": os.path.abspath(sys.argv.pop())}


class PodProcess:
    """The process of a pod's container. The container's folders are below ROOT, its ports are free ports of 127.0.0.1."""

    def __init__(self, pod, role, number, root, addresses):
        container = container_of(pod["spec"])
        environment = {**os.environ, f"THINWIRE_{role.upper()}": str(number), "THINWIRE_ADDRESSES": ",".join(addresses)}
        command = [PROGRAMS[role]]
        for argument in container["args"]:
            argument = re.sub(r"^--(listen|admin)=.*", r"--\1=127.0.0.1:0", argument)
            command.append(argument.replace("=/", f"={root}/"))
        self.probes = {name: container[name]["httpGet"]["path"] for name in ("livenessProbe", "readinessProbe")}
        self._log = pathlib.Path(root, f"{role}-{number}.log")
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def find(self, pattern):
        """Waits until the output has a line with PATTERN and returns the pattern's group."""
        found = []

        def search():
            text = self._log.read_text(encoding="utf-8")
            assert self._process.poll() is None, text
            found[:] = re.findall(pattern, text, re.MULTILINE)
            return found

        wait_until(search, pattern)
        return found[0]

    def probe(self, name):
        """Returns the HTTP status of a probe."""
        return get(self.find(r"\] admin (\S+)$"), self.probes[name])[0]

    def stop(self):
        """Returns the exit code after SIGTERM."""
        self._process.terminate()
        return self._process.wait(WAIT_SECONDS)


class PodsTest(unittest.TestCase):
    def start(self, name, role, number, addresses):
        """Starts a pod of an overlay and waits until it is ready."""
        objects = overlay(name)
        pod = make_pod(objects, role, number)
        root = self.enterContext(tempfile.TemporaryDirectory())
        for folder in ("job", "state", "data"):
            os.mkdir(f"{root}/{folder}")
        text = job_text(objects).replace('data_dir: "/data"', 'data_dir: "/usr/share/datasets/fashion-mnist"')
        pathlib.Path(root, "job/job.textproto").write_text(text, encoding="utf-8")
        if name != "dev":
            for path, content in secret_files(pod, self.secrets).items():
                file = pathlib.Path(root, "credentials", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        process = PodProcess(pod, role, number, root, addresses)
        self.addCleanup(process.stop)
        wait_until(lambda: process.probe("readinessProbe") == 200, f"{name}: {role} {number} is ready")
        return process

    def check(self, name, server_count):
        self.assertEqual(pod_count(overlay(name), "server"), server_count)
        addresses = [f"127.0.0.1:{i + 1}" for i in range(server_count)]
        servers = []
        for number in reversed(range(server_count)):  # the lead is the last, because it needs the ports of the others
            servers.append(self.start(name, "server", number, addresses))
            addresses[number] = servers[-1].find(r"^listening (\S+)$")
        worker = self.start(name, "worker", 0, addresses)  # it is ready when it has joined
        self.assertEqual([process.probe("livenessProbe") for process in (*servers, worker)], [200] * (server_count + 1))
        self.assertEqual(worker.stop(), 75)
        self.assertEqual([server.stop() for server in servers], [0] * server_count)

    def test_the_pods_of_dev_answer_their_probes(self):
        self.check("dev", 1)

    def test_the_pods_of_mtls_accept_the_certificates_of_the_page(self):
        self.secrets = make_secrets(THINWIRE, self.enterContext(tempfile.TemporaryDirectory()))
        self.check("mtls", 2)


if __name__ == "__main__":
    main()
