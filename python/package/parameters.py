"""ParameterValues: the parameters of a model and the servers' values of them, which may still be arriving."""

import copy
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from thinwire import _client
from thinwire._client import Error, RolledBack
from thinwire.models import fits_the_replica

# What PyTorch may tell about a parameter before its values have arrived.
_DESCRIPTIONS = {
    *(getattr(torch.Tensor, name).__get__ for name in ("grad", "requires_grad", "is_leaf", "grad_fn", "shape", "dtype", "device",
                                                       "layout", "ndim", "is_cuda", "is_sparse", "_version")),
    torch.Tensor.grad.__set__, torch.Tensor.grad.__delete__, torch.Tensor.size, torch.Tensor.dim, torch.Tensor.numel,
    torch.Tensor.stride, torch.Tensor.is_contiguous, torch.Tensor.is_floating_point,
}


class ParameterValues:
    """Gives the parameters of a model the servers' values of each step: all of them at once, or each one at its first use.

    A parameter that fits the client's memory has that memory. Others have values of their own, copied from there.

    In a step that begins with wait=False, every parameter is pending at first: its class is a subclass of Parameter whose
    __torch_function__ is called by PyTorch before a function or an attribute of the tensor reads its values. That waits for
    the values, makes the class Parameter again, and repeats the call. Later uses of the parameter cost nothing. So each use in
    Python is safe, in a forward pass or outside, through a module or through the parameter itself. Not seen are tensors that
    share the memory of a parameter, and uses in C++ alone.
    """

    def __init__(self, client: _client.Client, names: Sequence[str], parameters: Sequence[torch.Tensor],
                 replicas: Sequence[torch.Tensor], rejoin: Callable[[], None]):
        """REPLICAS are tensors in the client's memory. REJOIN() follows servers that have gone back to an earlier step."""
        self._client = client
        self._names = names
        self._parameters = parameters
        self._copied: dict[int, torch.Tensor] = {}  # values of the parameters that do not fit, by index
        self._rejoin = rejoin
        self._lock = threading.RLock()  # of the waits, which release the GIL
        self._pending: dict[int, int] = {}  # the indices of pending parameters, by id
        self._pending_class = _make_pending_class(self)
        for index, (p, replica) in enumerate(zip(parameters, replicas)):
            if fits_the_replica(p):
                p.data = replica
            else:
                self._copied[index] = replica

    def begin_step(self, wait: bool) -> None:
        """Makes the values those of the servers' next step. Autograd then refuses to use a graph of an earlier step.

        WAIT: all values are in the client's memory. False: each parameter is pending until its first use.
        """
        with torch.no_grad():
            for p in self._parameters:
                (p if p.dim() else p.view(1))[:0].zero_()  # counts as a change and writes nothing
        self._addresses = [p.data_ptr() for p in self._parameters]
        self._versions = [p._version for p in self._parameters]
        if wait:
            return self._copy_all()
        for index, p in enumerate(self._parameters):
            if type(p) is torch.nn.Parameter:
                self._pending[id(p)] = index
                p.__class__ = self._pending_class
            else:
                self._finish(index)

    def wait(self, parameters: Iterable[torch.Tensor] | None = None) -> None:
        """Blocks until PARAMETERS, all by default, have their values. Errors: as Client.wait_tensor, without RolledBack."""
        with self._lock:
            for p in self._parameters if parameters is None else parameters:
                if id(p) in self._pending:
                    self._finish(self._pending[id(p)])

    def release(self) -> None:
        """Makes pending parameters ordinary ones, whose values may be of several steps."""
        with self._lock:
            for index in self._pending.values():
                self._parameters[index].__class__ = torch.nn.Parameter
            self._pending.clear()

    def check_unchanged(self) -> None:
        """Raises Error if a parameter has other memory, or values that the servers did not give it."""
        for name, p, address, version in zip(self._names, self._parameters, self._addresses, self._versions):
            if p.data_ptr() != address:
                raise Error(
                    f"parameter {name}: moved to other memory (expected the replica; call model.to() and assign to .data "
                    "before DistributedOptimizer)"
                )
            if p._version != version:
                raise Error(
                    f"parameter {name}: changed in place (expected that only the servers change it; load weights before "
                    "DistributedOptimizer)"
                )

    def _finish(self, index: int) -> None:
        """Waits for the values of a parameter and makes it an ordinary one."""
        p = self._parameters[index]
        try:
            self._client.wait_tensor(index)
        except RolledBack:
            self.release()
            self._rejoin()
            return self._copy_all()
        if self._pending.pop(id(p), None) is not None:
            p.__class__ = torch.nn.Parameter
        if index in self._copied:
            self._copy(index)

    def _copy_all(self) -> None:
        for index in self._copied:
            self._copy(index)

    def _copy(self, index: int) -> None:
        # Through .data this is no change for autograd, for which the step has begun already.
        self._parameters[index].data.copy_(self._copied[index])


def _make_pending_class(values: ParameterValues) -> type:
    class PendingParameter(torch.nn.Parameter):
        """A parameter whose values are arriving."""

        @classmethod
        def __torch_function__(cls, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (),
                               kwargs: Mapping[str, Any] | None = None) -> Any:
            kwargs = kwargs or {}
            if function in _DESCRIPTIONS:
                with torch._C.DisableTorchFunction():
                    return function(*args, **kwargs)
            found = [a for a in (*args, *kwargs.values()) if isinstance(a, PendingParameter)]
            values.wait(found or None)  # those in a list: all
            return function(*args, **kwargs)

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            values.wait([self])
            return copy.deepcopy(self, memo)

    return PendingParameter
