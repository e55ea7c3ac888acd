"""Counts the examples that workers with an ElasticSampler use, while workers come, go and die and servers go back."""

import collections
import glob
import json
import os
import signal
import subprocess
import time
import unittest

from tests.python import jobs

os.environ["THINWIRE_ADDRESSES"], os.environ["THINWIRE_WORKER"] = "", "0"
from tests.python import worker  # noqa: E402

import torch  # noqa: E402

import thinwire  # noqa: E402
import thinwire.torch as tw  # noqa: E402
from thinwire import _client  # noqa: E402

THINWIRE = os.path.abspath("cli/thinwire")
SGD = {"optimizer": "sgd", "learning_rate": worker.RATE}


def number(value):
    """Returns VALUE as a varint of a protobuf message."""
    low = value & 127
    return bytes([low]) if value < 128 else bytes([low | 128]) + number(value >> 7)


def deal(count, step, members, departed=None):
    """Returns a Deal of proto/control.proto. DEPARTED has the `next` of workers."""
    text = b"\x08" + number(step) + b"\x28" + number(count)
    for member in members:
        text += b"\x10" + number(member)
    for who, next_step in (departed or {}).items():
        inner = b"\x08" + number(who) + b"\x10" + number(next_step)
        text += b"\x1a" + number(len(inner)) + inner
    return text


class FakeClient:
    """A client that has the deals of the attribute of this name."""

    def __init__(self):
        self.deals = []
        self.epochs = []

    def await_deals(self, step, known):
        return self.deals[known:]

    def begin_epoch(self, epoch, begin):
        self.epochs.append((epoch, begin))


class Sampler(tw.ElasticSampler):
    """A sampler whose optimizer is the test."""

    def __init__(self, count, batch_size, worker=0, workers=2, batch_count=1):
        super().__init__(range(count), batch_size)
        self.client = FakeClient()
        self.attach(worker, workers, batch_count)
        self.begin(0, self.client)

    def step(self, step):
        """Ends a batch, goes on to STEP, and returns the examples of the batch; None: it was void."""
        batch = self.end_first()
        self.begin(step, self.client)
        return None if batch.void else batch.examples


def plan(count, batch_size, worker=0, workers=2, batch_count=1):
    return _client.Sampler(count, worker, workers, batch_size, batch_count)


