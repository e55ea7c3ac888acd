"""Trains a model with real servers and several Python workers in every mode, through faults and interruptions."""

import glob
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

THINWIRE = os.path.abspath("cli/thinwire")
MOMENTUM = {"workers": 2, "optimizer": "momentum", "learning_rate": worker.RATE}


def plain_training(workers, steps, optimizer):
    """Returns the parameters after STEPS of plain PyTorch with the mean gradient of WORKERS workers."""
    model = worker.make_model()
    optimizer = optimizer(model.parameters())
    for step in range(steps):
        optimizer.zero_grad()
        sum(worker.loss_of(model, w, step) / workers for w in range(workers)).backward()
        optimizer.step()
    return worker.values_of(model)


def momentum_of_torch(parameters):
    return torch.optim.SGD(parameters, lr=worker.RATE, momentum=0.9)


class ClusterTest(unittest.TestCase):
    overlap = True

    def trainer(self, servers, number, **arguments):
        return servers.worker("train", number, overlap=self.overlap, **arguments)

    def train(self, servers, workers=2, steps=worker.STEPS):
        return jobs.results_of([self.trainer(servers, w, steps=steps) for w in range(workers)])

    def expect_equal(self, got, expected, tolerance):
        self.assertEqual(len(got), len(expected))
        compared = 0
        for a, b in zip(got, expected):
            self.assertEqual(len(a), len(b))
            for x, y in zip(a, b):
                self.assertAlmostEqual(x, y, delta=tolerance)
                compared += 1
        self.assertEqual(compared, 16 * 64 + 64 + 64 * 4 + 4)

    def first_loss(self):
        return worker.loss_of(worker.make_model(), 0, 0).item()

    def test_sync_training_equals_plain_pytorch(self):
        with jobs.Servers(**MOMENTUM) as servers:
            results = self.train(servers)
        expected = plain_training(2, worker.STEPS, momentum_of_torch)
        for result in results:
            self.expect_equal(result["parameters"], expected, 1e-6)
            self.assertEqual(result["step"], worker.STEPS)

    def test_the_other_modes_learn(self):
        for settings in ({"mode": "async"}, {"mode": "ssp", "slack": 2}, {"mode": "backup", "backup": 1}):
            with self.subTest(**settings), jobs.Servers(workers=2, learning_rate=0.1, **settings) as servers:
                results = self.train(servers, steps=60)
                self.assertLess(results[0]["loss"], 0.85 * self.first_loss())

    def test_compressed_training_learns_and_sends_fewer_bytes(self):
        with jobs.Servers(**MOMENTUM, push="fp8_e5m2", pull="bf16") as servers:
            result = self.train(servers)[0]
        self.assertLess(result["loss"], 0.7 * self.first_loss())
        self.assertEqual(result["counters"]["push_bytes_raw"], worker.STEPS * 4 * 1348)
        self.assertLess(result["counters"]["push_bytes_encoded"], 0.3 * result["counters"]["push_bytes_raw"])

    def test_a_killed_server_with_a_log_returns_and_the_job_ends_with_the_same_parameters(self):
        with jobs.Servers(**MOMENTUM, durability="log") as servers:
            processes = [self.trainer(servers, 0, pause_at=10), self.trainer(servers, 1)]
            self.assertEqual(processes[0].stdout.readline(), "paused\n")
            servers.kill(1)
            processes[0].stdin.write("\n")
            processes[0].stdin.flush()
            servers.start(1)
            results = jobs.results_of(processes)
        expected = plain_training(2, worker.STEPS, momentum_of_torch)
        for result in results:
            self.expect_equal(result["parameters"], expected, 1e-6)
        self.assertGreaterEqual(results[0]["counters"]["rejoins"], 1)

    def test_workers_follow_servers_that_continue_from_a_checkpoint(self):
        steps = 120
        with jobs.Servers(**MOMENTUM, durability="checkpoint", checkpoint_seconds=0.2) as servers:
            processes = [self.trainer(servers, w, steps=steps, step_seconds=0.02) for w in range(2)]
            jobs.await_training(processes)
            servers.await_checkpoints()
            servers.kill(1)
            servers.start(1)
            results = jobs.results_of(processes)
        expected = plain_training(2, steps, momentum_of_torch)
        for result in results:
            self.assertEqual(result["counters"]["rollbacks"], 1)
            self.expect_equal(result["parameters"], expected, 1e-5)

    def end_of(self, process):
        """Returns the exit code of a worker and what it has reported."""
        _, errors = process.communicate(timeout=60)
        return process.returncode, errors

    def test_a_worker_that_is_asked_to_stop_sends_its_residual_and_the_other_one_goes_on(self):
        with jobs.Servers(workers=2, learning_rate=worker.RATE, push="topk", density=0.01, lease_seconds=30) as servers:
            processes = [self.trainer(servers, w, steps=60, step_seconds=0.02) for w in range(2)]
            jobs.await_training(processes)
            time.sleep(0.3)
            processes[1].send_signal(signal.SIGTERM)
            code, errors = self.end_of(processes[1])
            other = jobs.result_of(processes[0])
        self.assertEqual(code, 75, errors)
        self.assertRegex(errors, r"thinwire: SIGTERM: worker 1 leaves before step \d+\n")
        self.assertNotIn("residual", errors)
        self.assertEqual(other["step"], 60)

    def test_workers_that_are_all_asked_to_stop_leave_before_the_same_step_and_keep_their_residuals(self):
        with jobs.Servers(workers=2, learning_rate=worker.RATE, push="topk", density=0.01, durability="checkpoint") as servers:
            folder = servers.state_dir
            processes = [self.trainer(servers, w, steps=1000, step_seconds=0.02, state_dir=folder) for w in range(2)]
            jobs.await_training(processes)
            time.sleep(0.3)
            for process in processes:
                process.send_signal(signal.SIGTERM)
            ends = [self.end_of(process) for process in processes]
            saved = sorted(os.path.relpath(path, folder) for n in range(2) for path in glob.glob(f"{folder}/worker-{n}/residuals-*"))
        steps = {re.search(r"leaves before step (\d+)\n", errors).group(1) for _, errors in ends}
        self.assertEqual(([code for code, _ in ends], len(steps)), ([75, 75], 1), ends)
        for number in range(2):
            self.assertIn(f"worker-{number}/residuals-{min(steps)}", saved)

    def test_a_worker_that_an_operator_removes_ends_with_code_0_and_the_other_one_goes_on(self):
        with jobs.Servers(workers=2, learning_rate=worker.RATE, push="topk", density=0.01, lease_seconds=30) as servers:
            processes = [self.trainer(servers, w, steps=100, step_seconds=0.02) for w in range(2)]
            jobs.await_training(processes)
            scaled = subprocess.run([THINWIRE, "scale", "--addresses", servers.addresses, "--workers", "1"],
                                    capture_output=True, text=True)
            self.assertEqual(scaled.stdout, "workers 2 -> 1\n", scaled.stderr)
            code, errors = self.end_of(processes[1])
            other = jobs.result_of(processes[0])
        self.assertEqual(code, 0, errors)
        step = int(re.search(r"^thinwire: an operator removed this worker: worker 1 leaves before step (\d+)\n$", errors).group(1))
        self.assertLess(step, 100)
        self.assertEqual(other["step"], 100)

    def test_control_c_ends_a_wait_for_another_worker(self):
        with jobs.Servers(workers=2, learning_rate=worker.RATE) as servers:
            other = servers.worker("join_only", 1)
            process = servers.worker("wait_for_interrupt", 0, overlap=self.overlap)
            self.assertEqual(other.stdout.readline(), "joined\n")
            self.assertEqual(process.stdout.readline(), "waiting\n")
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(0.3)  # step() waits for worker 1 in most runs; the result is the same before
            process.send_signal(signal.SIGINT)
            self.assertEqual(jobs.result_of(process), "interrupted")
            other.stdin.close()
            other.stdin = None
            self.assertEqual(jobs.result_of(other), "left")

    def test_control_c_ends_a_wait_for_a_server_that_does_not_answer(self):
        with jobs.Servers(workers=1, learning_rate=worker.RATE) as servers:
            process = servers.worker("wait_for_interrupt", 0, overlap=self.overlap)
            self.assertEqual(process.stdout.readline(), "waiting\n")
            servers.signal(1, signal.SIGSTOP)
            try:
                process.stdin.write("\n")
                process.stdin.flush()
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                self.assertEqual(jobs.result_of(process), "interrupted")
            finally:
                servers.signal(1, signal.SIGCONT)


