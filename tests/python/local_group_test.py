"""Trains with workers that consist of two processes each (argument local_group), through faults."""

import os
import signal
import unittest

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

MOMENTUM = {"optimizer": "momentum", "learning_rate": worker.RATE, "workers": 1}


class LocalGroupTest(unittest.TestCase):
    def expect_plain_parameters(self, result, workers, steps):
        self.assertEqual((result["step"], result["workers"]), (steps, workers))
        for got, expected in zip(result["parameters"], worker.plain_parameters(workers, steps), strict=True):
            for a, b in zip(got, expected, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-6)

    def start(self, servers, **arguments):
        """Starts both processes of worker 0."""
        return jobs.start_group(self, servers, "train_in_group", **arguments)

    def test_two_workers_of_two_processes_under_torchrun_train_as_two_processes_do(self):
        settings = {**MOMENTUM, "workers": 2, "servers": 2, "start_timeout_seconds": 60}
        results = jobs.results_under_torchrun("train_in_group", settings, steps=12, store=None)
        self.assertEqual(sorted(result["worker"] for result in results), [0, 0, 1, 1])
        for result in results:
            self.expect_plain_parameters(result, workers=2, steps=12)

    def test_a_server_that_goes_back_to_a_checkpoint(self):
        with jobs.Servers(**MOMENTUM, durability="checkpoint", checkpoint_seconds=0.2) as servers:
            processes = self.start(servers, steps=100, seconds=0.02)
            jobs.await_training(processes)
            servers.await_checkpoints()
            servers.kill(1)
            servers.start(1)
            results = jobs.results_of(processes)
        for result in results:
            self.expect_plain_parameters(result, workers=1, steps=100)

    def test_a_dead_process_ends_the_group(self):
        with jobs.Servers(**MOMENTUM) as servers:
            processes = self.start(servers, steps=12, ends_at=3)
            _, errors = processes[0].communicate(timeout=60)
            self.assertEqual(processes[1].wait(60), 9)
        self.assertEqual(processes[0].returncode, 1, errors)
        self.assertRegex(errors, r"thinwire.Error: local_group: lost a process of the group \(expected 2 processes that train together\)")

    def test_a_lost_server_is_named_by_all_processes(self):
        with jobs.Servers(**MOMENTUM, silence_seconds=1) as servers:
            processes = self.start(servers, steps=10000, seconds=0.02)
            jobs.await_training(processes)
            servers.signal(1, signal.SIGSTOP)
            try:
                for process in processes:
                    _, errors = process.communicate(timeout=60)
                    self.assertEqual(process.returncode, 1)
                    self.assertRegex(errors, r"thinwire.ServerLostError: .*server 1 \(127.0.0.1:")
            finally:
                servers.signal(1, signal.SIGCONT)

    def test_sigterm_stops_all_processes_in_order(self):
        with jobs.Servers(**MOMENTUM, push="topk", density=0.01) as servers:
            processes = self.start(servers, steps=10000, seconds=0.02)
            jobs.await_training(processes)
            for process in reversed(processes):
                process.send_signal(signal.SIGTERM)
            for process in processes:
                _, errors = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 75, errors)
                self.assertRegex(errors, r"thinwire: SIGTERM: worker 0 leaves before step \d+\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
