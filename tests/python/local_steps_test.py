"""Compares LocalSteps with the same computation in plain PyTorch, and checks its mistakes and rollbacks."""

import contextlib
import io
import os
import unittest

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

import thinwire  # noqa: E402
import thinwire.torch as tw  # noqa: E402

EVERY = 4


def inner_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=worker.RATE, momentum=0.9)


def local_step(model, optimizer, number, step):
    optimizer.zero_grad()
    worker.loss_of(model, number, step).backward()
    optimizer.step()


def plain_training(workers, exchanges, outer_optimizer, every=EVERY):
    """Returns the parameters of WORKERS workers after EXCHANGES, with the outer optimizer on their mean difference."""
    model = worker.make_model()
    outer = outer_optimizer(model.parameters())
    locals_ = [worker.make_model() for _ in range(workers)]
    inner = [inner_optimizer(m) for m in locals_]
    for exchange in range(exchanges):
        for number in range(workers):
            locals_[number].load_state_dict(model.state_dict())
            for step in range(exchange * every, (exchange + 1) * every):
                local_step(locals_[number], inner[number], number, step)
        for p, *own in zip(model.parameters(), *(m.parameters() for m in locals_)):
            p.grad = sum((p - q).detach() for q in own) / workers
        outer.step()
    return worker.values_of(model)


def plain_streaming(workers, exchanges, overlap, mixing):
    """Returns the parameters of workers that take OVERLAP of EVERY local steps during each exchange (docs/streaming.md), and then push
    the rest. The servers subtract the mean difference."""
    models = [worker.make_model() for _ in range(workers)]
    inner = [inner_optimizer(model) for model in models]
    xs = [list(model.parameters()) for model in models]
    with torch.no_grad():
        r = [p.detach().clone() for p in xs[0]]
        bases = [[p.detach().clone() for p in x] for x in xs]

    def train(first, end):
        for number in range(workers):
            for step in range(first, end):
                local_step(models[number], inner[number], number, step)

    def push():
        with torch.no_grad():
            for i, values in enumerate(r):
                values -= sum(base[i] - x[i] for base, x in zip(bases, xs)) / workers
            for base, x in zip(bases, xs):
                for b, p in zip(base, x):
                    b.copy_(p)

    def mix(own):
        with torch.no_grad():
            for values in (*bases, *xs):
                for v, server in zip(values, r):
                    v.copy_(own * v + (1 - own) * server)

    for exchange in range(exchanges):
        first = exchange * EVERY
        train(first, first + EVERY - overlap)
        push()
        train(first + EVERY - overlap, first + EVERY)
        mix(mixing)
    push()
    mix(0)
    return worker.values_of(models[0])


class Job(jobs.Job):
    """A job with LocalSteps; by default, the servers take over the parameters."""

    def __init__(self, model, inner, every=EVERY, examples=1, **streaming):
        def make(settings):
            return tw.LocalSteps(model, inner, every, settings.pop("optimizer"), settings.pop("learning_rate"),
                                 examples=examples, **streaming, **settings)

        super().__init__(make, optimizer="sgd", learning_rate=1)


