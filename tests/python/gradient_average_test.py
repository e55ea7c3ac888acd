"""Compares DistributedDataParallel with GradientAverage to DistributedDataParallel alone, and checks failures and mistakes."""

import contextlib
import io
import os
import signal
import tempfile
import time
import unittest

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

import thinwire  # noqa: E402
import thinwire.torch as tw  # noqa: E402

STEPS = 12


class Servers(jobs.Servers):
    """The servers of two workers that average gradients."""

    def __init__(self, **settings):
        super().__init__(workers=2, optimizer="average", **settings)
        self._stores = tempfile.TemporaryDirectory()

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self._stores.cleanup()

    def start_workers(self, **arguments):
        store = os.path.join(self._stores.name, "store")
        return [self.worker("train_ddp", w, store=store, **arguments) for w in range(2)]


class TwoWorkersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Servers() as servers:
            cls.plain = jobs.results_of(servers.start_workers(steps=STEPS, hook=False))[0]["parameters"]

    def check(self, results, steps=STEPS):
        """Checks that both workers made STEPS steps and have equal parameters; returns these."""
        self.assertEqual([result["step"] for result in results], [steps, steps])
        self.assertEqual(results[0]["parameters"], results[1]["parameters"])
        return results[0]["parameters"]

    def train(self, settings=None, **arguments):
        with Servers(**(settings or {})) as servers:
            return jobs.results_of(servers.start_workers(steps=STEPS, **arguments))

    def expect_close_to_plain(self, parameters):
        self.assertEqual([len(values) for values in parameters], [16 * 64, 64, 64 * 4, 4])
        for got, expected in zip(parameters, self.plain):
            self.assertLess((torch.tensor(got) - torch.tensor(expected)).abs().max().item(), 1e-6)

    def loss(self, parameters):
        model = worker.make_model()
        for p, values in zip(model.parameters(), parameters):
            p.data = torch.tensor(values).view(p.shape)
        return worker.loss_of(model, 0, 0).item()

    def test_means_in_fp32_equal_those_of_all_reduce(self):
        self.expect_close_to_plain(self.check(self.train()))

    def test_compressed_means_train_equal_parameters(self):
        plain, first = self.loss(self.plain), worker.loss_of(worker.make_model(), 0, 0).item()
        self.assertLess(plain, 0.8 * first)
        for settings, least_saved in (({"push": "fp8_e5m2", "pull": "fp8_e5m2"}, 3.5),
                                      ({"push": "topk", "density": 0.1, "clip_norm": 5, "pull": "bf16"}, 3)):
            with self.subTest(**settings):
                results = self.train(settings)
                self.assertLess(self.loss(self.check(results)), (first + plain) / 2)
                counters = results[0]["counters"]
                self.assertGreater(counters["push_bytes_raw"] / counters["push_bytes_encoded"], least_saved)

    def test_a_gradient_that_is_not_finite_does_not_count(self):
        results = self.train(nan_at=5)
        parameters = self.check(results)
        self.assertLess(self.loss(parameters), 2 * self.loss(self.plain))
        self.assertGreater(results[1]["counters"]["nonfinite_gradients"], 0)

    def test_no_mean_is_lost_with_a_server_that_has_a_log(self):
        with Servers(durability="log") as servers:
            processes = servers.start_workers(steps=STEPS, seconds=0.1)
            jobs.await_training(processes)
            time.sleep(0.4)
            servers.kill(1)
            servers.start(1)
            self.expect_close_to_plain(self.check(jobs.results_of(processes)))

    def test_a_worker_that_misses_a_mean_ends_with_an_error(self):
        with Servers(lease_seconds=1) as servers:
            processes = servers.start_workers(steps=30, seconds=0.1)
            jobs.await_training(processes)
            processes[1].send_signal(signal.SIGSTOP)
            time.sleep(2.5)  # the servers close steps without worker 1
            processes[1].send_signal(signal.SIGCONT)
            errors = processes[1].communicate(timeout=60)[1]
            self.assertEqual(processes[1].returncode, 1, errors)
            self.assertRegex(errors, r"the mean gradient is lost \(expected step \d+ next, got \d+\)")
            self.assertEqual(jobs.result_of(processes[0])["step"], 30)

    def test_workers_that_are_asked_to_stop_leave_between_two_steps(self):
        with Servers(push="onebit") as servers:
            processes = servers.start_workers(steps=10000, seconds=0.05)
            jobs.await_training(processes)
            time.sleep(0.3)
            for process in processes:
                process.terminate()
            for process in processes:
                errors = process.communicate(timeout=60)[1]
                self.assertEqual(process.returncode, 75, errors)
                self.assertIn("SIGTERM: worker", errors)