class SamplerTest(unittest.TestCase):
    """Without servers."""

    def test_a_pass_has_the_batches_of_an_epoch(self):
        for number_, batches in ((0, 13), (1, 12)):  # shares of 49 and 48 examples
            sampler = Sampler(97, 4, number_)
            expected = plan(97, 4, number_)
            self.assertEqual(len(sampler), batches)
            got = list(sampler)
            self.assertEqual(got, [b for step in range(13) for b in expected.batches(step)])
            self.assertEqual(len(got), batches)

    def test_a_pass_begins_at_the_step_of_the_optimizer(self):
        sampler = Sampler(97, 4)
        sampler.begin(16, sampler.client)
        self.assertEqual((sampler.epoch, len(sampler)), (1, 10))
        self.assertEqual(list(sampler), [b for step in range(16, 26) for b in plan(97, 4).batches(step)])
        self.assertEqual(sampler.client.epochs[-1], (1, 13))

    def test_batches_that_are_loaded_ahead_belong_to_later_steps(self):
        sampler, expected = Sampler(400, 4), plan(400, 4)
        batches = iter(sampler)
        for _ in range(3):
            next(batches)
        for step in range(20):
            next(batches)
            self.assertEqual([sampler.step(step + 1)], expected.batches(step))

    def test_a_late_worker_omits_as_many_batches_as_steps(self):
        sampler, expected = Sampler(400, 4), plan(400, 4)
        batches = iter(sampler)
        for _ in range(4):
            next(batches)
        self.assertEqual([sampler.step(3)], expected.batches(0))  # steps 1 and 2 went on without this worker
        for _ in range(3):
            next(batches)
        got = [sampler.step(step + 1) for step in range(3, 9)]
        self.assertEqual(got, [expected.batches(step)[0] for step in (1, 2, 3, 6, 7, 8)])

    def test_a_deal_voids_the_batches_of_later_steps(self):
        sampler, expected = Sampler(400, 4), plan(400, 4)
        batches = iter(sampler)
        for _ in range(5):
            next(batches)
        sampler.client.deals.append(deal(1, 3, [0], {1: 1}))
        self.assertEqual([sampler.step(1)], expected.batches(0))
        expected.add(sampler.client.deals[0])
        for _ in range(4):
            next(batches)
        got = [sampler.step(1), sampler.step(2), sampler.step(3)]
        self.assertEqual(got[:2], [expected.batches(1)[0], expected.batches(2)[0]])
        self.assertIsNone(got[2], "the fourth batch is the first one of step 3 before the deal")
        self.assertIsNone(sampler.step(3))
        self.assertEqual([sampler.step(step + 1) for step in range(3, 6)],
                         [expected.batches(step)[0] for step in range(3, 6)])

    def test_a_restart_voids_all_batches(self):
        sampler, expected = Sampler(400, 4), plan(400, 4)
        batches = iter(sampler)
        for _ in range(3):
            next(batches)
        sampler.step(1)
        sampler.restart()
        sampler.begin(1, sampler.client)
        next(batches)
        self.assertEqual([sampler.step(1), sampler.step(1), sampler.step(2)], [None, None, *expected.batches(1)])

    def test_a_step_has_several_batches_and_a_second_pass_continues_it(self):
        sampler, expected = Sampler(97, 4, batch_count=3), plan(97, 4, batch_count=3)
        batches = iter(sampler)
        used = []
        for _ in range(2):
            next(batches)
            used.append(sampler.step(0))
            self.assertFalse(sampler.step_is_over)
        self.assertEqual(len(sampler), 11)
        next(iter(sampler))
        used.append(sampler.step(1))
        self.assertTrue(sampler.step_is_over)
        self.assertEqual(used, expected.batches(0))
        rest = list(sampler)
        self.assertEqual(rest, [b for step in range(1, 5) for b in expected.batches(step)])
        self.assertEqual([len(b) for b in rest], [4] * 9 + [1])

    def test_epochs_follow_the_optimizer(self):
        sampler = Sampler(16, 4)
        numbers = []
        for epoch in sampler.epochs(3):
            numbers.append(epoch)
            for step, _ in enumerate(sampler, 2 * epoch):
                sampler.step(0 if len(numbers) == 2 and step == 3 else step + 1)  # the servers go back once
        self.assertEqual(numbers, [0, 1, 0, 1, 2])

    def test_mistakes(self):
        for text, make in (
            ("data: no length", lambda: tw.ElasticSampler(iter([1]), 4)),
            (r"len\(data\): wrong value .*got 0", lambda: tw.ElasticSampler([], 4)),
            ("batch_size: wrong value .*got 0", lambda: tw.ElasticSampler([1], 0)),
            ("batch_size: wrong value .*got 0.5", lambda: tw.ElasticSampler([1], 0.5)),
            ("seed: wrong value .*got -1", lambda: tw.ElasticSampler([1], 1, seed=-1)),
            ("sampler: no optimizer", lambda: list(tw.ElasticSampler([1], 1))),
            ("sampler: no optimizer", lambda: len(tw.ElasticSampler([1], 1))),
            ("sampler: has an optimizer already", lambda: Sampler(9, 1).attach(0, 1, 1)),
            ("sampler: no batch for step 0", lambda: Sampler(9, 1).first()),
            ("epochs: no step in epoch 0", lambda: [list(s) for s in [Sampler(9, 1)] for _ in s.epochs(2)]),
        ):
            with self.subTest(text), self.assertRaisesRegex(thinwire.Error, text):
                make()


class Job(jobs.Job):
    def __init__(self, model, sampler, **arguments):
        super().__init__(lambda settings: tw.DistributedOptimizer(model, sampler=sampler, **arguments, **settings),
                         learning_rate=0.1)


class LocalJob(jobs.Job):
    def __init__(self, model, sampler):
        def make(settings):
            inner = torch.optim.SGD(model.parameters(), lr=worker.RATE)
            return tw.LocalSteps(model, inner, 1, settings.pop("optimizer"), settings.pop("learning_rate"), sampler=sampler,
                                 **settings)

        super().__init__(make, optimizer="sgd", learning_rate=1)