class LocalStepsTest(unittest.TestCase):
    def expect_close(self, got, expected, tolerance):
        self.assertEqual([len(a) for a in got], [16 * 64, 64, 64 * 4, 4])
        for a, b in zip(got, expected):
            self.assertLessEqual((torch.tensor(a) - torch.tensor(b)).abs().max().item(), tolerance)

    def train(self, servers, **arguments):
        processes = [servers.worker("train_locally", w, every=EVERY, **arguments) for w in range(2)]
        return jobs.results_of(processes)

    def test_two_workers_average_their_parameters(self):
        with jobs.Servers(workers=2, optimizer="sgd", learning_rate=1) as servers:
            results = self.train(servers, exchanges=6)
        expected = plain_training(2, 6, lambda parameters: torch.optim.SGD(parameters, lr=1))
        for result in results:
            self.expect_close(result["parameters"], expected, 1e-5)
            self.assertEqual(result["step"], 6)
            self.assertEqual(result["counters"]["push_bytes_raw"], 6 * 4 * 1348)

    def test_nesterov_at_the_servers_is_diloco(self):
        with jobs.Servers(workers=2, optimizer="nesterov", learning_rate=0.7, momentum=0.5) as servers:
            results = self.train(servers, exchanges=6)
        expected = plain_training(
            2, 6, lambda parameters: torch.optim.SGD(parameters, lr=0.7, momentum=0.5, nesterov=True))
        for result in results:
            self.expect_close(result["parameters"], expected, 1e-5)

    def test_compressed_exchanges_learn_in_every_mode(self):
        first = worker.loss_of(worker.make_model(), 0, 0).item()
        for settings in ({}, {"mode": "async"}, {"mode": "ssp", "slack": 2}, {"mode": "backup", "backup": 1}):
            with self.subTest(**settings), jobs.Servers(workers=2, optimizer="sgd", learning_rate=0.7, push="fp8_e5m2",
                                                        pull="bf16", **settings) as servers:
                result = self.train(servers, exchanges=12)[0]
                model = worker.make_model()
                for p, values in zip(model.parameters(), result["parameters"]):
                    p.data = torch.tensor(values).view(p.shape)
                self.assertLess(worker.loss_of(model, 0, 0).item(), 0.7 * first)

    def test_workers_follow_servers_that_continue_from_a_checkpoint(self):
        exchanges = 60
        with jobs.Servers(workers=2, optimizer="sgd", learning_rate=1, durability="checkpoint",
                          checkpoint_seconds=0.2) as servers:
            processes = [servers.worker("train_locally", w, every=EVERY, exchanges=exchanges, seconds=0.04) for w in range(2)]
            jobs.await_training(processes)
            servers.await_checkpoints()
            servers.kill(1)
            servers.start(1)
            results = jobs.results_of(processes)
        self.assertEqual(results[0]["parameters"], results[1]["parameters"])
        for result in results:
            self.assertEqual((result["counters"]["rollbacks"], result["step"]), (1, exchanges))

    def test_fragments_without_overlap_are_plain_local_steps_of_one_worker(self):
        # The servers take over the parameters of the only worker, whenever it pushes them.
        model, plain = worker.make_model(), worker.make_model()
        inner, plain_inner = inner_optimizer(model), inner_optimizer(plain)
        with Job(model, inner, fragments=2) as optimizer:
            for step in range(3 * EVERY):
                local_step(model, optimizer, 0, step)
                local_step(plain, plain_inner, 0, step)
            self.assertEqual((optimizer.step_number, optimizer.local_steps), (3, 0))
            with self.assertRaisesRegex(thinwire.Error, "sync: no local step"):
                optimizer.sync()
            local_step(model, optimizer, 0, 3 * EVERY)
            local_step(plain, plain_inner, 0, 3 * EVERY)
            optimizer.sync()
            self.assertEqual((optimizer.step_number, optimizer.local_steps), (4, 0))
            exact = optimizer.exact_parameters()
        for (name, p), q in zip(model.named_parameters(), plain.parameters()):
            self.assertLessEqual((p - q).abs().max().item(), 1e-5)
            self.assertTrue(torch.equal(exact[name], p))

    def test_two_workers_go_on_during_an_exchange(self):
        streaming = {"overlap_steps": 2, "mixing": 0.25}
        with jobs.Servers(workers=2, optimizer="sgd", learning_rate=1) as servers:
            results = self.train(servers, exchanges=5, streaming=streaming)
        expected = plain_streaming(2, 5, overlap=2, mixing=0.25)
        self.assertEqual(results[0]["parameters"], results[1]["parameters"])
        self.expect_close(results[0]["parameters"], expected, 1e-5)
        self.assertEqual(results[0]["step"], 6)
        # Another mixing gives other parameters.
        other = plain_streaming(2, 5, overlap=2, mixing=0.5)
        self.assertGreater(max(abs(a - b) for p, q in zip(expected, other) for a, b in zip(p, q)), 1e-3)

    def test_fragments_learn_in_every_mode_and_follow_servers_back(self):
        streaming = {"fragments": 2, "overlap_steps": 1}
        first = worker.loss_of(worker.make_model(), 0, 0).item()
        for settings in ({}, {"mode": "async"}, {"mode": "ssp", "slack": 2}, {"mode": "backup", "backup": 1}):
            with self.subTest(**settings), jobs.Servers(workers=2, optimizer="sgd", learning_rate=0.7, push="fp4_e3m0",
                                                        pull="bf16", **settings) as servers:
                result = self.train(servers, exchanges=12, streaming=streaming)[0]
                model = worker.make_model()
                for p, values in zip(model.parameters(), result["parameters"]):
                    p.data = torch.tensor(values).view(p.shape)
                self.assertLess(worker.loss_of(model, 0, 0).item(), 0.7 * first)
        with jobs.Servers(workers=2, optimizer="sgd", learning_rate=1, durability="checkpoint",
                          checkpoint_seconds=0.2) as servers:
            processes = [servers.worker("train_locally", w, every=EVERY, exchanges=60, seconds=0.04, streaming=streaming)
                         for w in range(2)]
            jobs.await_training(processes)
            servers.await_checkpoints()
            servers.kill(1)
            servers.start(1)
            results = jobs.results_of(processes)
        self.assertEqual(results[0]["parameters"], results[1]["parameters"])
        # A step that the rollback has interrupted is begun anew, so the last sync() may complete one more.
        self.assertEqual(results[0]["step"], results[1]["step"])
        for result in results:
            self.assertEqual(result["counters"]["rollbacks"], 1)
            self.assertIn(result["step"], (61, 62))

    def test_sync_exchanges_the_last_steps_and_their_weight_is_the_number_of_their_examples(self):
        model, plain = worker.make_model(), worker.make_model()
        inner, plain_inner = inner_optimizer(model), inner_optimizer(plain)
        with Job(model, inner, examples=32) as optimizer:
            for step in range(EVERY + 2):
                local_step(model, optimizer, 0, step)
                local_step(plain, plain_inner, 0, step)
            self.assertEqual((optimizer.step_number, optimizer.local_steps), (1, 2))
            optimizer.sync()
            self.assertEqual((optimizer.step_number, optimizer.local_steps), (2, 0))
            exact = optimizer.exact_parameters()
        for (name, p), q in zip(model.named_parameters(), plain.parameters()):
            self.assertLessEqual((p - q).abs().max().item(), 1e-5)
            self.assertTrue(torch.equal(exact[name], p))

    def test_parameters_of_half_precision_and_a_scheduler_of_the_inner_optimizer(self):
        model = worker.make_model().bfloat16()
        inner = inner_optimizer(model)
        scheduler = torch.optim.lr_scheduler.StepLR(inner, 2, gamma=0.5)
        with Job(model, inner, every=2) as optimizer:
            addresses = [p.data_ptr() for p in model.parameters()]
            before = [p.detach().clone() for p in model.parameters()]
            for step in range(4):
                x, y = worker.batch(0, step)
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x.bfloat16()).float(), y).backward()
                optimizer.step()
                scheduler.step()
            exact = optimizer.exact_parameters()
            self.assertEqual([p.data_ptr() for p in model.parameters()], addresses)
        self.assertEqual(inner.param_groups[0]["lr"], worker.RATE / 4)
        for (name, p), old in zip(model.named_parameters(), before):
            self.assertEqual(p.dtype, torch.bfloat16)
            self.assertFalse(torch.equal(p, old))
            self.assertTrue(torch.equal(exact[name].bfloat16(), p))

    def test_a_difference_that_is_not_finite_is_ignored(self):
        model = worker.make_model()
        with Job(model, inner_optimizer(model), every=1) as optimizer:
            before = worker.values_of(model)
            optimizer.zero_grad()
            (model(worker.batch(0, 0)[0]).sum() * float("inf")).backward()
            optimizer.step()
            self.assertEqual(worker.values_of(model), before)
            self.assertGreater(optimizer.counters["nonfinite_gradients"], 0)

    def test_mistakes(self):
        model, other = worker.make_model(), worker.make_model()
        tw.init(worker=0, addresses="127.0.0.1:9")
        for every in (0, 2.5, "8"):
            with self.assertRaisesRegex(thinwire.Error, r"every: wrong value \(expected a whole number from 1, got"):
                tw.LocalSteps(model, inner_optimizer(model), every)
        with self.assertRaisesRegex(thinwire.Error, "optimizer: wrong type .*got str"):
            tw.LocalSteps(model, "adam", 4)
        with self.assertRaisesRegex(thinwire.Error, "parameter 0.weight: not in the optimizer"):
            tw.LocalSteps(model, inner_optimizer(other), 4)
        both = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=1)
        with self.assertRaisesRegex(thinwire.Error, r"optimizer: has other parameters \(expected the 4 .* got 8"):
            tw.LocalSteps(model, both, 4)
        for mistake, error in (({"fragments": 5}, r"fragments: out of range \(expected 1 to 4, got 5"),
                               ({"fragments": 2, "overlap_steps": 2}, r"overlap_steps: out of range \(expected 0 to 1, got 2"),
                               ({"overlap_steps": 1, "mixing": 2}, "mixing: out of range"),
                               ({"fragments": "2"}, "fragments: wrong value .*got '2'"),
                               ({"fragments": 2, "clip_norm": 1.0}, "fragments")):
            with self.assertRaisesRegex(thinwire.Error, error):
                tw.LocalSteps(model, inner_optimizer(model), 4, **mistake)
        half = worker.make_model().bfloat16()
        with self.assertRaisesRegex(thinwire.Error, "parameter 0.weight: wrong type for fragments .*got torch.bfloat16"):
            tw.LocalSteps(half, inner_optimizer(half), 4, fragments=2)
        with self.assertRaisesRegex(thinwire.Error, "local_steps: describes the task of the C"):
            tw.LocalSteps(model, inner_optimizer(model), 4, local_steps=4)

    def test_mistakes_while_training(self):
        model = worker.make_model()
        with Job(model, inner_optimizer(model)) as optimizer:
            with self.assertRaisesRegex(thinwire.Error, "sync: no local step since the last exchange"):
                optimizer.sync()
            local_step(model, optimizer, 0, 0)
            model.extra = torch.nn.Linear(2, 2)
            with self.assertRaisesRegex(thinwire.Error, "parameter extra.weight: new .*when LocalSteps was made"):
                optimizer.sync()
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                optimizer.close()
            self.assertIn("1 local steps are not exchanged", errors.getvalue())


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