class OverlapForwardTest(ClusterTest):
    """The same with parameters that arrive in the forward pass."""

    overlap = "forward"


class ProcessTest(unittest.TestCase):
    def launch(self, *command):
        return subprocess.run(
            [sys.executable, "-m", "thinwire.launch", "--workers", "2", "--servers", "2", "--server_program", jobs.SERVER, *command],
            env=dict(os.environ, PYTHONPATH=jobs.PYTHONPATH), capture_output=True, text=True, timeout=60)

    def test_a_forked_process_cannot_use_the_client_and_the_parent_goes_on(self):
        with jobs.Servers(workers=1, learning_rate=worker.RATE) as servers:
            result = jobs.result_of(servers.worker("fork", 0))
        self.assertIn("used in a forked process", result["refused"])
        self.assertEqual((result["code"], result["step"]), (3, 2))

    def test_launch_ends_with_the_exit_code_of_a_worker_that_fails(self):
        program = os.path.join(os.environ["TEST_TMPDIR"], "program.py")
        with open(program, "w", encoding="utf-8") as file:
            file.write(
                "import os, sys\nsys.path.insert(0, os.getcwd())\n"
                "from tests.python import worker\n"
                "worker.train({'optimizer': 'momentum', 'learning_rate': 0.05}, steps=3)\n"
                "sys.exit(int(sys.argv[1]) if worker.WORKER == 1 else 0)\n")
        done = self.launch(program, "7")
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertIn("worker 1 failed with exit code 7", done.stderr)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