class OptimizerTest(unittest.TestCase):
    """With one worker in this process."""

    def test_the_optimizer_needs_a_batch_of_the_sampler_and_takes_its_size(self):
        model, data = worker.make_model(), worker.Numbered(10)
        sampler = tw.ElasticSampler(data, 4)
        with Job(model, sampler) as optimizer:
            sizes = []
            for x, y, _ in torch.utils.data.DataLoader(data, batch_sampler=sampler):
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
                sizes.append(optimizer.examples)
            self.assertEqual((sizes, optimizer.step_number, sampler.epoch), ([4, 4, 2], 3, 1))
            worker.loss_of(model, 0, 0).backward()
            with self.assertRaisesRegex(thinwire.Error, "sampler: no batch for step 3"):
                optimizer.step()

    def test_a_step_ignores_a_batch_that_has_become_void(self):
        for make in (Job, lambda model, sampler: Job(model, sampler, overlap=False), LocalJob):
            model, sampler = worker.make_model(), tw.ElasticSampler(range(100), 4)
            batches = iter(sampler)

            def step():
                optimizer.zero_grad()
                worker.loss_of(model, 0, 0).backward()
                optimizer.step()

            with make(model, sampler) as optimizer:
                next(batches)
                next(batches)  # ahead of the first step
                step()
                sampler.restart()
                sampler.begin(1, optimizer._client)
                before = worker.values_of(model)
                step()
                self.assertEqual((optimizer.step_number, worker.values_of(model)), (1, before))
                next(batches)
                step()
                self.assertEqual(optimizer.step_number, 2)
                self.assertNotEqual(worker.values_of(model), before)

    def test_other_samplers_are_refused(self):
        tw.init(worker=0, addresses="127.0.0.1:1")
        with self.assertRaisesRegex(thinwire.Error, "sampler: wrong type .*got SequentialSampler"):
            tw.DistributedOptimizer(worker.make_model(), "sgd", 0.1, sampler=torch.utils.data.SequentialSampler([1]))


