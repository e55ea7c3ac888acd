"""Trains a PyTorch model with thinwire's servers (docs/python.md).

    import thinwire.torch as tw
    tw.init()
    optimizer = tw.DistributedOptimizer(model, "momentum", lr=0.1, push="fp8_e5m2", pull="bf16")
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()   # sends gradients while it runs
        optimizer.step()               # afterwards the model has the parameters of the next step

The servers hold the parameters and run the optimizer. All errors are thinwire.Error or one of its subclasses.
"""

import contextlib
import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from thinwire._client import DivergedError, Error, RefusedError, RolledBack, ServerLostError
from thinwire.gradient_average import GradientAverage, average_hook
from thinwire.job import init, rank, world_size
from thinwire.local_steps import LocalSteps
from thinwire.models import ModelWorker, host_values
from thinwire.sampler import ElasticSampler

__all__ = ["DistributedOptimizer", "DivergedError", "ElasticSampler", "Error", "GradientAverage", "LocalSteps", "RefusedError",
           "RolledBack", "ServerLostError", "average_hook", "init", "rank", "world_size"]


def _fits_the_replica(parameter: torch.Tensor) -> bool:
    """Returns whether PARAMETER can have the client's memory: contiguous fp32 values of the host."""
    return parameter.dtype == torch.float32 and parameter.device.type == "cpu" and parameter.is_contiguous()


