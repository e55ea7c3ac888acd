"""Trains with workers of two processes, each with a stage of a pipeline (argument members), through faults."""

import os
import signal
import time
import unittest

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

from thinwire import _client  # noqa: E402

MOMENTUM = {"optimizer": "momentum", "learning_rate": worker.RATE, "workers": 1, "members": 2}
STAGES = (slice(0, 2), slice(2, 4))  # of the parameters of the whole model


class MembersTest(unittest.TestCase):
    def expect_plain_parameters(self, results, workers, steps):
        whole = worker.plain_parameters(workers, steps)
        for result in results:
            self.assertEqual(result["step"], steps)
            for name in ("parameters", "exact"):
                self.assertEqual(len(result[name]), 2)
                for got, expected in zip(result[name], whole[STAGES[result["stage"]]], strict=True):
                    for a, b in zip(got, expected, strict=True):
                        self.assertAlmostEqual(a, b, delta=1e-6)

    def start(self, servers, replica=0, **arguments):
        """Starts both processes of a worker."""
        return jobs.start_group(self, servers, "train_pipeline", replica=replica, **arguments)

    def errors_of(self, processes):
        """Waits until both processes have failed and returns their messages."""
        errors = []
        for process in processes:
            errors.append(process.communicate(timeout=100)[1])
            self.assertNotEqual(process.returncode, 0, errors)
        return "".join(errors)

    def test_two_workers_of_two_stages_under_torchrun_train_as_two_processes_do(self):
        settings = {**MOMENTUM, "workers": 2, "servers": 2, "start_timeout_seconds": 60}
        results = jobs.results_under_torchrun("train_pipeline", settings, steps=12, store=None)
        self.assertEqual(sorted((r["worker"], r["stage"]) for r in results), [(0, 0), (0, 1), (1, 0), (1, 1)])
        self.expect_plain_parameters(results, workers=2, steps=12)

    def test_other_modes_with_one_worker_train_as_one_process_does(self):
        for mode in ({"mode": "async"}, {"mode": "ssp", "slack": 2}, {"durability": "log"}):
            with self.subTest(mode), jobs.Servers(**MOMENTUM, **mode) as servers:
                self.expect_plain_parameters(jobs.results_of(self.start(servers, steps=8)), workers=1, steps=8)

    def test_a_process_sends_the_bytes_of_its_own_parameters(self):
        with jobs.Servers(**MOMENTUM, push="fp8_e5m2", pull="bf16") as servers:
            results = jobs.results_of(self.start(servers, steps=12))
        values = [16 * 64 + 64, 64 * 4 + 4]
        for result in results:
            self.assertEqual(result["counters"]["push_bytes_raw"], 12 * 4 * values[result["stage"]])
            self.assertLess(result["counters"]["push_bytes_encoded"], result["counters"]["push_bytes_raw"] / 3)

    def test_servers_that_go_back_to_a_checkpoint(self):
        with jobs.Servers(**MOMENTUM, durability="checkpoint", checkpoint_seconds=0.2) as servers:
            processes = self.start(servers, steps=100, seconds=0.02)
            jobs.await_training(processes)
            servers.await_checkpoints()
            servers.kill(1)
            servers.start(1)
            results = jobs.results_of(processes)
        self.expect_plain_parameters(results, workers=1, steps=100)

    def test_a_lost_process_ends_its_worker_and_others_go_on(self):
        with jobs.Servers(**{**MOMENTUM, "workers": 2}, push="fp8_e5m2") as servers:
            staying = self.start(servers, 0, steps=60, pause_at=30)
            lost = self.start(servers, 1, steps=60, ends_at=10)
            jobs.await_training(staying)
            self.errors_of(lost)
            self.assertEqual(lost[1].returncode, 9)
            # The staying worker reaches step 30 alone.
            again = self.start(servers, 1, steps=60)
            deadline = time.monotonic() + 60
            while "worker 1 joined as incarnation 2" not in servers.log(1):
                self.assertLess(time.monotonic(), deadline, servers.log(0))
                time.sleep(0.05)
            staying[0].stdin.write("\n")
            staying[0].stdin.flush()
            first, second = jobs.results_of(staying), jobs.results_of(again)
        for one, other in zip(first, second, strict=True):
            self.assertEqual((one["step"], other["step"]), (60, 60))
            self.assertEqual(one["exact"], other["exact"])

    def test_a_late_worker_skips_steps_with_all_its_processes(self):
        with jobs.Servers(**{**MOMENTUM, "workers": 2}, mode="backup", backup=1) as servers:
            fast = self.start(servers, 0, steps=100)
            slow = self.start(servers, 1, steps=100, seconds=0.01)
            jobs.results_of(fast)
            steps = [result["step"] for result in jobs.results_of(slow)]
        self.assertEqual(steps[0], steps[1])
        self.assertGreaterEqual(steps[0], 100)

    def test_sigterm_of_one_process_stops_its_worker_in_order(self):
        with jobs.Servers(**MOMENTUM, push="topk", density=0.01) as servers:
            processes = self.start(servers, steps=10000, seconds=0.02)
            jobs.await_training(processes)
            processes[1].send_signal(signal.SIGTERM)
            for process in processes:
                _, errors = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 75, errors)
                self.assertRegex(errors, r"thinwire: SIGTERM: worker 0 leaves before step \d+\n")

    def test_wrong_divisions_are_refused(self):
        with jobs.Servers(**MOMENTUM) as servers:
            self.assertIn("parameter 0.weight: in the models of two processes (expected another name in each part, as in a part of one "
                          "whole model, got it in members 0 and 1)", self.errors_of(self.start(servers, steps=1, names=("0", "0"))))
        with jobs.Servers(**{**MOMENTUM, "members": 1}) as servers:
            self.assertIn("members", self.errors_of(self.start(servers, steps=1)))
        with jobs.Servers(**MOMENTUM) as servers:
            servers.settings.pop("members")
            whole = servers.worker("train", 0, {"THINWIRE_WORKER": "0", "THINWIRE_MEMBERS": "2"}, steps=1)
            errors = whole.communicate(timeout=60)[1]
            self.assertIn("members: each process must own a part of the model", errors)
        with self.assertRaisesRegex(_client.Error, "gradient_clip: not possible with members above 1 \\(expected 0"):
            jobs.job_text({"members": 2, "gradient_clip": 1})


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
