"""Compares one worker with plain PyTorch, and checks that each typical mistake has one clear exception."""

import gc
import io
import json
import os
import resource
import subprocess
import tempfile
import time
import unittest
import warnings
import weakref
from unittest import mock

from tests.python import jobs

import numpy  # noqa: E402
import torch  # noqa: E402

import thinwire  # noqa: E402
import thinwire.torch as tw  # noqa: E402
from thinwire import _client, job  # noqa: E402

F = torch.nn.functional


def small_model(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def turned_model():
    """Has a parameter that is not contiguous."""
    model = small_model()
    model[0].weight.data = torch.randn(6, 8, generator=torch.Generator().manual_seed(2)).t()
    return model


class OddModel(torch.nn.Module):
    """Has tied, frozen, unused and scalar parameters, batch normalization, and a gradient that is not contiguous."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Linear(6, 6, bias=False)
        self.tied = self.first
        self.norm = torch.nn.BatchNorm1d(6)
        self.frozen = torch.nn.Linear(6, 6)
        self.frozen.requires_grad_(False)
        self.unused = torch.nn.Linear(3, 3)
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.turned = torch.nn.Parameter(torch.randn(2, 6))

    def forward(self, x):
        x = self.scale * self.tied(torch.tanh(self.norm(self.first(x))))
        return self.frozen(x) @ self.turned.t()


class Lamb(torch.optim.Optimizer):
    """Algorithm 2 of You et al. 2020, with the identity as phi and a ratio of 1 if a norm is 0."""

    def __init__(self, parameters, lr, weight_decay):
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for x in group["params"]:
                state = self.state[x] or self.state[x].update(t=0, p=torch.zeros_like(x), q=torch.zeros_like(x)) or self.state[x]
                state["t"] += 1
                state["p"].mul_(0.9).add_(x.grad, alpha=0.1)
                state["q"].mul_(0.999).addcmul_(x.grad, x.grad, value=0.001)
                root = (state["q"] / (1 - 0.999 ** state["t"])).sqrt() + 1e-8
                r = state["p"] / (1 - 0.9 ** state["t"]) / root + group["weight_decay"] * x
                norms = x.double().norm().item(), r.double().norm().item()
                x.sub_(r, alpha=group["lr"] * (norms[0] / norms[1] if all(norms) else 1))


class Job(jobs.Job):
    """A job with DistributedOptimizer."""

    def __init__(self, model, overlap=True, **settings):
        super().__init__(lambda settings: tw.DistributedOptimizer(model, overlap=overlap, **settings),
                         **{"learning_rate": 0.1, **settings})


def examples(step, count=16):
    generator = torch.Generator().manual_seed(step)
    return torch.randn(count, 6, generator=generator), torch.randint(0, 2, (count,), generator=generator)


def backward(model, step=0):
    x, y = examples(step)
    F.cross_entropy(model(x), y).backward()


def make_scaler():
    """Returns a GradScaler for tensors of the CPU: that of PyTorch 2.3 and newer, else that of 1.13 with plain arithmetic."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cpu")

    class Scaler(torch.cuda.amp.GradScaler):
        def scale(self, loss):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(loss.device)
            return loss * self._scale

        def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        found_inf.fill_(max(found_inf.item(), not p.grad.isfinite().all()))
                        p.grad.mul_(inv_scale)
            return {found_inf.device: found_inf}

        def update(self):
            found = [found for state in self._per_optimizer_states.values() for found in state["found_inf_per_device"].values()]
            assert found, "No inf checks were recorded prior to update."
            if any(found):
                self._scale.mul_(self._backoff_factor)
            self._per_optimizer_states.clear()

    with mock.patch("torch.cuda.is_available", return_value=True):
        return Scaler()


