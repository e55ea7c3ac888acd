"""Trains with Python workers in sites: aggregators, two servers of the job, and Python processes as the workers of the sites."""

import contextlib
import json
import os
import subprocess
import tempfile
import unittest
from unittest import mock

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

import thinwire  # noqa: E402
import thinwire.torch as tw  # noqa: E402

THINWIRE = os.path.abspath("cli/thinwire")
MOMENTUM = {"optimizer": "momentum", "learning_rate": worker.RATE}
EXAMPLES = 97  # 13 steps of 4 workers with batches of 2
EPOCHS = 2


class Site:
    """A site of the job of SERVERS: its aggregator, and its workers in `workers`. A context manager, which ends all of them."""

    def __init__(self, servers, number, worker_count, backup=0):
        self.servers = servers
        self.number = number
        self.settings = {"site": str(number), "site_workers": str(worker_count), "site_backup": str(backup)}
        self.workers = []
        self._address = "127.0.0.1:0"
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        self.start_aggregator()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for process in [self.aggregator, *self.workers]:
            process.kill()
            process.wait()
        for process in self.workers:
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()
        self.aggregator.stdout.close()
        self._log.close()

    def start_aggregator(self):
        """Starts the aggregator, at its former address if it ran before."""
        command = [jobs.SERVER, "--config", self.servers.job_file, "--addresses", self.servers.addresses, "--listen", self._address]
        for name, value in self.settings.items():
            command += [f"--{name}", value]
        if self.servers.state_dir:
            command += ["--state_dir", os.path.join(self.servers.state_dir, f"site-{self.number}")]
        self.aggregator = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        line = self.aggregator.stdout.readline()
        assert line.startswith("listening "), self.log()
        self._address = line.split()[1]

    def kill_aggregator(self):
        self.aggregator.kill()
        self.aggregator.wait()
        self.aggregator.stdout.close()

    def start(self, scenario, number, without=(), **arguments):
        """Starts the function SCENARIO of worker.py as worker NUMBER of the site, WITHOUT some settings of the site."""
        environment = {"THINWIRE_WORKER": str(number), "THINWIRE_ADDRESSES": self._address, "THINWIRE_CONFIG": self.servers.job_file}
        for name, value in self.settings.items():
            if name not in without:
                environment["THINWIRE_" + name.upper()] = value
        self.workers.append(self.servers.worker(scenario, number, environment, **arguments))
        return self.workers[-1]

    def end_of_aggregator(self):
        """Waits until the aggregator ends, and returns its exit code and its log."""
        return self.aggregator.wait(60), self.log()

    def log(self):
        self._log.seek(0)
        return self._log.read()


class SitesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def on_data(self, start, number, name, **arguments):
        """Starts a worker that writes its examples to the file NAME."""
        arguments = {"example_count": EXAMPLES, "epochs": EPOCHS, "batch_size": 2, "num_workers": 0, **arguments}
        return start("train_on_data", number, record=os.path.join(self.folder, name), **arguments)

    def used(self, name):
        """Returns the examples of a worker, by step. A step that comes again replaces itself."""
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return dict(map(json.loads, file))

    def train_without_sites(self, workers):
        with jobs.Servers(workers=workers, **MOMENTUM) as servers:
            return jobs.results_of([self.on_data(servers.worker, w, f"flat{w}") for w in range(workers)])[0]

    def expect_equal(self, result, expected):
        got, values = (torch.cat([torch.tensor(v) for v in r["parameters"]]) for r in (result, expected))
        first = torch.cat([p.detach().flatten() for p in worker.make_model().parameters()])
        self.assertEqual(got.shape, (16 * 64 + 64 + 64 * 4 + 4,))
        self.assertGreater((values - first).abs().max().item(), 0.01)
        self.assertLessEqual((got - values).abs().max().item(), 1e-6)

    def test_two_sites_of_two_workers_train_as_a_job_of_four(self):
        with jobs.Servers(workers=2, **MOMENTUM) as servers, contextlib.ExitStack() as stack:
            sites = [stack.enter_context(Site(servers, k, 2)) for k in range(2)]
            for site in sites:
                for w in range(2):
                    self.on_data(site.start, w, f"site{site.number}-{w}")
            results = [result for site in sites for result in jobs.results_of(site.workers)]
            for site in sites:
                code, log = site.end_of_aggregator()
                self.assertEqual(code, 0, log)
                self.assertIn("the run of the site has ended", log)
        expected = self.train_without_sites(4)
        for result in results:
            self.assertEqual(result["step"], EPOCHS * 13)
            self.expect_equal(result, expected)
        for site in range(2):
            for w in range(2):
                # Worker w of site k of 2 has the examples of worker 2w + k.
                self.assertEqual(self.used(f"site{site}-{w}"), self.used(f"flat{2 * w + site}"))

    def test_workers_continue_after_their_aggregator_was_killed(self):
        settings = {"durability": "checkpoint", "checkpoint_seconds": 0.2}
        with jobs.Servers(workers=1, **settings, **MOMENTUM) as servers, Site(servers, 0, 2) as site:
            processes = [self.on_data(site.start, w, f"site0-{w}", pause_at=10 if w == 0 else None) for w in range(2)]
            self.assertEqual(processes[0].stdout.readline(), "paused\n")
            site.kill_aggregator()
            processes[0].stdin.write("\n")
            processes[0].stdin.flush()
            site.start_aggregator()
            results = jobs.results_of(processes)
            code, log = site.end_of_aggregator()
            self.assertEqual(code, 0, log)
        expected = self.train_without_sites(2)
        for w, result in enumerate(results):
            self.assertEqual(result["counters"]["rollbacks"], 1)
            self.expect_equal(result, expected)
            self.assertEqual(self.used(f"site0-{w}"), self.used(f"flat{w}"))

    def bytes_of(self, servers):
        """Returns the bytes of the pushes that the servers have received."""
        command = [THINWIRE, "status", "--json", "--addresses", servers.addresses]
        status = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
        return sum(int(server["status"]["push_payload_bytes"]) for server in status["servers"])

    def test_an_aggregator_follows_the_warm_up_and_the_schedule_of_its_workers(self):
        steps = 12
        settings = {"push": "topk", "density": 0.01, "density_warmup": 0.5, "schedule": "cosine", "workers": 1, **MOMENTUM}
        with jobs.Servers(**settings) as servers:
            expected = jobs.result_of(servers.worker("train", 0, steps=steps, planned=steps))
            bytes_ = self.bytes_of(servers)
        with jobs.Servers(**settings) as servers, Site(servers, 0, 1) as site:
            result = jobs.result_of(site.start("train", 0, steps=steps, planned=steps))
            self.assertEqual(self.bytes_of(servers), bytes_)
        self.expect_equal(result, expected)

    def test_a_site_in_mode_backup(self):
        with jobs.Servers(workers=1, **MOMENTUM) as servers, Site(servers, 0, 2, backup=1) as site:
            other = site.start("train", 0, without=["site_backup"])
            self.assertEqual(other.wait(60), 1)
            self.assertRegex(other.stderr.read(), r"RefusedError: .*consistency.mode differs .*expected backup, got sync")
            processes = [site.start("train", w) for w in range(2)]
            for result in jobs.results_of(processes):
                self.assertGreaterEqual(result["step"], worker.STEPS)
            code, log = site.end_of_aggregator()
            self.assertEqual(code, 0, log)
            self.assertIn("backup", log)

    def test_mistakes(self):
        model = worker.make_model()
        for arguments, text in (
            ({"site": 1}, r"site_workers: missing \(expected the number of workers of the site\)"),
            ({"site_workers": 2}, r"site_workers: only valid with site \(expected the number of a site, got 2 and no site\)"),
            ({"site_backup": 1}, r"site_backup: only valid with site \(expected the number of a site, got 1 and no site\)"),
            ({"site": -1, "site_workers": 2}, r"site: wrong value \(expected a whole number from 0, got -1\)"),
            ({"site": 0, "site_workers": 0}, r"site_workers: wrong value \(expected a whole number from 1, got 0\)"),
        ):
            with self.subTest(text), self.assertRaisesRegex(thinwire.Error, text):
                tw.init(worker=0, addresses="127.0.0.1:1", **arguments)
        with mock.patch.dict(os.environ, THINWIRE_SITE="one"), self.assertRaisesRegex(thinwire.Error, "THINWIRE_SITE: wrong value"):
            tw.init(worker=0, addresses="127.0.0.1:1")

        def optimizer(**settings):
            return tw.DistributedOptimizer(model, **settings)

        def local_steps(**arguments):
            return tw.LocalSteps(model, torch.optim.SGD(model.parameters(), lr=0.1), every=4, **arguments)

        config = os.path.join(self.folder, "job.textproto")
        own = {"config": config, "addresses": "127.0.0.1:1", "site": 1, "site_workers": 2}
        no_local_steps = r"local_steps: not possible in a job with sites \(expected 1, got 4\)"
        for job, arguments, make, text in (
            ("", {"site": 2}, optimizer, r"^site: out of range \(expected below 2, the number of workers of the job, got 2\)"),
            ("", {"site_backup": 2}, optimizer,
             r"^site_backup: out of range \(expected below 2, the number of workers of the site, got 2\)"),
            ("", {}, local_steps, no_local_steps),
            ("", {}, lambda: local_steps(fragments=2), no_local_steps),
            ("optimization { optimizer: average }", {}, optimizer, "optimizer: not possible in a job with sites"),
            ("optimization { schedule: cosine }", {}, optimizer, "steps: missing"),
            ("compression { push: topk density_warmup: 0.5 }", {}, optimizer, "steps: missing"),
            ("", {"addresses": "127.0.0.1:1,127.0.0.1:2"}, optimizer, "addresses: "),
            ("", {"config": ""}, lambda: optimizer(workers=2),
             r"config: missing \(expected the job file of the site's aggregator, got none\)"),
            ("", {}, lambda: optimizer(optimizer="adam"),
             r"job.textproto: in a site, all settings are those of this file: optimization.optimizer differs .*expected sgd, got adam"),
        ):
            with open(config, "w", encoding="utf-8") as file:
                file.write("consistency { workers: 2 } " + job)
            tw.init(worker=0, **(own | arguments))
            with self.subTest(text), self.assertRaisesRegex(thinwire.Error, text):
                make()


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
