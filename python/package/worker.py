"""JobWorker: what all ways to train with thinwire's servers have in common. Needs no PyTorch."""

import math
import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy
import numpy.typing

from thinwire import _client, hosting, job
from thinwire._client import DivergedError, Error, RefusedError, RolledBack
from thinwire.sampler import ElasticSampler

Floats = numpy.typing.NDArray[numpy.float32]
Self = TypeVar("Self", bound="JobWorker")

# Steps in sequence with a gradient that is not finite, after which training has diverged. The servers ignore such
# gradients, so the parameters no longer change.
_LOST_STEPS = 100

# The longest wait for the stop of the other workers (docs/failures.md).
_COMMON_STOP_SECONDS = 2


def _leave(client: _client.Client, servers: hosting.HostedServers | None) -> None:
    """Leaves the servers and ends the client, also at the end of the process. SERVERS: a HostedServers or None."""
    if client.closed:
        return
    left = False
    try:
        if client.in_step:
            print("thinwire: the process ends within a step, so other workers wait for its lease", file=sys.stderr)
        elif client.joined:
            try:
                client.save_state()
            except Error as error:  # such as a full disk: the other workers need not wait for the lease
                print(f"thinwire: state not saved: {error}", file=sys.stderr)
            cause = sys.exc_info()[1] or getattr(sys, "last_value", None)
            diverged = str(cause) if isinstance(cause, DivergedError) else ""
            asked = job.stop_requested() or client.retired
            client.leave(finished=cause is None and not asked, failed=isinstance(cause, Exception), diverged=diverged)
            left = True
    except Error as error:
        print(f"thinwire: {error}", file=sys.stderr)
    finally:
        client.close()
        if servers is not None:
            failed = hasattr(sys, "last_type")  # the program ends with an exception
            servers.end(left and not failed, job.stop_requested)


