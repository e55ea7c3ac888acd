"""MemberClient: the client of a process that owns a part of its worker's model (argument members of DistributedOptimizer)."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy
import torch
import torch.distributed

from thinwire import _client, job
from thinwire._client import Error, RolledBack
from thinwire.worker import Floats

Result = TypeVar("Result")

_POLL_SECONDS = 0.05


def divide(group: Any, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Returns the arguments of _client.Client with which this process of GROUP owns the tensors SHAPES.

    The worker's model has the tensors of all processes, in the order of their numbers in the group. Errors: Error if two
    processes have a tensor of one name.
    """
    if isinstance(group, int):
        raise Error(f"members: wrong type (expected the result of local_group() after init(processes=N), got {group})")
    if torch.distributed.get_backend(group) != "gloo":
        raise Error(f"members: wrong backend (expected gloo, got {torch.distributed.get_backend(group)})")
    count, member = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
    if count < 2:
        raise Error(f"members: too few processes (expected init(processes=N) with at least 2, got {count})")
    parts: list[Any] = [None] * count
    torch.distributed.all_gather_object(parts, [(name, list(shape)) for name, shape in shapes.items()], group)
    owners: dict[str, int] = {}
    for owner, part in enumerate(parts):
        for name, _ in part:
            if name in owners:
                raise Error(f"parameter {name}: in the models of two processes (expected another name in each part, as in a part "
                            f"of one whole model, got it in members {owners[name]} and {owner})")
            owners[name] = owner
    first = sum(len(part) for part in parts[:member])
    return {"tensors": [tensor for part in parts for tensor in part], "member": member,
            "owned_tensors": list(range(first, first + len(shapes)))}


class MemberClient:
    """Has the calls of _client.Client that DistributedOptimizer makes, for the tensors of one process.

    All processes of the group make the calls below in the same order. They begin the same steps: if the servers let one process
    begin a later step than another, the other pushes empty gradients up to this step. They follow servers that go back to an
    earlier step together, and leave together. What fails in one process fails in all.
    """

    def __init__(self, group: Any, make: Callable[[], _client.Client]):
        self._group = group
        self._is_last = torch.distributed.get_rank(group) == torch.distributed.get_world_size(group) - 1
        self._next = 0
        self._misses_rollback = False  # another process has noticed that the servers go back; this one has not yet
        self.retired = False
        self.stop_requested = False
        self._client: Any = None
        self._client = self._together(make)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def join(self, initial: list[Floats]) -> int:
        self._zeros = [numpy.zeros_like(values) for values in initial]
        if self._misses_rollback:
            self._await_rollback()
        self._next = self._together(lambda: int(self._client.join(initial)))
        return self._skip_to_common_step()

    def next_step(self) -> int:
        self._next = self._together(lambda: int(self._client.next_step()))
        return self._skip_to_common_step()

    def wait_all(self) -> None:
        self._together(lambda: self._client.wait_all())

    def await_deals(self, step: int, known: int) -> list[bytes]:
        return self._together(lambda: list(self._client.await_deals(step, known)))

    def is_dealt(self, step: int) -> bool:
        return not self._largest(not self._client.is_dealt(step))

    def start_drain(self, step_seconds: float) -> bool:
        return bool(self._largest(self._together(lambda: bool(self._client.start_drain(step_seconds)))))

    def await_common_stop(self, seconds: float) -> int | None:
        step: int | None = self._together(lambda: self._client.await_common_stop(seconds))
        if self._largest(step is None):
            return None
        return step

    # Without the other processes. next_step() or wait_all() reports a rollback in all of them.

    def end_step(self) -> None:
        try:
            self._client.end_step()
        except RolledBack:
            pass

    def save_state(self) -> None:
        try:
            self._client.save_state()
        except RolledBack:
            pass

    def report_progress(self, planned_steps: int, seconds: float, loss: float | None) -> None:
        if self._is_last:  # which computes the loss in a pipeline
            self._client.report_progress(planned_steps, seconds, loss)

    # --- the rest is private ---

    def _skip_to_common_step(self) -> int:
        """Makes empty steps until all processes are before the same step, and returns it."""
        while True:
            largest = self._largest(self._next)
            if largest == -self._largest(-self._next):
                return self._next
            self._together(lambda: self._skip_to(largest))

    def _skip_to(self, step: int) -> None:
        while self._next < step:
            self._client.wait_all()
            self._client.begin_step(0)
            for index in reversed(range(len(self._zeros))):
                self._client.ready(index, self._zeros[index])
            self._client.end_step()
            self._next = self._client.next_step()

    def _await_rollback(self) -> None:
        """Waits until this process, too, has noticed that the servers go back."""
        self._misses_rollback = False
        while True:
            try:
                self._client.wait_all()
            except RolledBack:
                return
            time.sleep(_POLL_SECONDS)

    def _together(self, call: Callable[[], Result]) -> Result:
        """Returns the result of CALL if it succeeds in all processes. Raises RolledBack in all if it does in one."""
        result: Any = None
        error: Error | None = None
        try:
            result = call()
        except Error as raised:
            error = raised
        rolled_back = isinstance(error, RolledBack)
        retired = self._client is not None and bool(self._client.retired)
        state = torch.tensor([error is not None and not rolled_back, rolled_back, retired, job.stop_requested()], dtype=torch.int64)
        self._reduce(state)
        failed, any_rolled_back, self.retired, self.stop_requested = (bool(value) for value in state)
        if error is not None and not rolled_back:
            raise error
        if failed:
            raise Error("members: another process of the worker has failed (expected that all train together; it states why)")
        if any_rolled_back:
            self._misses_rollback = not rolled_back
            raise RolledBack("the servers continue from an earlier step")
        returned: Result = result
        return returned

    def _largest(self, value: int) -> int:
        largest = torch.tensor([value], dtype=torch.int64)
        self._reduce(largest)
        return int(largest)

    def _reduce(self, values: torch.Tensor) -> None:
        try:
            torch.distributed.all_reduce(values, torch.distributed.ReduceOp.MAX, self._group)
        except RuntimeError as error:
            raise Error(f"members: lost a process of the worker (expected {torch.distributed.get_world_size(self._group)} processes "
                        f"that train together): {str(error).splitlines()[0]}") from None
