"""GroupClient: the client of a worker that consists of several processes (argument local_group of DistributedOptimizer)."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy
import torch
import torch.distributed

from thinwire import _client, job
from thinwire._client import Error, RolledBack
from thinwire.worker import Floats

Result = TypeVar("Result")


def local_group() -> Any:
    """Returns the group of the processes that are one worker together, for local_group and members of DistributedOptimizer.

    All processes of torch.distributed call it, after init(processes=N): N processes with adjoining ranks are a group.
    """
    count = job.process("local_group()").processes
    if torch.distributed.get_world_size() % count:
        raise Error(f"processes: does not divide the number of processes (expected a divisor of "
                    f"{torch.distributed.get_world_size()}, got {count})")
    groups = [torch.distributed.new_group(list(range(first, first + count)), backend="gloo")
              for first in range(0, torch.distributed.get_world_size(), count)]
    return groups[torch.distributed.get_rank() // count]


class GroupClient:
    """Has the calls of _client.Client that DistributedOptimizer makes. All processes of the group make them in the same order.

    The first process, the leader, has the client of the servers. It receives the mean of the gradients, weighted by the
    examples of each process, and sends the parameters to the others. What a call of the leader returns or raises, it returns or
    raises in all processes. The leader alone has counters, the exact parameters and the state folder.
    """

    def __init__(self, group: Any, shapes: list[list[int]], make: Callable[[], _client.Client]):
        """GROUP is a process group of torch.distributed for tensors of the CPU. MAKE makes the client, in the leader alone."""
        if torch.distributed.get_backend(group) != "gloo":
            raise Error(f"local_group: wrong backend (expected gloo, got {torch.distributed.get_backend(group)})")
        self._group = group
        self._leader = torch.distributed.get_global_rank(group, 0)
        self._is_leader = torch.distributed.get_rank() == self._leader
        self._client: Any = None
        # Results of the last step.
        self._progress = {"state_is_due": False, "retired": False, "nonfinite_gradients": 0, "stop_requested": False}
        self._settings: dict[str, Any] = {}
        self._settings = self._share(lambda: self._open(make))
        sizes = [int(numpy.prod(shape, dtype=int)) for shape in shapes]
        # The weighted gradients, and the number of examples behind them.
        self._sum = torch.empty(sum(sizes) + 1)
        self._gradients = [part.view(shape) for part, shape in zip(self._sum[:-1].split(sizes), shapes)]
        self._replicas: list[Floats] = [self._client.replica(i) if self._is_leader else numpy.zeros(shape, numpy.float32)
                                        for i, shape in enumerate(shapes)]
        self._begun: tuple[int, float, float] | None = None  # the arguments of begin_step()
        self.joined = False
        self.closed = False

    def __getattr__(self, name: str) -> Any:
        """Returns a setting of the job, a result of the last step, or, in the leader, an attribute of the client."""
        for values in (self._settings, self._progress):
            if name in values:
                return values[name]
        if self._is_leader:
            return getattr(self._client, name)
        raise Error(f"local_group: {name} is only known in the first process of the group (expected process {self._leader}, got "
                    f"{torch.distributed.get_rank()})")

    @property
    def in_step(self) -> bool:
        return self._begun is not None

    def replica(self, index: int) -> Floats:
        return self._replicas[index]

    def join(self, initial: list[Floats]) -> int:
        self._begun = None
        first: int = self._share(lambda: self._client.join(initial))
        self.joined = True
        return first

    def begin_step(self, examples: int, scale: float = 1, rate_factor: float = 1) -> None:
        self._begun = examples, scale, rate_factor

    def ready(self, index: int, gradient: Floats) -> None:
        assert self._begun is not None
        torch.mul(torch.from_numpy(gradient), self._begun[0], out=self._gradients[index])

    def end_step(self) -> None:
        assert self._begun is not None
        examples, scale, rate_factor = self._begun
        self._sum[-1] = examples
        self._call(lambda: torch.distributed.reduce(self._sum, self._leader, group=self._group))
        if not self._is_leader:
            return
        weight = int(self._sum[-1])
        self._sum /= max(1, weight)
        self._client.begin_step(weight, scale, rate_factor)
        for index in reversed(range(len(self._gradients))):
            self._client.ready(index, self._gradients[index].numpy())

    def next_step(self) -> int:
        self._progress = self._share(self._complete)
        self._begun = None
        return self._progress["next"]

    def wait_all(self) -> None:
        self._share(lambda: self._client.wait_all())
        works = [torch.distributed.broadcast(torch.from_numpy(values), self._leader, self._group, async_op=True)
                 for values in self._replicas]
        for work in works:
            self._call(work.wait)

    def start_drain(self, step_seconds: float) -> bool:
        return self._share(lambda: bool(self._client.start_drain(step_seconds)))

    def await_common_stop(self, seconds: float) -> int | None:
        step: int | None = self._share(lambda: self._client.await_common_stop(seconds))
        return step

    def residual_norm(self) -> float:
        return self._share(lambda: float(self._client.residual_norm()))

    # Of the leader alone: the loss and the tests of its process count, and the calls at the end of a process come at any
    # time.

    def report_progress(self, planned_steps: int, seconds: float, loss: float | None) -> None:
        if self._is_leader:
            self._client.report_progress(planned_steps, seconds, loss)

    def report_test(self, accuracy: float | None, loss: float | None) -> None:
        if self._is_leader:
            self._client.report_test(accuracy, loss)

    def stop(self) -> None:
        if self._is_leader:
            self._client.stop()

    def save_state(self) -> None:
        try:
            if self._is_leader:
                self._client.save_state()
        except RolledBack:
            pass  # wait_all() or next_step() reports it to all processes

    def leave(self, finished: bool = False, failed: bool = False, diverged: str = "") -> None:
        if self._is_leader:
            self._client.leave(finished, failed, diverged)

    def close(self) -> None:
        self.closed = True
        if self._is_leader:
            self._client.close()

    # --- the rest is private ---

    def _open(self, make: Callable[[], _client.Client]) -> dict[str, Any]:
        self._client = make()
        return {name: getattr(self._client, name)
                for name in ("durable", "learning_rate", "holds_average", "workers", "groups", "group_rate_factors")}

    def _complete(self) -> dict[str, int]:
        """Ends the step of the leader. Returns what all processes must know afterwards, because they act on it."""
        self._client.end_step()
        step = self._client.next_step()
        return {"next": step, "state_is_due": self._client.state_is_due, "retired": self._client.retired,
                "nonfinite_gradients": self._client.nonfinite_gradients, "stop_requested": job.stop_requested()}

    def _share(self, call: Callable[[], Result]) -> Result:
        """Returns or raises in all processes what CALL returns or raises in the leader."""
        outcome: list[Any] = [None, None]  # a result, an error
        if self._is_leader:
            try:
                outcome[0] = call()
            except Exception as error:
                outcome[1] = error
        self._call(lambda: torch.distributed.broadcast_object_list(outcome, self._leader, self._group))
        if outcome[1] is not None:
            raise outcome[1]
        result: Result = outcome[0]
        return result

    def _call(self, collective: Callable[[], Any]) -> None:
        """Makes a call of torch.distributed, which fails if a process of the group has ended."""
        try:
            collective()
        except RuntimeError as error:
            raise Error(f"local_group: lost a process of the group (expected {torch.distributed.get_world_size(self._group)} "
                        f"processes that train together): {str(error).splitlines()[0]}") from None
