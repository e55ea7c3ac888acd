"""Scrapes the admin ports of a real job while it trains.

    cluster_test SERVER WORKER THINWIRE METRICS_PAGE, where METRICS_PAGE is docs/metrics.md
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

from tests.admin.cluster import JOB, WAIT_SECONDS, Cluster, get, wait_until
from tests.goldens.golden_text import expect_golden

METRICS_PAGE = sys.argv.pop()
THINWIRE = sys.argv.pop()
WORKER = sys.argv.pop()
SERVER = sys.argv.pop()
PROCESSES = ["server0", "server1", "worker0", "worker1"]


def names_in(text):
    """The names of all metrics in a page of /metrics."""
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


def described(text, names):
    """One line for each metric of NAMES in a page of /metrics: its name, type and labels."""
    lines = []
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        if name in names:
            samples = re.findall(rf"^{name}(?:_bucket|_sum|_count)?\{{(.*)\}} \S+$", text, re.MULTILINE)
            labels = {label for sample in samples for label in re.findall(r'(\w+)="', sample)}
            lines.append(" ".join([name, kind, *sorted(labels)]))
    return "".join(f"{line}\n" for line in sorted(lines))


def documented(program):
    """The metrics that docs/metrics.md lists for a program."""
    with open(METRICS_PAGE, encoding="utf-8") as file:
        page = file.read()
    section = page.split(f"\n## {program}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(thinwire_\w+)", section, re.MULTILINE))


class ClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(SERVER, WORKER))
        cls.cluster.wait_for_step(60)
        wait_until(lambda: cls.server_step("server0") >= 60, "server 0 shows step 60")

    @classmethod
    def server_step(cls, name):
        return cls.cluster.metrics(name).get("thinwire_server_step", 0)

    def test_every_metric_is_documented_and_present(self):
        # An epoch has ended, so the evaluator knows its test accuracy.
        wait_until(lambda: "thinwire_worker_test_accuracy_ratio" in self.cluster.metrics("worker0"), "an accuracy")
        for name, section in (("server0", "server"), ("worker0", "worker")):
            found = names_in(self.cluster.get(name, "/metrics")[1])
            expected = documented("every program") | documented(section)
            self.assertGreater(len(expected), 20)
            if name == "server0":
                expected |= documented("job")
            optional = {"thinwire_worker_loss_scale", "thinwire_server_checkpoint_age_seconds", "thinwire_server_slack_steps",
                        "thinwire_certificate_expiry_timestamp_seconds", "thinwire_certificate_read_timestamp_seconds",
                        "thinwire_job_waiting_seconds",
                        "thinwire_job_diverged_info", "thinwire_bill"}
            self.assertEqual(found - optional, expected - optional)
            text = described(self.cluster.get(name, "/metrics")[1], expected - optional)
            expect_golden(self, f"metrics_{section}.txt", text)
        self.assertFalse(any(name.startswith("thinwire_job_") for name in names_in(self.cluster.get("server1", "/metrics")[1])))

    def test_counters_rise(self):
        rising = {
            "server0": ['thinwire_server_pushes_total{verdict="accepted"}', "thinwire_server_push_payload_bytes_total",
                        "thinwire_server_parameters_payload_bytes_total", "thinwire_server_log_records_total",
                        "thinwire_server_log_bytes_total", "thinwire_server_log_commits_total",
                        "thinwire_server_push_staleness_updates_count", "thinwire_server_step",
                        "thinwire_server_decode_seconds_total", "thinwire_server_encode_seconds_total"],
            "server1": ['thinwire_server_pushes_total{verdict="accepted"}', "thinwire_server_step"],
            "worker0": ["thinwire_worker_push_raw_bytes_total", "thinwire_worker_push_encoded_bytes_total",
                        "thinwire_worker_pull_raw_bytes_total", "thinwire_worker_sent_bytes_total",
                        "thinwire_worker_accepted_pushes_total", "thinwire_worker_examples_total",
                        "thinwire_worker_training_seconds_total", "thinwire_worker_step",
                        "thinwire_worker_encode_seconds_total", "thinwire_worker_decode_seconds_total",
                        "thinwire_worker_wait_pushes_seconds_total", "thinwire_worker_wait_parameters_seconds_total"],
        }
        before = {name: self.cluster.metrics(name) for name in rising}
        count = 0
        for name, metrics in rising.items():
            for metric in metrics:
                wait_until(lambda: self.cluster.metrics(name)[metric] > before[name][metric], f"{metric} of {name} rises")
                count += 1
        self.assertEqual(count, 24)
        worker = self.cluster.metrics("worker0")
        ratio = worker["thinwire_worker_push_raw_bytes_total"] / worker["thinwire_worker_push_encoded_bytes_total"]
        self.assertGreater(ratio, 3.5)  # fp8

    def test_metrics_are_clean_for_promtool(self):
        for name in PROCESSES:
            text = self.cluster.get(name, "/metrics")[1]
            result = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
            self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""), name)

    def test_the_status_of_the_lead_has_the_whole_job(self):
        def status():
            return json.loads(self.cluster.get("server0", "/status.json")[1])

        wait_until(lambda: all("status" in server for server in status()["servers"]), "both servers answer the lead")
        lead = status()
        self.assertEqual((lead["program"], lead["server"], lead["ready"]), ("server", 0, True))
        self.assertEqual([server["server"] for server in lead["servers"]], [0, 1])
        for server in lead["servers"]:
            self.assertGreater(int(server["status"]["accepted_pushes"]), 0)
            self.assertGreater(len(server["status"]["shards"]), 0)
            self.assertEqual([worker["live"] for worker in server["status"]["workers"]], [True, True])
        self.assertEqual(lead["summary"]["live_workers"], [0, 1])
        self.assertGreater(lead["summary"]["push_fp32_bytes"], 3 * lead["summary"]["push_bytes"])
        wait_until(lambda: status()["summary"]["loss"] is not None, "the workers have told the lead their loss")
        summary = status()["summary"]
        self.assertGreater(summary["planned_steps"], summary["step"])
        self.assertGreater(summary["examples_per_second"], 0)
        other = json.loads(self.cluster.get("server1", "/status.json")[1])
        self.assertEqual([server["server"] for server in other["servers"]], [1])
        worker = json.loads(self.cluster.get("worker1", "/status.json")[1])
        self.assertEqual((worker["worker"], worker["ready"]), (1, True))
        self.assertGreater(int(worker["step"]["step"]), 0)

    def test_the_pages_show_the_job_without_a_script(self):
        wait_until(lambda: "2 of 2" in self.cluster.get("server0", "/")[1], "the lead's page has both servers")
        wait_until(lambda: "<polyline" in self.cluster.get("server0", "/")[1], "the lead's page has a curve of the loss")
        page = self.cluster.get("server0", "/")[1]
        for text in ("mean training loss of the workers", ">time left<", "<th scope=\"col\">loss</th>", "thinwire server 0, job watched", ">Workers<", ">Servers<", ">Pushes by verdict<", "Staleness",
                     ">Bytes saved<", "Durability", "<summary>Shards: ", ">live<"):
            self.assertIn(text, page)
        self.assertEqual(page.count("<td>live</td>"), 2)
        page = self.cluster.get("worker0", "/")[1]
        for text in ("thinwire worker 0, job watched", "<polyline", "step time", "push_bytes_raw"):
            self.assertIn(text, page)

    def test_health_and_readiness(self):
        for name in PROCESSES:
            self.assertEqual(self.cluster.get(name, "/healthz")[0], 200, name)
            self.assertEqual(self.cluster.get(name, "/readyz"), (200, "ready\n"), name)

    def answer(self, name, request):
        """Sends bytes to an admin port and returns the first line of the answer."""
        host, port = self.cluster.admin[name].split(":")
        with socket.create_connection((host, int(port)), WAIT_SECONDS) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return connection.makefile("rb").readline().decode()

    def test_only_get_and_head_are_allowed(self):
        methods = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "MKCOL", "LOCK", "M-SEARCH",
                   "PURGE", "LINK", "get", "Get", "GETS", "GE", "HEAD2", "X", "__proto__", "A" * 1000)
        count = 0
        for name in PROCESSES:
            for path in ("/", "/metrics", "/status.json", "/healthz", "/readyz", "/other"):
                for method in methods:
                    request = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
                    self.assertRegex(self.answer(name, request.encode()), "^HTTP/1.1 405 ", f"{name} {method} {path}")
                    count += 1
        self.assertEqual(count, 4 * 6 * 21)

    def test_a_malformed_request_is_refused(self):
        requests = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
                    b"G\0T / HTTP/1.1\r\n\r\n", b" / HTTP/1.1\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
                    b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 50_000 + b"\r\n\r\n",
                    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n", b"GET /" + b"x" * 50_000 + b" HTTP/1.1\r\n\r\n",
                    b"GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", b"\xff" * 50_000)
        count = 0
        for name in PROCESSES:
            for request in requests:
                self.assertRegex(self.answer(name, request), "^HTTP/1.1 4(00|31) ", f"{name} {request[:40]}")
                count += 1
            self.assertEqual(self.cluster.get(name, "/healthz")[0], 200, name)
        self.assertEqual(count, 4 * 13)


class StoppedWorkerTest(unittest.TestCase):
    def test_the_page_names_the_worker_that_has_not_finished_the_step(self):
        with Cluster(SERVER, WORKER) as cluster:
            cluster.wait_for_step(10)
            cluster.processes["worker1"].send_signal(signal.SIGSTOP)
            try:
                def summary():
                    return json.loads(cluster.get("server0", "/status.json")[1])["summary"]

                wait_until(lambda: summary()["unfinished_workers"] == [1] and summary()["step_seconds"] > 2, "worker 1 is named")
                wait_until(lambda: "waiting for worker 1" in cluster.get("server0", "/")[1], "the page names worker 1")
                silent = r"worker 1 has been silent for \S+ s; its lease ends in \S+ s"
                wait_until(lambda: re.search(silent, cluster.get("server0", "/")[1]), "the page says that its lease runs out")
                self.assertIn("waits for worker 1", cluster.get("worker0", "/")[1])
                self.assertGreater(cluster.metrics("worker0")["thinwire_worker_wait_seconds"], 0)
                # Liveness does not depend on peers.
                for name in ("server0", "server1", "worker0"):
                    self.assertEqual(cluster.get(name, "/healthz")[0], 200, name)
                # After the end of its lease, the worker is not live any more.
                wait_until(lambda: summary()["live_workers"] == [0], "the lease of worker 1 expires")
                wait_until(lambda: cluster.metrics("server0")["thinwire_server_lease_expirations_total"] > 0, "it is counted")
                self.assertEqual(cluster.metrics("server0")["thinwire_job_lost_workers"], 1)
                self.assertIn("worker 1 was lost: its lease has ended", cluster.get("server0", "/")[1])
                wait_until(lambda: cluster.metrics("worker0")["thinwire_worker_wait_workers_seconds_total"] > 0,
                           "the wait of worker 0 is counted under its cause")
            finally:
                cluster.processes["worker1"].send_signal(signal.SIGCONT)


class StateTest(unittest.TestCase):
    """What the lead's page, /status.json, /metrics and `thinwire status` say in each state of a job."""

    def await_state(self, cluster, state, text=None):
        """Waits until everything says STATE, in words TEXT."""
        def status():
            return json.loads(cluster.get("server0", "/status.json")[1])

        wait_until(lambda: status()["state_text"] == (text or state), f"the job is {text or state}")
        self.assertEqual(status()["state"], state)
        self.assertIn(f">{text or state}</p>", cluster.get("server0", "/")[1])
        states = {name: value for name, value in cluster.metrics("server0").items() if name.startswith("thinwire_job_state")}
        self.assertEqual(states[f'thinwire_job_state{{state="{state}"}}'], 1)
        self.assertEqual(sum(states.values()), 1)
        self.assertRegex(self.status(cluster), f"(?m)^state       {text or state}$")
        return status()

    def status(self, cluster):
        """Returns the output of `thinwire status`."""
        command = [THINWIRE, "status", "--addresses", ",".join(cluster.addresses)]
        return subprocess.run(command, text=True, capture_output=True, check=True, timeout=WAIT_SECONDS).stdout

    def test_a_dead_server_is_named_until_it_is_back(self):
        with Cluster(SERVER, WORKER, workers=(0,)) as cluster:
            self.await_state(cluster, "starting")
            cluster.start_worker(1)
            cluster.wait_for_step(10)
            self.assertEqual(self.await_state(cluster, "training")["servers_unreachable"], [])
            cluster.processes["server1"].kill()
            cluster.processes["server1"].wait(WAIT_SECONDS)
            status = self.await_state(cluster, "waiting", "waiting for server 1")
            self.assertEqual(status["servers_unreachable"], [1])
            self.assertEqual(status["summary"]["unfinished_workers"], [])
            self.assertRegex(status["problems"][0], r"^server 1 has not answered for \S+ s$")
            self.assertIn("<dt>servers</dt><dd>1 of 2</dd>", cluster.get("server0", "/")[1])
            self.assertIn("servers     1 of 2 answered", self.status(cluster))
            metrics = cluster.metrics("server0")
            self.assertEqual(metrics['thinwire_job_server_reachable{server="1"}'], 0)
            self.assertGreater(metrics['thinwire_job_waiting_seconds{cause="server"}'], 0)
            cluster.start_server(1)
            self.assertEqual(self.await_state(cluster, "training")["problems"], [])
            self.assertEqual(cluster.metrics("server0")['thinwire_job_server_reachable{server="1"}'], 1)

    def test_a_job_that_has_ended_is_finished(self):
        with Cluster(SERVER, WORKER, JOB.replace("epochs: 1000", "epochs: 1")) as cluster:
            status = self.await_state(cluster, "finished")
            self.assertEqual((status["problems"], status["summary"]["live_workers"]), ([], []))

    def test_a_diverged_job_says_its_symptom(self):
        with Cluster(SERVER, WORKER, JOB.replace("learning_rate: 0.05", "learning_rate: 1e30")) as cluster:
            status = self.await_state(cluster, "diverged")
            self.assertRegex(status["symptom"], r"^worker [01]: the loss of step \d+ is not finite")
            self.assertIn(f"diverged: {status['symptom']}"[:40], self.status(cluster))
            self.assertTrue(any(name.startswith("thinwire_job_diverged_info") for name in cluster.metrics("server0")))

    def test_a_job_whose_workers_were_stopped_is_stopping(self):
        with Cluster(SERVER, WORKER) as cluster:
            cluster.wait_for_step(10)
            for name in ("worker0", "worker1"):
                cluster.processes[name].terminate()
            self.assertEqual(self.await_state(cluster, "stopping")["problems"], [])