class ClusterTest(unittest.TestCase):
    """With several workers, whose examples are counted."""

    def setUp(self):
        self.folder = os.path.join(os.environ["TEST_TMPDIR"], self.id())
        os.makedirs(self.folder)

    def start(self, servers, number_, example_count=97, epochs=2, **arguments):
        return servers.worker("train_on_data", number_, record=f"{self.folder}/{number_}", example_count=example_count,
                              epochs=epochs, **arguments)

    def used(self, number_):
        """Returns the examples that a worker has used, by step. A step that comes again replaces itself and the later ones."""
        steps = {}
        with open(f"{self.folder}/{number_}", encoding="utf-8") as file:
            for step, examples in map(json.loads, file):
                steps = {s: e for s, e in steps.items() if s < step}
                steps[step] = examples
        return steps

    def counts(self):
        """Returns how often all workers have used each example."""
        counts = collections.Counter()
        for path in glob.glob(f"{self.folder}/*"):
            for examples in self.used(os.path.basename(path)).values():
                counts.update(examples)
        return counts

    def expect_each_example(self, times, example_count):
        self.assertEqual(self.counts(), collections.Counter({example: times for example in range(example_count)}))

    def pause_and_kill(self, process):
        self.assertEqual(process.stdout.readline(), "paused\n")
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()

    def finish(self, processes):
        return [jobs.result_of(process) for process in processes]

    def test_two_workers_use_each_example_once_in_an_epoch_and_weigh_batches_by_their_size(self):
        with jobs.Servers(workers=2, **SGD) as servers:
            results = self.finish([self.start(servers, w, num_workers=2 * w) for w in range(2)])
        self.expect_each_example(2, 97)
        model, data = worker.make_model(), worker.Numbered(97)
        optimizer = torch.optim.SGD(model.parameters(), lr=worker.RATE)
        for step in range(26):
            examples = [e for w in range(2) for b in plan(97, 4, w).batches(step) for e in b]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(data.x[examples]), data.y[examples]).backward()
            optimizer.step()
        expected = torch.cat([p.detach().flatten() for p in model.parameters()])
        for result in results:
            self.assertEqual(result["step"], 26)
            got = torch.tensor([value for values in result["parameters"] for value in values])
            self.assertLess((got - expected).abs().max().item(), 1e-5)

    def test_local_steps_end_an_exchange_with_the_epoch(self):
        with jobs.Servers(workers=2, optimizer="sgd", learning_rate=1) as servers:
            results = self.finish([self.start(servers, w, every=4, num_workers=w) for w in range(2)])
        self.assertEqual([result["step"] for result in results], [8, 8])  # of 16 examples, for shares of 49 and 48
        self.expect_each_example(2, 97)

    def test_asynchronous_workers_use_each_example_once(self):
        with jobs.Servers(workers=2, mode="async", **SGD) as servers:
            self.finish([self.start(servers, w, num_workers=1) for w in range(2)])
        self.expect_each_example(2, 97)

    def test_a_slow_worker_in_mode_backup_omits_examples_and_doubles_none(self):
        with jobs.Servers(workers=3, mode="backup", backup=1, **SGD) as servers:
            self.finish([self.start(servers, w, example_count=600, num_workers=1, seconds=0.04 if w == 2 else 0.005)
                         for w in range(3)])
        counts = self.counts()
        self.assertLessEqual(max(counts.values()), 2)
        self.assertGreater(sum(counts.values()), 800, "two workers have 400 of 600 examples")
        self.assertGreater(len(self.used(2)), 5)

    def test_the_examples_of_a_killed_worker_are_dealt_again(self):
        with jobs.Servers(workers=2, **SGD) as servers:
            arguments = {"example_count": 601, "num_workers": 1, "seconds": 0.05}
            processes = [self.start(servers, 0, **arguments), self.start(servers, 1, pause_at=5, **arguments)]
            jobs.await_training(processes)
            self.pause_and_kill(processes[1])
            self.finish(processes[:1])
        self.assertEqual(list(self.used(1)), [0, 1, 2, 3, 4])
        self.expect_each_example(2, 601)

    def test_a_worker_that_is_started_again_continues_at_the_jobs_step(self):
        with jobs.Servers(workers=2, **SGD) as servers:
            arguments = {"example_count": 401, "num_workers": 1, "seconds": 0.05}
            processes = [self.start(servers, 0, **arguments), self.start(servers, 1, pause_at=15, **arguments)]
            jobs.await_training(processes)
            self.pause_and_kill(processes[1])
            processes[1] = self.start(servers, 1, **arguments)
            self.finish(processes)
        steps = list(self.used(1))
        self.assertEqual(steps[:15], list(range(15)))
        self.assertGreater(len(steps), 20)
        counts = self.counts()
        lost = sum(max(0, 2 - counts[example]) for example in range(401))
        self.assertLessEqual(lost, 2 * 4, "docs/training.md: the examples of one or two steps")

    def test_an_added_worker_takes_examples_of_the_others_and_of_one_that_leaves(self):
        with jobs.Servers(workers=2, **SGD) as servers:
            arguments = {"example_count": 801, "num_workers": 1, "seconds": 0.05}
            processes = [self.start(servers, w, **arguments) for w in range(2)]
            jobs.await_training(processes)
            scaled = subprocess.run([THINWIRE, "scale", "--addresses", servers.addresses, "--workers", "3"],
                                    capture_output=True, text=True, timeout=30)
            self.assertEqual(scaled.stdout, "workers 2 -> 3\n", scaled.stderr)
            added = self.start(servers, 2, **arguments)
            processes[1].send_signal(signal.SIGTERM)
            _, errors = processes[1].communicate()
            self.assertEqual(processes[1].returncode, 75, errors)
            self.finish([processes[0], added])
        self.assertLess(len(self.used(1)), 100)
        self.assertGreater(len(self.used(2)), 5)
        self.expect_each_example(2, 801)

    def test_examples_of_steps_that_servers_have_undone_are_used_again(self):
        with jobs.Servers(workers=2, durability="checkpoint", checkpoint_seconds=0.2, **SGD) as servers:
            processes = [self.start(servers, w, example_count=401, num_workers=2, seconds=0.02) for w in range(2)]
            jobs.await_training(processes)
            servers.await_checkpoints()
            servers.kill(1)
            servers.start(1)
            results = self.finish(processes)
        self.assertEqual([result["counters"]["rollbacks"] for result in results], [1, 1])
        self.expect_each_example(2, 401)

    def test_a_worker_with_other_data_is_refused(self):
        with jobs.Servers(workers=2, **SGD) as servers:
            processes = [self.start(servers, 0), self.start(servers, 1, example_count=96)]
            while all(process.poll() is None for process in processes):
                time.sleep(0.01)
            refused, other = sorted(processes, key=lambda process: process.poll() is None)
            other.kill()  # it waits for the refused one
            _, errors = refused.communicate()
            other.communicate()
        self.assertRegex(errors, r"RefusedError: .*task.train_examples differs from the job's \(expected 9[67], got 9[67]\)")


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