class EqualityTest(unittest.TestCase):
    """One worker with fp32 codecs does what the optimizer of PyTorch does."""

    def compare(self, make_model, run_step, overlap=True, optimizer="momentum", plain=None, steps=12, tolerance=1e-6,
                **settings):
        """Trains two models with RUN_STEP(model, optimizer, step), and compares all their parameters and buffers."""
        ours, theirs = make_model(), make_model()
        plain = plain or (lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9))
        plain_optimizer = plain([p for p in theirs.parameters() if p.requires_grad])
        with Job(ours, overlap=overlap, optimizer=optimizer, **settings) as distributed:
            for step in range(steps):
                run_step(ours, distributed, step)
                run_step(theirs, plain_optimizer, step)
        expected = theirs.state_dict()
        self.assertGreater(len(expected), 3)
        for name, value in ours.state_dict().items():
            self.assertLessEqual((value - expected[name]).abs().max().item(), tolerance, name)
        return ours

    @staticmethod
    def usual_step(model, optimizer, step):
        optimizer.zero_grad()
        backward(model, step)
        optimizer.step()

    def test_small_model(self):
        self.compare(small_model, self.usual_step)

    def test_parameters_that_arrive_in_the_forward_pass(self):
        def run_step(model, optimizer, step):
            self.usual_step(model, optimizer, step)
            if step % 3 == 0:
                model(examples(step)[0])  # outside of a step
                model.zero_grad()

        for make in (small_model, OddModel, lambda: small_model().bfloat16().float(), turned_model):
            with self.subTest(model=make.__name__):
                model = self.compare(make, run_step, overlap="forward")
                self.assertTrue(all(type(p) is torch.nn.Parameter for p in model.parameters()))

    def test_adam(self):
        self.compare(small_model, self.usual_step, optimizer="adam", tolerance=1e-5,
                     plain=lambda parameters: torch.optim.Adam(parameters, lr=0.1))

    def test_lamb_with_a_layer_that_both_servers_share(self):
        def make():
            torch.manual_seed(3)
            layers = torch.nn.Linear(6, 520), torch.nn.Tanh(), torch.nn.Linear(520, 520), torch.nn.Tanh(), torch.nn.Linear(520, 2)
            return torch.nn.Sequential(*layers)

        self.assertGreater(make()[2].weight.numel(), 262144)
        self.compare(make, self.usual_step, optimizer="lamb", learning_rate=0.01, weight_decay=0.01,
                     plain=lambda parameters: Lamb(parameters, lr=0.01, weight_decay=0.01))

    def test_bf16_autocast_with_and_without_a_grad_scaler_of_the_cpu(self):
        for scaler_is_enabled in (False, True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch 1.13 disables a scaler without CUDA, and says so
                scaler = torch.cuda.amp.GradScaler(enabled=scaler_is_enabled)
            self.assertFalse(scaler.is_enabled())

            def run_step(model, optimizer, step):
                optimizer.zero_grad()
                x, y = examples(step)
                with torch.autocast("cpu", torch.bfloat16):
                    loss = F.cross_entropy(model(x), y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()

            with self.subTest(scaler_is_enabled=scaler_is_enabled):
                self.compare(small_model, run_step)

    def test_schedulers_of_torch(self):
        schedulers = torch.optim.lr_scheduler
        for make in (lambda optimizer: schedulers.LambdaLR(optimizer, lambda step: step / 4),
                     lambda optimizer: schedulers.OneCycleLR(optimizer, 0.3, total_steps=20, cycle_momentum=False),
                     lambda optimizer: schedulers.ReduceLROnPlateau(optimizer, patience=0, threshold=1)):
            made = {}

            def step_and_schedule(model, optimizer, step, made=made, make=make):
                scheduler = made.get(optimizer) or made.setdefault(optimizer, make(optimizer))
                self.usual_step(model, optimizer, step)
                scheduler.step(*([1.0] if isinstance(scheduler, schedulers.ReduceLROnPlateau) else []))

            with self.subTest(scheduler=type(make(torch.optim.SGD([torch.zeros(1)], lr=0.1))).__name__):
                self.compare(small_model, step_and_schedule)
                self.assertEqual(*[optimizer.param_groups[0]["lr"] for optimizer in made])
                self.assertNotEqual(next(iter(made)).param_groups[0]["lr"], 0.1)

    def test_a_closure_and_a_changed_rate_with_adam(self):
        losses = {}

        def step_with_closure(model, optimizer, step):
            def closure():
                optimizer.zero_grad()
                x, y = examples(step)
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.param_groups[0]["lr"] = 0.1 * (step % 3)
            losses.setdefault(type(optimizer), []).append(optimizer.step(closure).item())

        self.compare(small_model, step_with_closure, optimizer="adam", tolerance=1e-5,
                     plain=lambda parameters: torch.optim.Adam(parameters, lr=0.1))
        for ours, theirs in zip(losses[tw.DistributedOptimizer], losses[torch.optim.Adam]):
            self.assertAlmostEqual(ours, theirs, 4)

    def test_the_state_dict_has_the_rate(self):
        model = small_model()
        with Job(model) as optimizer:
            optimizer.param_groups[0]["lr"] = 0.025
            saved = optimizer.state_dict()
            optimizer.param_groups[0]["lr"] = 0.1
            optimizer.load_state_dict(saved)
            self.assertEqual(optimizer.param_groups[0]["lr"], 0.025)
            self.usual_step(model, optimizer, 0)
            local = torch.optim.Adam(small_model().parameters())
            backward(model)
            local.state[local.param_groups[0]["params"][0]] = {"step": 1}
            with self.assertRaisesRegex(thinwire.Error, "state_dict: not of DistributedOptimizer .*got that of 1 parameters"):
                optimizer.load_state_dict(local.state_dict())

    def test_parameter_groups(self):
        def plain(parameters):
            return torch.optim.SGD(
                [{"params": parameters[0::2], "weight_decay": 0.1}, {"params": parameters[1::2], "lr": 0.05}], lr=0.1, momentum=0.9)

        groups = [{"match": "*.weight"}, {"match": "*.bias", "weight_decay": 0, "learning_rate_factor": 0.5}]
        self.compare(small_model, self.usual_step, plain=plain, weight_decay=0.1, parameter_group=groups)
        made = {}

        def step_and_schedule(model, optimizer, step):
            scheduler = made.get(optimizer) or made.setdefault(optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8))
            self.usual_step(model, optimizer, step)
            scheduler.step()

        self.compare(small_model, step_and_schedule, plain=plain, weight_decay=0.1, parameter_group=groups)
        rates = [[group["lr"] for group in optimizer.param_groups] for optimizer in made]
        self.assertEqual(*rates)
        self.assertEqual(len(rates[0]), 2)

    def test_tied_frozen_unused_and_scalar_parameters_and_batch_norm(self):
        before = OddModel()
        after = self.compare(OddModel, self.usual_step)
        self.assertTrue(torch.equal(before.frozen.weight, after.frozen.weight))
        self.assertTrue(torch.equal(before.unused.weight, after.unused.weight))
        self.assertFalse(torch.equal(before.scale, after.scale))
        self.assertEqual(after.norm.num_batches_tracked.item(), 12)

    def test_parameters_that_are_not_contiguous(self):
        address = lambda model: model[0].weight.data_ptr()  # noqa: E731
        model = turned_model()
        before = address(model)
        with Job(model) as optimizer:
            self.usual_step(model, optimizer, 0)
            self.assertEqual(address(model), before)
            self.assertFalse(model[0].weight.is_contiguous())
        self.compare(turned_model, self.usual_step)

    def test_parameters_of_half_precision_are_the_rounded_ones_of_the_servers(self):
        for overlap in (True, "forward"):
            with self.subTest(overlap=overlap):
                self.check_half_precision(overlap)

    def check_half_precision(self, overlap):
        model, masters = small_model().bfloat16(), [p.detach() for p in small_model().bfloat16().float().parameters()]
        plain = small_model().bfloat16()

        def backward_in_bf16(model, step):
            x, y = examples(step)
            F.cross_entropy(model(x.bfloat16()).float(), y).backward()

        with Job(model, optimizer="sgd", overlap=overlap) as optimizer:
            for step in range(12):
                optimizer.zero_grad()
                backward_in_bf16(model, step)
                optimizer.step()
                plain.zero_grad()
                backward_in_bf16(plain, step)
                with torch.no_grad():
                    for p, master in zip(plain.parameters(), masters):
                        master -= 0.1 * p.grad.float()
                        p.copy_(master)
            exact = optimizer.exact_parameters()
        for (name, p), master in zip(model.named_parameters(), masters):
            self.assertEqual(p.dtype, torch.bfloat16)
            self.assertTrue(torch.equal(p, exact[name].bfloat16()))
            self.assertLessEqual((exact[name] - master).abs().max().item(), 1e-6)

    def test_the_hook_of_newer_pytorch(self):
        accumulators = []

        def register(parameter, hook):
            """Does what PyTorch 2.1 does; 1.13 does not have this function."""
            accumulators.append(parameter.expand_as(parameter).grad_fn.next_functions[0][0])
            return accumulators[-1].register_hook(lambda *_: hook(parameter))

        with mock.patch.object(torch.nn.Parameter, "register_post_accumulate_grad_hook", register, create=True):
            self.compare(small_model, self.usual_step)
        self.assertEqual(len(accumulators), 4)

    def test_no_sync_accumulates(self):
        def run_step(model, optimizer, step):
            optimizer.zero_grad()
            if isinstance(optimizer, tw.DistributedOptimizer):
                with optimizer.no_sync():
                    backward(model, step)
            else:
                backward(model, step)
            backward(model, 100 + step)
            optimizer.step()

        self.compare(small_model, run_step)

    def test_without_overlap_gradients_may_change_before_the_step(self):
        def run_step(model, optimizer, step):
            optimizer.zero_grad(set_to_none=False)
            backward(model, step)
            backward(model, 100 + step)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()

        self.compare(small_model, run_step, overlap=False)


class BehaviourTest(unittest.TestCase):
    def test_the_parameters_are_the_replica_and_outlive_the_optimizer(self):
        model = small_model()
        weights = list(model.parameters())
        job = Job(model)
        with job as optimizer:
            addresses = [p.data_ptr() for p in weights]
            for index, p in enumerate(weights):
                self.assertEqual(optimizer._client.replica(index).ctypes.data, p.data_ptr())
            EqualityTest.usual_step(model, optimizer, 0)
            self.assertEqual([p.data_ptr() for p in model.parameters()], addresses)
            exact = optimizer.exact_parameters()
            self.assertEqual(list(exact), [name for name, _ in model.named_parameters()])
            for name, p in model.named_parameters():
                self.assertTrue(torch.equal(exact[name], p))
            self.assertEqual(optimizer.step_number, 1)
            self.assertEqual(optimizer.live, [0])
        before = [p.clone() for p in weights]
        ended = weakref.ref(optimizer)
        del job, optimizer
        gc.collect()
        self.assertIsNone(ended())
        for p, value in zip(weights, before):
            self.assertTrue(torch.equal(p, value))
        backward(model)  # the hooks are gone

    def test_a_worker_that_joins_again_continues_with_its_residuals(self):
        settings = {"durability": "log", "push": "topk", "density": 0.1, "learning_rate": 0.1}
        with jobs.Servers(servers=1, workers=1, **settings) as servers:
            for end in (3, 5):
                model = small_model()
                tw.init(worker=0, addresses=servers.addresses, state_dir=servers.state_dir)
                optimizer = tw.DistributedOptimizer(model, **servers.settings)
                if end == 5:
                    for p, value in zip(model.parameters(), before):
                        self.assertTrue(torch.equal(p, value))
                while optimizer.step_number < end:
                    EqualityTest.usual_step(model, optimizer, optimizer.step_number)
                optimizer.close()
                before = [p.clone() for p in model.parameters()]
                self.assertTrue(os.path.exists(f"{servers.state_dir}/worker-0/residuals-{end}"))
                self.assertEqual(optimizer.step_number, end)
            tw.init(worker=0, addresses=servers.addresses, state_dir=servers.state_dir)
            optimizer = tw.DistributedOptimizer(small_model(), **servers.settings)
            self.assertEqual(optimizer.counters["dropped_residuals"], 0)
            optimizer.close()

    def test_a_worker_whose_disk_is_full_trains_and_leaves(self):
        settings = {"durability": "checkpoint", "push": "topk", "density": 0.1, "learning_rate": 0.1}
        with jobs.Servers(servers=1, workers=1, **settings) as servers, tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/worker-0")
            tw.init(worker=0, addresses=servers.addresses, state_dir=folder)
            model = small_model()
            optimizer = tw.DistributedOptimizer(model, **servers.settings)
            EqualityTest.usual_step(model, optimizer, 0)
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # no file can grow
            try:
                with mock.patch("sys.stderr", io.StringIO()) as errors:
                    optimizer.close()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            self.assertRegex(errors.getvalue(), r"^thinwire: state not saved: .*/worker-0/.*: cannot write: .*\n$")
            self.assertIn("worker 0 left, 0 workers are live", servers.log(0))

    def test_a_job_file_describes_the_whole_job(self):
        with jobs.Servers(servers=1, workers=1, learning_rate=0.5, push="bf16") as servers:
            tw.init(worker=0, addresses=servers.addresses, config=servers.job_file)
            with self.assertRaisesRegex(thinwire.RefusedError, "learning_rate differs from the job's .expected 0.5, got 0.25"):
                tw.DistributedOptimizer(small_model(), lr=0.25)
            model = small_model()
            with tw.DistributedOptimizer(model) as optimizer:
                EqualityTest.usual_step(model, optimizer, 0)
                self.assertLess(optimizer.counters["push_bytes_encoded"], 0.6 * optimizer.counters["push_bytes_raw"])

    def test_averages(self):
        model = small_model()
        with Job(model, parameter_average=0.5) as optimizer:
            for step in range(5):
                EqualityTest.usual_step(model, optimizer, step)
            averages = optimizer.average_parameters()
        differences = [(averages[name] - p).abs().max().item() for name, p in model.named_parameters()]
        self.assertGreater(max(differences), 1e-4)
        self.assertLess(max(differences), 0.5)

    def test_the_status_has_what_a_worker_reports(self):
        model = small_model()
        job_of_model = jobs.Job(lambda settings: tw.DistributedOptimizer(model, steps=9, examples=16, **settings), learning_rate=0.1)
        with job_of_model as optimizer:
            def summary():
                command = ["cli/thinwire", "status", "--addresses", job_of_model.servers.addresses, "--json"]
                return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

            for step in range(3):
                EqualityTest.usual_step(model, optimizer, step)
            optimizer.report(loss=0.75, test_loss=0.5)
            EqualityTest.usual_step(model, optimizer, 3)
            deadline = time.monotonic() + 30
            while (status := summary())["summary"]["loss"] is None and time.monotonic() < deadline:
                time.sleep(0.1)  # until the next heartbeat
            self.assertEqual(status["summary"]["loss"], 0.75)
            self.assertEqual(status["summary"]["planned_steps"], 9)
            progress = status["servers"][0]["status"]["progress"]["0"]
            self.assertEqual((progress["examples"], progress["test"]["step"], progress["test"]["loss"]), (str(4 * 16), "3", 0.5))
            with self.assertRaisesRegex(tw.Error, r"loss: not finite \(expected a number, got nan\)"):
                optimizer.report(loss=float("nan"))

    def test_autograd_refuses_a_graph_of_an_earlier_step(self):
        model = small_model()
        with Job(model) as optimizer:
            x, y = examples(0)
            loss = F.cross_entropy(model(x), y)
            loss.backward(retain_graph=True)
            optimizer.step()
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()

    def test_a_thousand_steps_need_no_more_memory(self):
        def resident_bytes():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        model = small_model()
        with Job(model) as optimizer:
            for step in range(200):
                EqualityTest.usual_step(model, optimizer, step)
            before = resident_bytes()
            for step in range(200, 1200):
                EqualityTest.usual_step(model, optimizer, step)
            self.assertLess(resident_bytes() - before, 4 << 20)

    def test_a_run_whose_gradients_stay_infinite_has_diverged(self):
        model = small_model()
        with Job(model) as optimizer, self.assertRaisesRegex(thinwire.DivergedError, "last 100 steps is infinite or NaN"):
            for _ in range(150):
                optimizer.zero_grad()
                (model(examples(0)[0]).sum() * float("inf")).backward()
                optimizer.step()
        self.assertEqual(optimizer.step_number, 100)

    def test_the_client_trains_with_numpy_alone(self):
        with jobs.Servers(servers=1, workers=1, learning_rate=0.5) as servers:
            client = _client.Client(
                "", [("workers", ["1"], ""), ("learning_rate", ["0.5"], ""), ("lease_seconds", ["2"], ""),
                     ("start_timeout_seconds", ["20"], "")],
                [("w", [2, 3]), ("b", [])], 0, servers.addresses)
            first = [numpy.ones((2, 3), numpy.float32), numpy.array(7, numpy.float32)]
            with self.assertRaisesRegex(thinwire.Error, "begin_step: wrong order .expected join"):
                client.begin_step()
            self.assertEqual(client.join(first), 0)
            with self.assertRaisesRegex(thinwire.Error, "join: called again"):
                client.join(first)
            client.wait_all()
            w, b = client.replica(0), client.replica(1)
            self.assertEqual((w.shape, b.shape), ((2, 3), ()))
            self.assertEqual(float(b), 7)
            client.begin_step()
            with self.assertRaisesRegex(thinwire.Error, "gradient of w: wrong number of values"):
                client.ready(0, numpy.ones(5, numpy.float32))
            with self.assertRaisesRegex(thinwire.Error, "gradient of w: not contiguous"):
                client.ready(0, numpy.ones((3, 2), numpy.float32).T)
            with self.assertRaisesRegex(thinwire.Error, "gradient of w: wrong array"):
                client.ready(0, numpy.ones((2, 3)))
            with self.assertRaisesRegex(thinwire.Error, "no gradient of w"):
                client.end_step()
            client.ready(0, numpy.full((2, 3), 2, numpy.float32))
            with self.assertRaisesRegex(thinwire.Error, "given twice"):
                client.ready(0, numpy.full((2, 3), 2, numpy.float32))
            client.ready(1, numpy.array(4, numpy.float32))
            with self.assertRaisesRegex(thinwire.Error, "read_masters: step 0 is not complete"):
                client.read_masters()
            with self.assertRaisesRegex(thinwire.Error, r"next_step: wrong order \(expected ready and end_step"):
                client.next_step()
            client.end_step()
            self.assertEqual(client.next_step(), 1)
            client.wait_all()
            numpy.testing.assert_array_equal(w, numpy.zeros((2, 3)))
            self.assertEqual(float(b), 5)
            client.leave()
            client.close()
            self.assertEqual(float(b), 5)
            with self.assertRaisesRegex(thinwire.Error, "client: closed"):
                client.wait_all()


    def test_a_batch_during_whose_forward_pass_the_servers_go_back_is_ignored(self):
        model = small_model()
        with Job(model, overlap="forward") as optimizer:
            EqualityTest.usual_step(model, optimizer, 0)
            before = optimizer.exact_parameters()
            rejoined = []
            with mock.patch.object(optimizer._values, "_client") as client, \
                    mock.patch.object(optimizer, "_enter", lambda: rejoined.append(optimizer._step)):
                client.wait_tensor = mock.Mock(side_effect=thinwire.RolledBack("earlier"))
                EqualityTest.usual_step(model, optimizer, 1)
            self.assertEqual((rejoined, optimizer.step_number), ([1], 1))
            for name, value in optimizer.exact_parameters().items():
                self.assertTrue(torch.equal(value, before[name]))
            EqualityTest.usual_step(model, optimizer, 1)
            self.assertEqual(optimizer.step_number, 2)

    def test_an_optimizer_that_ends_leaves_whole_parameters(self):
        for end in ("close", "del"):
            model = small_model()
            with jobs.Servers(servers=1, workers=1, learning_rate=0.1) as servers:
                tw.init(worker=0, addresses=servers.addresses)
                optimizer = tw.DistributedOptimizer(model, overlap="forward", **servers.settings)
                EqualityTest.usual_step(model, optimizer, 0)
                self.assertIsNot(type(model[0].weight), torch.nn.Parameter)
                exact = optimizer.exact_parameters()
                if end == "close":
                    optimizer.close()
                del optimizer
                gc.collect()
                for name, p in model.named_parameters():
                    self.assertIs(type(p), torch.nn.Parameter)
                    self.assertTrue(torch.equal(p, exact[name]))


class ScalerTest(unittest.TestCase):
    """Training with a GradScaler equals training without one."""

    def plain(self, steps=4):
        """Returns the model after STEPS of plain PyTorch, the second of which is omitted."""
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for step in range(steps):
            optimizer.zero_grad()
            if step == 1:
                for p in model.parameters():
                    p.grad = torch.zeros_like(p)  # a round without an accepted gradient
            else:
                backward(model, step)
                optimizer.step()
        return model

    def train(self, overlap, given=True, unscale=False):
        """Makes four steps, of which the second has an infinite gradient. Returns the model and the scales."""
        model, scaler, scales = small_model(), make_scaler(), []
        arguments = {"grad_scaler": scaler} if given else {}
        with jobs.Job(lambda settings: tw.DistributedOptimizer(model, overlap=overlap, **arguments, **settings),
                      learning_rate=0.1, optimizer="momentum") as optimizer:
            for step in range(4):
                optimizer.zero_grad()
                x, y = examples(step)
                loss = F.cross_entropy(model(x), y)
                if step == 1:
                    loss = loss * float("inf")
                scaler.scale(loss).backward()
                if unscale:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e6)
                scaler.step(optimizer)
                scaler.update()
                scales.append(scaler.get_scale())
            self.assertEqual(optimizer.step_number, 4)
            self.assertGreater(optimizer.counters["nonfinite_gradients"], 0)
        return model, scales

    def test_scaled_gradients(self):
        expected = dict(self.plain().named_parameters())
        for arguments in ({"overlap": True}, {"overlap": "forward"}, {"overlap": False}, {"overlap": False, "given": False},
                          {"overlap": False, "unscale": True}):
            with self.subTest(**arguments):
                model, scales = self.train(**arguments)
                self.assertEqual(scales, [2.0**16, 2.0**15, 2.0**15, 2.0**15])
                for name, p in model.named_parameters():
                    self.assertLessEqual((p - expected[name]).abs().max().item(), 1e-5, name)

    def test_mistakes(self):
        with self.assertRaisesRegex(thinwire.Error, r"grad_scaler: missing \(expected the GradScaler"):
            self.train(True, given=False)
        with self.assertRaisesRegex(thinwire.Error, r"grad_scaler: unscale_\(\) called between"):
            self.train(True, unscale=True)