class TrainTest(unittest.TestCase):
    def test_train_shows_its_run(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            command = [THINWIRE, "train", "--workers", "2", "--servers", "2", "--model", "softmax", "--dataset",
                       "fashion_mnist", "--train_examples", "2000", "--test_examples", "500", "--batch_size", "50",
                       "--epochs", "1000", "--learning_rate", "0.05", "--device", "cpu", "--name", "watched",
                       "--admin", "127.0.0.1:0"]
            log = os.path.join(folder, "log")
            with open(log, "w", encoding="utf-8") as file:
                process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)
            try:
                def find():
                    with open(log, encoding="utf-8") as lines:
                        return re.findall(r"^admin (\S+)$", lines.read(), re.MULTILINE)

                wait_until(find, "the run prints its admin address")
                address = find()[0]

                def status():
                    return json.loads(get(address, "/status.json")[1])

                wait_until(lambda: "test_accuracy" in status() and len(status()["servers"]) == 2, "an epoch ends")
                wait_until(lambda: all("status" in server for server in status()["servers"]), "both servers answer")
                self.assertEqual([worker["state"] for worker in status()["workers"]], ["training", "training"])
                wait_until(lambda: status()["steps"] > 40, "steps are reported")
                page = get(address, "/")[1]
                for text in ("thinwire train, job watched", "train loss", "test accuracy", "<polyline", "Worker processes"):
                    self.assertIn(text, page)
                metrics = get(address, "/metrics")[1]
                others = documented("worker") | documented("job") | documented("every program")
                self.assertEqual(names_in(metrics), documented("thinwire train")
                                 | {name for name in others if re.search(rf"^{name}{{", metrics, re.MULTILINE)})
                expect_golden(self, "metrics_train.txt", described(metrics, documented("thinwire train")))
                self.assertEqual(get(address, "/healthz")[0], 200)
                self.assertEqual(get(address, "/readyz")[0], 200)
            finally:
                process.terminate()
                process.wait(WAIT_SECONDS)


if __name__ == "__main__":
    unittest.main()