class OneWorkerTest(unittest.TestCase):
    """Mistakes and special gradients, with DDP of one process."""

    @classmethod
    def setUpClass(cls):
        cls.stores = tempfile.TemporaryDirectory()
        torch.distributed.init_process_group("gloo", init_method=f"file://{cls.stores.name}/store", rank=0, world_size=1)

    @classmethod
    def tearDownClass(cls):
        torch.distributed.destroy_process_group()
        cls.stores.cleanup()

    def job(self, ddp, **settings):
        def make(job_settings):
            del job_settings["optimizer"]
            state = tw.GradientAverage(ddp, **job_settings)
            ddp.register_comm_hook(state, tw.average_hook)
            return state

        return jobs.Job(make, optimizer="average", **settings)

    def expect_error(self, text, call):
        with self.assertRaises(thinwire.Error) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def test_a_step_without_finite_gradients_has_the_mean_zero(self):
        ddp = torch.nn.parallel.DistributedDataParallel(worker.make_model())
        with self.job(ddp):
            x, y = worker.batch(0, 0)
            for factor in (1, float("nan"), 1):
                ddp.zero_grad()
                torch.nn.functional.cross_entropy(ddp(x * factor), y).backward()
                norms = [p.grad.norm().item() for p in ddp.parameters()]
                (self.assertGreater if factor == 1 else self.assertEqual)(max(norms), 0)

    def test_gradients_of_several_passes(self):
        ddp, plain = torch.nn.parallel.DistributedDataParallel(worker.make_model()), worker.make_model()
        with self.job(ddp):
            with ddp.no_sync():
                worker.loss_of(ddp, 0, 0).backward()
            worker.loss_of(ddp, 0, 1).backward()
        for step in range(2):
            worker.loss_of(plain, 0, step).backward()
        for p, q in zip(ddp.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(p.grad, q.grad))

    def test_mistakes(self):
        model = worker.make_model()
        ddp = torch.nn.parallel.DistributedDataParallel(model)
        tw.init(worker=0, addresses="127.0.0.1:1")
        self.expect_error("ddp: wrong type (expected DistributedDataParallel, got Sequential)",
                          lambda: tw.GradientAverage(model))
        self.expect_error("optimizer: not a setting of GradientAverage (expected none, got 'sgd')",
                          lambda: tw.GradientAverage(ddp, optimizer="sgd"))
        self.expect_error("learning_rate: only valid with an optimizer other than average (got optimizer: average)",
                          lambda: tw.GradientAverage(ddp, learning_rate=0.1))
        self.expect_error("average is only valid with mode: sync (got mode: async)",
                          lambda: tw.GradientAverage(ddp, mode="async"))
        self.expect_error("average is only valid with durability: none or log (got durability: checkpoint)",
                          lambda: tw.GradientAverage(ddp, durability="checkpoint"))
        self.expect_error("average is only valid with a pull other than delta",
                          lambda: tw.GradientAverage(ddp, pull="delta_fp8_e5m2"))
        for make in (lambda: tw.DistributedOptimizer(model, "average"),
                     lambda: tw.LocalSteps(model, torch.optim.SGD(model.parameters(), lr=1), 2, "average")):
            self.expect_error("optimizer: average is only valid with GradientAverage", make)

    def test_sparse_gradients_are_refused(self):
        ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(10, 4, sparse=True))
        with self.job(ddp), contextlib.redirect_stderr(io.StringIO()), self.assertRaises(RuntimeError) as caught:
            ddp(torch.tensor([1, 2])).sum().backward()
        self.assertIn("sparse gradients (expected dense ones", str(caught.exception))

    def test_after_close_a_backward_pass_raises_an_error(self):
        ddp = torch.nn.parallel.DistributedDataParallel(worker.make_model())
        with self.job(ddp) as state:
            state.close()
            with self.assertRaises(RuntimeError) as caught:
                ddp(worker.batch(0, 0)[0]).sum().backward()
        self.assertIn("client: closed", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