class DistributedOptimizer(ModelWorker, torch.optim.Optimizer):
    """Replaces the optimizer of a model: the servers apply the updates.

    An Optimizer of PyTorch with one parameter group. Its rate, `param_groups[0]["lr"]`, may change between two steps, so
    schedulers of torch.optim work. The servers divide it by the job's learning_rate and multiply the rate of the update by the
    quotient; if the workers' rates differ, by the mean of their quotients, weighted by their examples. The state of the
    optimizer is at the servers: state_dict() has the rate alone.

    Trainable parameters of MODEL that are contiguous fp32 tensors on the CPU move into the client's memory. Others, on a GPU, of
    half precision, or channels_last, stay where they are, and step() copies the servers' fp32 values into them. Frozen parameters
    and buffers, such as those of batch normalization, stay local. All workers must begin with the same values: seed them equally.

    Joining blocks until all workers have joined, or until `start_timeout_seconds` have passed.

    Args:
      model: a torch.nn.Module with trainable parameters of fp32, bf16 or fp16.
      optimizer: the optimizer of the servers, such as "momentum" (docs/optimizers.md). None: that of the job file.
      lr: the learning rate, the setting learning_rate. None: that of the job file.
      steps: the number of steps of the run. Required with a schedule or a warm-up.
      examples: the weight of this worker's gradient relative to the others', usually the batch size. The attribute of the
        same name may be changed before a backward pass.
      overlap: sends gradients while the backward pass runs. False: in step(), so that gradients may be changed before it.
      sampler: the ElasticSampler of the training data, which then sets `examples` to the size of each batch.
      settings: any setting of docs/configuration.md, such as push="fp8_e5m2" or mode="async". The servers' job file must
        have the same settings.

    Errors: RefusedError if the servers do not admit the worker; ServerLostError if a server cannot be reached; Error for
    wrong settings and parameters.
    """

    def __init__(self, model: torch.nn.Module, optimizer: str | None = None, lr: float | None = None, *, steps: int = 0,
                 examples: int = 1, overlap: bool = True, sampler: ElasticSampler | None = None, **settings: Any):
        ModelWorker.__init__(self, model, optimizer, lr, steps, examples, settings, sampler)
        self._overlap = overlap
        self._sync = True  # False within no_sync()
        # Of this step: the index of a parameter, and its gradient with the gradient's version.
        self._given: dict[int, tuple[torch.Tensor | None, int | None]] = {}
        self._backward_ran = False
        self._rate: float | None = None  # of the step, once it has begun
        self._error: Error | None = None  # of the backward pass
        self._hooks: list[Any] = []
        self._join([host_values(p) for p in self._parameters])
        # Pairs of a parameter that stays in its own memory, and its values in the client's.
        self._copied: list[tuple[torch.Tensor, torch.Tensor]] = []
        for p, replica in zip(self._parameters, self._replica_tensors()):
            if _fits_the_replica(p):
                p.data = replica
            else:
                self._copied.append((p, replica))
        self._take_parameters()
        self._add_hooks()
        torch.optim.Optimizer.__init__(self, self._parameters, {"lr": self._client.learning_rate})
        self._follow_deals()

    # --- the training loop ---

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Completes the step: blocks until the model has the parameters of the next one. Returns the loss of CLOSURE.

        Args:
          closure: calls zero_grad() and backward(), and returns the loss. None: backward() was called before.

        Follows servers that continue from an earlier step: `step_number` is then smaller than before.

        Errors: Error for a missing backward pass, and for changed gradients or parameters; ServerLostError; DivergedError;
        SystemExit after SIGTERM and after the removal of this worker.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._error is not None:
            raise self._error
        if not self._backward_ran:
            raise Error(
                "step: no gradient since the last step (expected loss.backward() before each step(), got none)"
            )
        if not self._batch_counts(ends=True):
            self._backward_ran = False
            return loss
        self._check_unchanged()
        for index in range(len(self._parameters)):
            if index not in self._given:
                self._give(index)
        self._end_step()
        self._follow_deals()
        return loss

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds the only group, in the constructor of Optimizer. Errors: Error for another one."""
        if self.param_groups:
            raise Error("add_param_group: not available (expected groups as the argument parameter_group of DistributedOptimizer)")
        super().add_param_group(group)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulates gradients: backward passes within this context send nothing.

            with optimizer.no_sync():
                loss(model(x0), y0).backward()
            loss(model(x1), y1).backward()    # sends the sum of both gradients
            optimizer.step()
        """
        before, self._sync = self._sync, False
        try:
            yield
        finally:
            self._sync = before

    def close(self) -> None:
        """Leaves the servers. The model keeps its parameters, which no longer change. The end of the process does it, too."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        super().close()

    # --- the rest is private ---

    def _add_hooks(self) -> None:
        this = weakref.ref(self)
        self._accumulators: list[Any] = []  # autograd keeps the node of a parameter only as long as it is referenced
        for index, p in enumerate(self._parameters):

            def on_gradient(*_: Any, index: int = index) -> None:
                optimizer = this()
                if optimizer is not None:
                    optimizer._on_gradient(index)

            if hasattr(p, "register_post_accumulate_grad_hook"):
                self._hooks.append(p.register_post_accumulate_grad_hook(on_gradient))
            else:
                accumulator = p.expand_as(p).grad_fn.next_functions[0][0]
                self._accumulators.append(accumulator)
                self._hooks.append(accumulator.register_hook(on_gradient))

    def _on_gradient(self, index: int) -> None:
        self._backward_ran = True
        if not self._sync or not self._overlap or self._error is not None:
            return
        # step() raises the error: after an exception in a backward pass, PyTorch 1.13 hangs at the end of the process.
        try:
            if not self._batch_counts():
                return
            if index in self._given:
                raise Error(
                    f"backward: second gradient of {self._names[index]} in a step (expected step() after backward(); "
                    "accumulate gradients within no_sync(), or use overlap=False)"
                )
            self._give(index)
        except Error as error:
            self._error = error

    def _give(self, index: int) -> None:
        """Passes the gradient of a parameter to the client; zeros if the step did not use the parameter."""
        name, p = self._names[index], self._parameters[index]
        gradient = p.grad
        if gradient is not None and gradient.layout != torch.strided:
            raise Error(f"gradient of {name}: sparse (expected a dense gradient, as of Embedding(sparse=False))")
        if not self._client.in_step:
            self._begin_step()
        if gradient is None:
            self._give_zeros(index)
        else:
            self._client.ready(index, host_values(gradient))
        self._given[index] = (gradient, None if gradient is None else gradient._version)

    def _begin_step(self) -> None:
        rate, job_rate = self.param_groups[0]["lr"], self._client.learning_rate
        if not 0 <= rate < math.inf:
            raise Error(f"lr: out of range (expected a finite number of at least 0, got {rate})")
        if job_rate == 0 and rate != 0:
            raise Error(f"lr: not available with the job's learning_rate 0 (expected 0, got {rate})")
        self._client.begin_step(self.examples, rate_factor=rate / job_rate if job_rate else 1)
        self._rate = rate

    def _check_unchanged(self) -> None:
        if self._rate not in (None, self.param_groups[0]["lr"]):
            raise Error(
                f"lr: changed between backward() and step() (expected {self._rate}, with which backward() has sent gradients, "
                f"got {self.param_groups[0]['lr']}; change it before backward(), or use overlap=False)"
            )
        for index, (gradient, version) in self._given.items():
            if self._parameters[index].grad is not gradient or (gradient is not None and gradient._version != version):
                raise Error(
                    f"gradient of {self._names[index]}: changed between backward() and step() (expected no change, because "
                    "backward() has sent it; clip with the setting clip_norm, or use overlap=False)"
                )
        self._check_known_parameters()
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

    def _take_parameters(self) -> None:
        """Sets the parameters to those of the servers. Autograd then refuses to use an old graph."""
        self._given.clear()
        self._backward_ran = False
        self._rate = None
        with torch.no_grad():
            for p, replica in self._copied:
                p.copy_(replica)
            for p in self._parameters:
                if p.is_contiguous():
                    p.view(-1)[:0].zero_()  # counts as a change and writes nothing
        self._addresses = [p.data_ptr() for p in self._parameters]
        self._versions = [p._version for p in self._parameters]
