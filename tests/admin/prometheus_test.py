"""Runs a real Prometheus with the project's alert rules against a real job, and suspends a worker.

    bazel run //tests/admin:prometheus_test

Requires the Debian package prometheus. The rules are those of deploy/monitoring with shorter times (SHORTER).
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import yaml

from tests.admin.cluster import JOB, WAIT_SECONDS, Cluster, get, wait_until

DASHBOARD = sys.argv.pop()
RULES = sys.argv.pop()
WORKER = sys.argv.pop()
SERVER = sys.argv.pop()

# Replacements in the expressions of the rules. Each of them must change a rule.
SHORTER = {
    'cause!="no_worker"}) > 60': 'cause!="no_worker"}) > 3',
}
# The alerts of a suspended worker, before and after the end of its lease.
EXPECTED = {("ThinwireStepStalled", "server0"), ("ThinwireWorkerLost", "server0")}
# A query of the dashboard with one of these words may have no value while this job is healthy and young.
MAY_BE_EMPTY = ("ALERTS", "checkpoint", "test_accuracy", "lost_workers")


def shorter_rules():
    """Returns the rules of deploy/monitoring with shorter times."""
    with open(RULES, encoding="utf-8") as file:
        groups = yaml.safe_load(file)
    used = set()
    for group in groups["groups"]:
        for rule in group["rules"]:
            for old, new in SHORTER.items():
                if old in rule["expr"]:
                    used.add(old)
                    rule["expr"] = rule["expr"].replace(old, new)
            if "for" in rule:
                rule["for"] = "1s"
    assert used == set(SHORTER), used
    return groups


def free_port():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


class Prometheus:
    """A context manager. TARGETS maps the name of a process to its admin address."""

    def __init__(self, targets):
        self._folder = tempfile.TemporaryDirectory()
        self._names = {address: name for name, address in targets.items()}
        self._address = f"127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "thinwire", "static_configs": [{"targets": list(self._names)}]}],
        }
        for name, content in (("prometheus.yml", config), ("rules.yaml", shorter_rules())):
            with open(os.path.join(self._folder.name, name), "w", encoding="utf-8") as file:
                yaml.safe_dump(content, file)

    def __enter__(self):
        with open(os.path.join(self._folder.name, "log"), "w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                ["prometheus", f"--config.file={self._folder.name}/prometheus.yml", f"--web.listen-address={self._address}",
                 f"--storage.tsdb.path={self._folder.name}/data"], stdout=log, stderr=log)

        def ready():
            assert self._process.poll() is None, self.log()
            try:
                return get(self._address, "/-/ready")[0] == 200
            except OSError:
                return False

        wait_until(ready, "Prometheus is ready")
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            print(self.log()[-3000:])
        self._process.terminate()
        self._process.wait(WAIT_SECONDS)
        self._folder.cleanup()

    def log(self):
        with open(os.path.join(self._folder.name, "log"), encoding="utf-8") as file:
            return file.read()

    def ask(self, path):
        """Returns the data of an answer of the HTTP API."""
        status, text = get(self._address, f"/api/v1/{path}")
        assert status == 200, text
        return json.loads(text)["data"]

    def query(self, query):
        return self.ask(f"query?query={urllib.parse.quote(query)}")["result"]

    def healthy(self):
        """The names of the processes whose last scrape succeeded."""
        return {self._names[target["labels"]["instance"]] for target in self.ask("targets")["activeTargets"]
                if target["health"] == "up"}

    def firing(self):
        """The firing alerts as pairs of the alert and the process."""
        return {(alert["labels"]["alertname"], self._names[alert["labels"]["instance"]])
                for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The lease is longer than the wait that raises an alert.
        job = JOB.replace("workers: 2 }", "workers: 2 lease_seconds: 15 }")
        assert job != JOB
        cls.cluster = cls.enterClassContext(Cluster(SERVER, WORKER, job))
        cls.cluster.wait_for_step(20)
        cls.prometheus = cls.enterClassContext(Prometheus(cls.cluster.admin))
        wait_until(lambda: cls.prometheus.healthy() == set(cls.cluster.admin), "every process is scraped")

    def test_every_query_of_the_dashboard_has_values(self):
        with open(DASHBOARD, encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        count = 0
        for panel in panels:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$__rate_interval", "15s").replace("$job_name", "watched").replace("$job", "thinwire")
                if re.search("|".join(MAY_BE_EMPTY), query):
                    self.prometheus.query(query)  # it is valid
                else:
                    wait_until(lambda query=query: self.prometheus.query(query), query)
                    count += 1
        self.assertGreater(count, 25)

    def test_the_alerts_of_a_suspended_worker_fire_and_are_resolved(self):
        wait_until(lambda: not self.prometheus.firing(), "no alert fires at the beginning")
        fired = set()

        def all_have_fired():
            fired.update(self.prometheus.firing())
            return fired >= EXPECTED

        self.cluster.processes["worker1"].send_signal(signal.SIGSTOP)
        try:
            wait_until(all_have_fired, "the alerts of a suspended worker fire")
        finally:
            self.cluster.processes["worker1"].send_signal(signal.SIGCONT)
        wait_until(lambda: not self.prometheus.firing(), "the alerts are resolved")
        self.assertEqual(fired, EXPECTED)
        print(f"fired and resolved: {', '.join(sorted(name for name, _ in fired))}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