class NumbersTest(unittest.TestCase):
    """rank() and world_size(), in the order of their sources."""

    def numbers(self, config=None, **variables):
        names = ("THINWIRE_WORKER", "THINWIRE_WORKERS", "THINWIRE_CONFIG", "RANK", "WORLD_SIZE", "THINWIRE_SITE",
                 "THINWIRE_SITE_WORKERS")
        clean = {name: value for name, value in os.environ.items() if name not in names}
        with mock.patch.dict(os.environ, dict(clean, **variables), clear=True):
            tw.init(config=config)
            return tw.rank(), tw.world_size()

    def test_sources(self):
        self.assertEqual(self.numbers(), (0, 1))
        torchrun = {"RANK": "1", "WORLD_SIZE": "3"}
        self.assertEqual(self.numbers(**torchrun), (1, 3))
        self.assertEqual(self.numbers(THINWIRE_WORKER="2", THINWIRE_WORKERS="5", **torchrun), (2, 5))
        with tempfile.NamedTemporaryFile("w", suffix=".textproto") as file:
            file.write("consistency { workers: 4 }")
            file.flush()
            self.assertEqual(self.numbers(config=file.name, **torchrun), (1, 4))
            self.assertEqual(self.numbers(config=file.name, THINWIRE_WORKERS="5"), (0, 5))

    def test_a_site_counts_the_workers_of_all_sites(self):
        site = {"THINWIRE_SITE": "1", "THINWIRE_SITE_WORKERS": "2"}
        self.assertEqual(self.numbers(THINWIRE_WORKER="1", THINWIRE_WORKERS="3", **site), (1 * 3 + 1, 3 * 2))
        # The variables of torchrun are those of the site.
        self.assertEqual(self.numbers(RANK="1", WORLD_SIZE="2", THINWIRE_WORKERS="3", **site), (1 * 3 + 1, 3 * 2))

    def test_mistakes(self):
        with self.assertRaisesRegex(thinwire.Error, r"WORLD_SIZE: wrong value \(expected a whole number from 1, got '0'\)"):
            self.numbers(WORLD_SIZE="0")
        with self.assertRaisesRegex(thinwire.Error, "/nowhere"):
            self.numbers(config="/nowhere")


