"""ArrayOptimizer: the servers' optimizer for NumPy arrays, without PyTorch."""

from collections.abc import Mapping
from typing import Any

import numpy
import numpy.typing

from thinwire._client import Error
from thinwire.worker import Floats, JobWorker


class ArrayOptimizer(JobWorker):
    """Trains arrays with thinwire's servers: the servers apply the updates.

        thinwire.init()
        optimizer = thinwire.ArrayOptimizer({"w": w, "b": b}, "momentum", lr=0.1)
        w, b = optimizer.parameters["w"], optimizer.parameters["b"]
        while optimizer.step_number < 100:
            optimizer.step({"w": ..., "b": ...})     # the gradients at w and b

    Joining blocks until all workers have joined, or until `start_timeout_seconds` have passed.

    Args:
      arrays: the first parameters by name, arrays of real numbers. All workers need the same ones.
      optimizer, lr, steps, examples, settings: as those of thinwire.torch.DistributedOptimizer.

    Errors: RefusedError if the servers do not admit the worker; ServerLostError if a server cannot be reached; Error for
    wrong settings and arrays.
    """

    def __init__(self, arrays: Mapping[str, numpy.typing.ArrayLike], optimizer: str | None = None, lr: float | None = None,
                 *, steps: int = 0, examples: int = 1, **settings: Any):
        first = {name: _values(f"array {name}", array) for name, array in arrays.items()}
        if not first:
            raise Error("arrays: none (expected at least one)")
        super().__init__({name: array.shape for name, array in first.items()}, optimizer, lr, steps, examples, settings)
        self._join(list(first.values()))
        self.parameters: dict[str, Floats] = dict(zip(first, self._replicas()))

    def step(self, gradients: Mapping[str, numpy.typing.ArrayLike]) -> None:
        """Sends GRADIENTS by name, and blocks until `parameters` has the parameters of the next step.

        A parameter without a gradient has one of zeros. Follows servers that continue from an earlier step: `step_number` is
        then smaller than before.

        Errors: Error for a gradient of another name or shape; ServerLostError; DivergedError; SystemExit after SIGTERM and
        after the removal of this worker.
        """
        values = {name: _values(f"gradient of {name}", gradient) for name, gradient in gradients.items()}
        for name, value in values.items():
            if name not in self._shapes:
                raise Error(f"gradient of {name}: no such parameter (expected one of {', '.join(self._shapes)})")
            if list(value.shape) != self._shapes[name]:
                raise Error(f"gradient of {name}: wrong shape (expected {self._shapes[name]}, got {list(value.shape)})")
        self._client.begin_step(self.examples)
        for index, name in reversed(list(enumerate(self._shapes))):
            if name in values:
                self._client.ready(index, values[name])
            else:
                self._give_zeros(index)
        self._end_step()

    def exact_parameters(self) -> dict[str, Floats]:
        """Returns new arrays with the servers' exact fp32 parameters by name. `parameters` went through the codec of `pull`."""
        return dict(zip(self._shapes, self._client.read_masters()))

    def average_parameters(self) -> dict[str, Floats]:
        """Like exact_parameters, but returns the moving averages (setting parameter_average)."""
        return dict(zip(self._shapes, self._client.read_averages()))

    def _take_parameters(self) -> None:
        pass  # they are the replica


def _values(place: str, array: numpy.typing.ArrayLike) -> Floats:
    """Returns ARRAY as a contiguous fp32 array: itself, if it has this form. Errors: Error for other types."""
    values = numpy.asarray(array)
    if values.dtype.kind not in "fiu":
        raise Error(f"{place}: wrong type (expected real numbers, got {values.dtype})")
    return numpy.ascontiguousarray(values, numpy.float32).reshape(values.shape)