class JobWorker:
    """A worker of a job. A context manager, which leaves the servers at its end."""

    _takes_average = False  # the servers hold mean gradients in place of parameters

    def __init__(self, tensors: Mapping[str, Sequence[int]], optimizer: str | None, learning_rate: float | None,
                 steps: int, examples: int, settings: dict[str, Any], sampler: ElasticSampler | None = None,
                 batch_count: int = 1, wrap_client: Callable[[Callable[[], _client.Client]], _client.Client] | None = None,
                 streaming: dict[str, Any] | None = None, division: dict[str, Any] | None = None):
        """Makes the client of TENSORS, which are shapes by name.

        BATCH_COUNT is the number of batches in a step of the servers. STREAMING has the fields fragments, overlap_steps and mixing of
        docs/streaming.md; None: the servers' steps are exchanged as a whole. WRAP_CLIENT(make) returns another object with the calls of
        the client that make() returns. DIVISION: the result of members.divide(), if this process has a part of the model. The other arguments are those of DistributedOptimizer.
        The caller calls _join() next, and _follow_deals() at the end.
        """
        process = job.process(type(self).__name__)
        if sampler is not None and not isinstance(sampler, ElasticSampler):
            raise Error(f"sampler: wrong type (expected ElasticSampler, got {type(sampler).__name__})")
        if optimizer is not None:
            settings["optimizer"] = optimizer
        if learning_rate is not None:
            settings["learning_rate"] = learning_rate
        self.examples = examples if sampler is None else sampler.batch_size
        self._sampler = sampler
        self._shapes = {name: list(shape) for name, shape in tensors.items()}
        job_settings = job.settings(settings)
        servers: hosting.HostedServers | None = None

        def make_client() -> _client.Client:
            nonlocal process, servers
            job.offer_job(job_settings)
            process = process._replace(addresses=job.await_addresses())
            if not process.addresses and process.site is None and hosting.is_available():
                # The members of a worker leave one by one, the processes of a local group as one.
                leaving = process if division is None else process._replace(processes=1)
                servers = hosting.HostedServers(_client.job_text(process.config, job_settings), leaving)
                process = process._replace(addresses=servers.addresses)
            own = process._asdict()
            own.pop("processes")
            local: dict[str, Any] = {"local_steps": batch_count} | (streaming or {})
            part = {"tensors": list(self._shapes.items())} if division is None else division
            return _client.Client(
                settings=job_settings, planned_steps=steps,
                examples=self.examples * batch_count,
                task="" if sampler is None else sampler.task(local), **local, **part, **own)

        self._client = make_client() if wrap_client is None else wrap_client(make_client)
        if self._client.holds_average != self._takes_average:
            raise Error(f"optimizer: average is only valid with GradientAverage (expected an optimizer that updates "
                        f"parameters, got average with {type(self).__name__})")
        if sampler is not None:
            sampler.attach(process.worker, self._client.workers, batch_count, process.site or 0, self._client.sites)
        self._zeros: Floats | None = None  # the gradient of parameters that a step does not use
        self._lost_steps = 0
        self._nonfinite = 0
        self._planned_steps = steps
        self._loss: float | None = None
        self._begin = self._step_end = time.monotonic()
        self._step_seconds = 0.0  # of the last step
        self._stop_step: int | None = None  # the step before which this worker leaves; None: it was not asked to stop
        self._drains = False  # the step after which this worker leaves empties the residual
        self._keeps_residual = False  # for the next run: all workers stop
        self._finalizer = weakref.finalize(self, _leave, self._client, servers)

    @property
    def step_number(self) -> int:
        """The number of the servers' next step, from 0. It grows by more than 1 if they went on without this worker."""
        return self._step

    @property
    def live(self) -> list[int]:
        """The numbers of the live workers."""
        return self._client.live

    @property
    def counters(self) -> dict[str, int]:
        """Counters since the start, by name: bytes, late pushes, times (docs/metrics.md)."""
        return self._client.counters

    def report(self, loss: float | None = None, test_accuracy: float | None = None, test_loss: float | None = None) -> None:
        """States the training loss of the newest batches, or a test of the present parameters, for the servers' status page.

        `thinwire status` and /status.json show them, too. The servers keep the checkpoints with the best tests if the job
        asks for it (`keep_best`): state an accuracy in every test, or a loss in every test.
        Errors: Error for a number that is not finite.
        """
        for name, value in (("loss", loss), ("test_accuracy", test_accuracy), ("test_loss", test_loss)):
            if value is not None and not math.isfinite(value):
                raise Error(f"{name}: not finite (expected a number, got {value})")
        if loss is not None:
            self._loss = float(loss)
        if test_accuracy is not None or test_loss is not None:
            self._client.report_test(test_accuracy, test_loss)

    def close(self) -> None:
        """Leaves the servers. The model keeps its parameters, which no longer change. The end of the process does it, too."""
        self._finalizer()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # --- the rest is for subclasses ---

    def _replicas(self) -> list[Floats]:
        """Returns the client's replica of the parameters: arrays that change while it receives parameters."""
        return [self._client.replica(index) for index in range(len(self._shapes))]

    def _join(self, initial: list[Floats]) -> None:
        """Joins with INITIAL, contiguous fp32 arrays, as the first parameters, and waits for those of the next step."""
        self._initial: list[Floats] | None = initial
        try:
            with job.stop_ends_process():
                self._enter()
        except RefusedError as error:
            if "first values" not in str(error):
                raise
            raise RefusedError(
                f"{error}; all workers need the same model and seed, for example torch.manual_seed(0)"
            ) from None
        if not self._client.durable:
            self._initial = None  # no rollback will need them

    def _enter(self) -> None:
        """Joins, and joins again as long as the servers go back to an earlier step meanwhile."""
        while True:
            try:
                assert self._initial is not None  # a job that can roll back keeps them
                self._step = self._client.join(self._initial)
                if self._sampler is not None:
                    self._sampler.restart()
                self._client.wait_all()
                return
            except RolledBack:
                continue

    def _end_step(self) -> None:
        """Completes the step: all gradients have been given. Afterwards the model has the parameters of the next step."""
        self._finish_step()
        self._take_parameters()
        self._watch_divergence()
        self._leave_if_asked()

    def _wait_parameters(self) -> None:
        """Waits until the next parameters are in the replica, unless a subclass waits later. Called at the end of a step."""
        self._client.wait_all()

    def _take_parameters(self) -> None:
        """Makes the replica's new parameters those of the model."""
        raise NotImplementedError

    def _follow_deals(self) -> None:
        """Waits until the next step is dealt. Makes the steps in which the sampler has no examples for this worker."""
        while self._sampler is not None:
            try:
                if self._sampler.begin(self._step, self._client):
                    return
                self._client.wait_all()
            except RolledBack:
                self._enter()
                self._take_parameters()
                continue
            self._client.begin_step(0)
            for index in reversed(range(len(self._shapes))):
                self._give_zeros(index)
            self._end_step()

    def _give_zeros(self, index: int) -> None:
        """Passes a gradient of zeros for a parameter to the client."""
        sizes = [math.prod(shape) for shape in self._shapes.values()]
        if self._zeros is None:
            self._zeros = numpy.zeros(max(sizes), numpy.float32)
        self._client.ready(index, self._zeros[: sizes[index]])

    def _batch_counts(self, ends: bool = False) -> bool:
        """Returns whether the step uses the batch on which the program computes. Sets `examples` to its size.

        ENDS: the program goes on to the next batch.
        """
        if self._sampler is None:
            return True
        batch = self._sampler.end_first() if ends else self._sampler.first()
        self.examples = len(batch.examples)
        return not batch.void

    def _finish_step(self) -> None:
        """Ends the step at the client and calls _wait_parameters()."""
        try:
            self._client.end_step()
            self._step = self._client.next_step()
            if not self._drains:
                self._wait_parameters()
                self._save_state_if_due()
        except RolledBack:
            self._enter()
        now = time.monotonic()
        self._step_seconds, self._step_end = now - self._step_end, now
        self._client.report_progress(self._planned_steps, now - self._begin, self._loss)

    def _leave_if_asked(self) -> None:
        """Leaves and ends the process after SIGTERM, or if an operator has removed this worker. Called between two steps.

        Before it leaves, the worker makes one more step, which empties its residual, or, if all workers of a job with a state
        folder were asked to stop, the steps up to their common one.

        Errors: SystemExit, with the exit codes of docs/failures.md.
        """
        if not self._stop_requested() and not self._client.retired:
            return
        try:
            if self._stop_step is None:
                self._client.wait_all()  # stop() would end later waits for parameters
                self._stop_step = self._step
                self._client.stop()
                self._choose_stop_step()
            # After stop(), no call waits until the step is dealt.
            if self._step < self._stop_step and (self._sampler is None or self._client.is_dealt(self._step)):
                return
            lost = 0 if self._keeps_residual else self._client.residual_norm()
            if lost > 0:
                print(f"thinwire: leaves with a residual of L1 norm {lost:.6g} that no server has", file=sys.stderr)
        except Error as error:
            print(f"thinwire: leaves with an unknown residual: {error}", file=sys.stderr)
        cause = "SIGTERM" if self._stop_requested() else "an operator removed this worker"
        print(f"thinwire: {cause}: worker {job.process('close()').worker} leaves before step {self._step}", file=sys.stderr)
        self.close()
        raise SystemExit(job.STOPPED if self._stop_requested() else 0)

    def _stop_requested(self) -> bool:
        return job.stop_requested()

    def _choose_stop_step(self) -> None:
        if self._stop_requested() and job.process("close()").state_dir:
            common = self._client.await_common_stop(_COMMON_STOP_SECONDS + self._step_seconds)
            if common is not None:
                self._stop_step, self._keeps_residual = common, True
                return
        self._drains = self._start_drain()
        self._stop_step = self._step + self._drains

    def _start_drain(self) -> bool:
        return self._client.start_drain(self._step_seconds)

    def _save_state_if_due(self) -> None:
        if not self._client.state_is_due:
            return
        try:
            self._client.save_state()
        except RolledBack:
            raise
        except Error as error:  # such as a full disk: the states of earlier steps remain
            print(f"thinwire: state not saved: {error}", file=sys.stderr)

    def _watch_divergence(self) -> None:
        nonfinite = self._client.nonfinite_gradients
        self._lost_steps = self._lost_steps + 1 if nonfinite > self._nonfinite else 0
        self._nonfinite = nonfinite
        if self._lost_steps >= _LOST_STEPS:
            raise DivergedError(
                f"step {self._step}: a gradient of each of the last {_LOST_STEPS} steps is infinite or NaN (expected finite "
                "gradients; a smaller learning rate may help)"
            )