class ArraysTest(unittest.TestCase):
    """ArrayOptimizer trains NumPy arrays."""

    def optimizer(self, **settings):
        first = {"w": numpy.ones((2, 3)), "b": 7, "unused": numpy.ones(2, numpy.float32)}
        return jobs.Job(lambda all_settings: thinwire.ArrayOptimizer(first, **all_settings), learning_rate=0.5, **settings)

    def test_the_servers_update_the_arrays(self):
        with self.optimizer(pull="bf16") as optimizer:
            w, b = optimizer.parameters["w"], optimizer.parameters["b"]
            self.assertEqual((w.shape, b.shape, float(b)), ((2, 3), (), 7))
            optimizer.step({"w": numpy.full((3, 2), 1.002).T, "b": 4})
            self.assertEqual(optimizer.step_number, 1)
            self.assertEqual(float(b), 5)
            numpy.testing.assert_array_equal(optimizer.parameters["unused"], [1, 1])
            numpy.testing.assert_allclose(optimizer.exact_parameters()["w"], numpy.full((2, 3), 0.499), rtol=1e-6)
            numpy.testing.assert_allclose(w, numpy.full((2, 3), 0.499), rtol=2**-8)
            self.assertNotEqual(float(w[0, 0]), float(optimizer.exact_parameters()["w"][0, 0]))

    def test_mistakes(self):
        with self.optimizer() as optimizer:
            for gradients, text in (
                ({"v": 1}, r"gradient of v: no such parameter \(expected one of w, b, unused\)"),
                ({"b": [1, 2]}, r"gradient of b: wrong shape \(expected \[\], got \[2\]\)"),
                ({"b": 1j}, r"gradient of b: wrong type \(expected real numbers, got complex128\)"),
            ):
                with self.assertRaisesRegex(thinwire.Error, text):
                    optimizer.step(gradients)
            optimizer.step({})
        with self.assertRaisesRegex(thinwire.Error, r"arrays: none \(expected at least one\)"):
            thinwire.ArrayOptimizer({})


