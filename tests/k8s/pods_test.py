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
from tests.k8s.credentials import make_cert_manager_secrets, make_secrets, secret_files
from tests.k8s.manifests import container_of, job_text, kustomize, main, make_pod, overlay, pod_count

THINWIRE = os.path.abspath(sys.argv.pop())
PROGRAMS = {"worker": os.path.abspath(sys.argv.pop()), "server": os.path.abspath(sys.argv.pop())}


class PodProcess:
    """The process of a pod's container. The container's folders are below ROOT, its ports are free ports of 127.0.0.1."""

    def __init__(self, pod, role, number, root, addresses):
        container = container_of(pod["spec"])
        environment = {**os.environ, f"THINWIRE_{role.upper()}": str(number), "THINWIRE_ADDRESSES": ",".join(addresses)}
        environment |= {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}
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
    def start(self, pod, role, number, addresses, text):
        """Starts a pod with the job file TEXT."""
        root = self.enterContext(tempfile.TemporaryDirectory())
        for folder in ("job", "state", "data"):
            os.mkdir(f"{root}/{folder}")
        text = text.replace('data_dir: "/data"', 'data_dir: "/usr/share/datasets/fashion-mnist"')
        pathlib.Path(root, "job/job.textproto").write_text(text, encoding="utf-8")
        if self.secrets:
            for path, content in secret_files(pod, self.secrets).items():
                file = pathlib.Path(root, "credentials", path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        process = PodProcess(pod, role, number, root, addresses)
        self.addCleanup(process.stop)
        return process

    def start_ready(self, pod, role, number, addresses, text):
        """Starts a pod and waits until it is ready."""
        process = self.start(pod, role, number, addresses, text)
        wait_until(lambda: process.probe("readinessProbe") == 200, f"{role} {number} is ready")
        return process

    def check(self, servers, worker, text, secrets):
        """Starts the pods SERVERS and the pod WORKER, number 0, of a job."""
        self.secrets = secrets
        addresses = [f"127.0.0.1:{i + 1}" for i in range(len(servers))]
        started = []
        for number in reversed(range(len(servers))):  # the lead is the last, because it needs the ports of the others
            started.append(self.start_ready(servers[number], "server", number, addresses, text))
            addresses[number] = started[-1].find(r"^listening (\S+)$")
        started.append(self.start_ready(worker, "worker", 0, addresses, text))  # it is ready when it has joined
        self.assertEqual([process.probe("livenessProbe") for process in started], [200] * len(started))
        self.assertEqual(started.pop().stop(), 75)
        self.assertEqual([server.stop() for server in started], [0] * len(servers))

    def check_overlay(self, name, server_count, secrets):
        objects = overlay(name)
        self.assertEqual(pod_count(objects, "server"), server_count)
        servers = [make_pod(objects, "server", number) for number in range(server_count)]
        self.check(servers, make_pod(objects, "worker", 0), job_text(objects), secrets)

    def test_the_pods_of_dev_answer_their_probes(self):
        self.check_overlay("dev", 1, {})

    def test_a_worker_stays_alive_while_its_servers_are_not_reachable(self):
        """Without --wait_for_servers, the process ends after start_timeout_seconds, before it reports its wait."""
        self.secrets = {}
        objects = overlay("dev")
        text = job_text(objects).replace("mode: sync", "mode: sync\n  start_timeout_seconds: 0.1")
        self.assertIn("start_timeout_seconds", text)
        worker = self.start(make_pod(objects, "worker", 0), "worker", 0, ["127.0.0.1:1"], text)
        worker.find(r"(waiting for server 0 \(127.0.0.1:1\))")
        self.assertEqual((worker.probe("livenessProbe"), worker.probe("readinessProbe")), (200, 503))
        self.assertEqual(worker.stop(), 75)

    def test_the_pods_of_mtls_accept_the_certificates_of_the_page(self):
        secrets = make_secrets(THINWIRE, self.enterContext(tempfile.TemporaryDirectory()))
        self.check_overlay("mtls", 2, secrets)

    def test_the_pods_of_the_command_accept_the_certificates_of_cert_manager(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        command = ["k8s", "--config", "deploy/k8s/base/job.textproto", "--name", "exp1", "--cert_manager", "--out", f"{folder}/out"]
        subprocess.run([THINWIRE, *command], check=True, stdout=subprocess.DEVNULL)
        objects = kustomize(f"{folder}/out")
        secrets = make_cert_manager_secrets([item for item in objects if item["kind"] == "Certificate"], folder)
        servers = [item["spec"]["template"] for item in objects if item["kind"] == "StatefulSet"]
        self.assertEqual(len(servers), 2)
        (worker,) = [item["spec"]["template"] for item in objects if item["kind"] == "Job"]
        (text,) = [item["data"]["job.textproto"] for item in objects if item["kind"] == "ConfigMap"]
        self.check(servers, worker, text, secrets)


if __name__ == "__main__":
    main()