class MistakesTest(unittest.TestCase):
    """Each mistake raises one exception whose text names the place, the expected and the given value."""

    def expect(self, text, kind=thinwire.Error):
        return self.assertRaisesRegex(kind, text)

    def test_init_is_missing(self):
        before, job._process = job._process, None
        try:
            with self.expect(r"init: not called \(expected thinwire.init\(\) before DistributedOptimizer\)"):
                tw.DistributedOptimizer(small_model())
            with self.expect(r"init: not called \(expected thinwire.init\(\) before rank\(\)\)"):
                tw.rank()
        finally:
            job._process = before

    def test_settings(self):
        tw.init(worker=0, addresses="127.0.0.1:9")
        for settings, text in (
            ({"optimizer": "momentun"}, r"optimizer: wrong value \(expected .*momentum"),
            ({"learning_rat": 1}, r"learning_rat: unknown setting \(did you mean learning_rate\?\)"),
            ({"epochs": 3}, "epochs: describes the task of the C\\+\\+ worker"),
            ({"slack": 3}, "slack: only valid with mode: ssp"),
            ({"density": 3, "push": "topk"}, "density: out of range"),
            ({"recipe": "sparse", "optimizer": "lamb"}, "^recipe: sparse: lazy_slots: no norms of tensors"),
            ({"recipe": "sparse"}, r"^steps: missing \(expected .*, on which density_warmup depends, got none\)"),
            ({"push": "adaptive", "durability": "checkpoint"}, "push: not available in Python"),
            ({"schedule": "noise_scale", "workers": 2}, "schedule: not available in Python"),
            ({"schedule": "cosine"}, "steps: missing"),
            ({"parameter_groups": [{}]}, r"parameter_groups: unknown setting \(did you mean parameter_group\?\)"),
            ({"parameter_group": "*.bias"}, r"parameter_group: wrong value \(expected a dict .*got '\*.bias'"),
            ({"parameter_group": [{"match": "a"}, {"mach": 1}]}, r"parameter_group\[1\]:1:\d+: mach: unknown field"),
            ({"parameter_group": {"match": "*.bias", "weight_decay": -1}}, r"parameter_group\[0\].weight_decay: out of range"),
            ({"workers": 2, "max_workers": 2, "learning_rate": [1, 2]}, "learning_rate: wrong value .* got 2 values"),
            ({"servers": 2}, r"^addresses: wrong number of servers \(expected 2"),
            ({"schedule": "step", "decay_at": "0.5,2"}, r"decay_at: out of range \(expected 0 to 1, got 2\)"),
            ({"schedule": "step", "decay_at": [0.5, 0.25]}, "decay_at"),
        ):
            with self.subTest(**settings), self.expect(text):
                tw.DistributedOptimizer(small_model(), **settings)

    def test_addresses(self):
        tw.init(worker=0, addresses="")
        with self.expect("addresses: missing"):
            tw.DistributedOptimizer(small_model())
        tw.init(worker=0, addresses="127.0.0.1")
        with self.expect("^addresses: wrong value"):
            tw.DistributedOptimizer(small_model())
        tw.init(worker=0, addresses="192.0.2.1:7000")
        with self.expect("^addresses: reachable from other machines"):
            tw.DistributedOptimizer(small_model())

    def test_worker_number(self):
        with self.expect("worker: wrong value"):
            tw.init(worker=-1, addresses="127.0.0.1:9")
        tw.init(worker=64, addresses="127.0.0.1:9")
        with self.expect("worker: out of range"):
            tw.DistributedOptimizer(small_model())

    def test_the_lead_chooses_the_number(self):
        with self.expect("worker: auto needs the addresses of running servers"):
            tw.init(worker="auto", addresses="")
        with jobs.Servers(servers=1, workers=2) as servers:
            tw.init(worker="auto", addresses=servers.addresses)
            self.assertEqual(thinwire.rank(), 0)
            os.environ["THINWIRE_WORKER"] = "auto"
            tw.init(addresses=servers.addresses)
            os.environ["THINWIRE_WORKER"] = "0"
            self.assertEqual(thinwire.rank(), 1)
            with self.expect("worker: all numbers are in use", thinwire.RefusedError):
                tw.init(worker="auto", addresses=servers.addresses)

    def test_models(self):
        tw.init(worker=0, addresses="127.0.0.1:9")
        for model, text in (
            (list(small_model().parameters()), "model: wrong type"),
            (torch.nn.ReLU(), "model: no trainable parameter"),
            (small_model().double(), r"parameter 0.weight: wrong type \(expected one of torch.float32, .*, got torch.float64\)"),
        ):
            with self.subTest(text=text), self.expect(text):
                tw.DistributedOptimizer(model)

    def test_overlap(self):
        tw.init(worker=0, addresses="127.0.0.1:9")
        with self.expect(r"overlap: wrong value \(expected True, False or 'forward', got 'layers'\)"):
            tw.DistributedOptimizer(small_model(), overlap="layers")
        with self.expect("overlap: 'forward' is not available with TorchScript and torch.compile .*got RecursiveScriptModule"):
            tw.DistributedOptimizer(torch.nn.Sequential(torch.jit.script(torch.nn.Linear(2, 2))), overlap="forward")

    def test_no_server(self):
        tw.init(worker=0, addresses="127.0.0.1:9")
        with self.expect(r"server 0 \(127.0.0.1:9\)", thinwire.ServerLostError):
            tw.DistributedOptimizer(small_model(), start_timeout_seconds=0.5)

    def test_servers_refuse_another_job_model_or_number(self):
        model = small_model()
        job = Job(model)
        with job:
            for number, other, settings, text in (
                (0, small_model(), {}, "worker 0"),
                (1, small_model(), {}, "worker"),
                (1, small_model(), {"learning_rate": 0.2, "max_workers": 0}, "learning_rate"),
                (1, torch.nn.Linear(6, 3), {}, "first values.*the same model and seed"),
                (1, small_model(seed=5), {}, "first values.*torch.manual_seed"),
            ):
                tw.init(worker=number, addresses=job.servers.addresses)
                given = {**job.servers.settings, **settings}
                with self.subTest(text=text), self.expect(text, thinwire.RefusedError):
                    tw.DistributedOptimizer(other, **given)

    def test_rates_and_groups(self):
        model = small_model()
        with Job(model) as optimizer:
            with self.expect("add_param_group: not available"):
                optimizer.add_param_group({"params": [torch.zeros(1, requires_grad=True)]})
        model = small_model()
        with Job(model, parameter_group=[{"match": "*.bias", "learning_rate_factor": 0.5}]) as optimizer:
            self.assertEqual([group["lr"] for group in optimizer.param_groups], [0.1, 0.05])
            optimizer.param_groups[1]["lr"] = 0.1
            backward(model)
            with self.expect(r"lr of param_groups\[1\]: another factor .*expected 0.05.*got 0.1;"):
                optimizer.step()
        for rate in (-1, float("nan")):
            model = small_model()
            with Job(model) as optimizer:
                optimizer.param_groups[0]["lr"] = rate
                backward(model)
                with self.expect("lr: out of range"):
                    optimizer.step()

    def test_step_without_backward(self):
        model = small_model()
        with Job(model) as optimizer:
            with self.expect("step: no gradient since the last step"):
                optimizer.step()
            EqualityTest.usual_step(model, optimizer, 0)
            with self.expect("step: no gradient since the last step"):
                optimizer.step()

    def test_mistakes_between_backward_and_step(self):
        def clip(model, optimizer):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)

        def remove_gradients(model, optimizer):
            optimizer.zero_grad()

        def second_backward(model, optimizer):
            backward(model)

        def replace(model, optimizer):
            model[0].weight.data = torch.zeros(8, 6)

        def load(model, optimizer):
            model.load_state_dict(small_model(3).state_dict())

        def convert(model, optimizer):
            model.double()

        def change_rate(model, optimizer):
            optimizer.param_groups[0]["lr"] = 0.05

        def add(model, optimizer):
            model.extra = torch.nn.Linear(2, 2)

        for mistake, text in (
            (clip, "gradient of .*: changed between backward.* and step"),
            (remove_gradients, "gradient of .*: changed between backward.* and step"),
            (second_backward, "backward: second gradient of .* in a step"),
            (replace, "parameter 0.weight: moved to other memory"),
            (load, "parameter 0.weight: changed in place"),
            (convert, "parameter 0.weight: moved to other memory|gradient of .*: changed"),
            (change_rate, r"lr: changed between backward\(\) and step\(\) \(expected 0.1, .* got 0.05"),
            (add, "parameter extra.weight: new"),
        ):
            model = small_model()
            with self.subTest(mistake=mistake.__name__), Job(model) as optimizer:
                backward(model)
                mistake(model, optimizer)
                with self.expect(text):
                    optimizer.step()

    def test_sparse_gradient(self):
        model = torch.nn.Embedding(5, 3, sparse=True)
        with Job(model) as optimizer:
            model(torch.tensor([1])).sum().backward()
            with self.expect("gradient of weight: sparse"):
                optimizer.step()

    def test_use_after_close(self):
        model = small_model()
        with Job(model) as optimizer:
            EqualityTest.usual_step(model, optimizer, 0)
            optimizer.close()
            backward(model)
            with self.expect("client: closed|step: no gradient"):
                optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
