"""LocalSteps: a worker trains alone for several steps between two exchanges with the servers."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from thinwire._client import Error
from thinwire.models import ModelWorker, host_values, trainable_parameters
from thinwire.sampler import ElasticSampler


class LocalSteps(ModelWorker):
    """Wraps the optimizer of a worker, and exchanges parameters with the servers after every EVERY of its steps.

        inner = torch.optim.AdamW(model.parameters(), lr=1e-3)
        optimizer = tw.LocalSteps(model, inner, every=32, outer="nesterov", outer_lr=0.7, push="fp8_e5m2", pull="bf16")
        for x, y in batches:
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        optimizer.sync()   # the steps since the last exchange

    The worker pushes the difference between its parameters at the last exchange and its present ones, and continues from the
    new parameters of the servers. The servers' optimizer, the outer one, receives the mean difference as its gradient. With
    "sgd" and outer_lr=1, the new parameters are the mean of the workers' parameters (federated averaging, McMahan et al.
    2017). With "nesterov" and AdamW as the inner optimizer, this is DiLoCo (Douillard et al. 2023, algorithm 1). Bytes per
    local step fall by the factor EVERY.

    The state of the inner optimizer, and buffers such as those of batch normalization, stay local. Schedulers of torch.optim
    apply to the inner optimizer. All workers must begin with the same parameters: seed them equally.

    Args:
      model: a torch.nn.Module. Its trainable parameters have fp32, bf16 or fp16 values and stay where they are; the worker
        exchanges fp32 values in the host's memory.
      optimizer: a torch.optim.Optimizer of all trainable parameters of MODEL.
      every: the number of local steps between two exchanges.
      outer, outer_lr: the servers' optimizer and its learning rate. None: those of the job file.
      steps: the number of exchanges of the run. Required with a schedule or a warm-up of the servers.
      examples: the weight of each local step relative to those of other workers, usually the batch size. The attribute of the
        same name may be changed before each step.
      sampler: the ElasticSampler of the training data. A batch is one local step. At the end of an epoch, an exchange may have
        fewer local steps.
      settings: any other setting of docs/configuration.md, such as momentum=0.9 or mode="async".

    Errors: as DistributedOptimizer.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, every: int, outer: str | None = None,
                 outer_lr: float | None = None, *, steps: int = 0, examples: int = 1,
                 sampler: ElasticSampler | None = None, **settings: Any):
        if not isinstance(every, int) or every < 1:
            raise Error(f"every: wrong value (expected a whole number from 1, got {every!r})")
        _check_optimizer(optimizer, trainable_parameters(model))
        super().__init__(model, outer, outer_lr, steps, examples, settings, sampler, every)
        self._inner = optimizer
        self._every = every
        self._local_steps = 0  # since the last exchange
        self._weight = 0  # the examples of these steps
        # Copies, since the inner optimizer changes the parameters in place.
        self._join([host_values(p).copy() for p in self._parameters])
        self._replica = self._replica_tensors()
        self._differences = [torch.empty_like(values) for values in self._replica]
        self._take_parameters()
        self._follow_deals()

    @property
    def local_steps(self) -> int:
        """The number of local steps since the last exchange."""
        return self._local_steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes a step of the inner optimizer. After every EVERY steps, calls sync(). Returns the value of CLOSURE."""
        if not self._batch_counts(ends=True):
            return None
        loss = self._inner.step(closure)
        self._local_steps += 1
        self._weight += self.examples
        if self._local_steps >= self._every or (self._sampler is not None and self._sampler.step_is_over):
            self.sync()
        return loss

    def sync(self) -> None:
        """Exchanges parameters with the servers: blocks until the model has their next ones.

        Follows servers that continue from an earlier step: `step_number` is then smaller than before. A difference that is
        infinite or NaN is ignored by the servers, and the model then continues from their parameters.

        Errors: Error if there was no step since the last exchange, and for changed parameters; ServerLostError; DivergedError;
        SystemExit after SIGTERM and after the removal of this worker.
        """
        if self._local_steps == 0:
            raise Error("sync: no local step since the last exchange (expected step() before sync(), got none)")
        self._check_known_parameters()
        with torch.no_grad():
            for p, replica, difference in zip(self._parameters, self._replica, self._differences):
                # The step began at the replica as the parameter's type represents it.
                torch.sub(replica.to(p.dtype).float(), p.to("cpu", torch.float32), out=difference)
        self._client.begin_step(self._weight)
        for index in reversed(range(len(self._parameters))):
            self._client.ready(index, self._differences[index].numpy())
        self._end_step()
        self._follow_deals()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients, or sets them to zero."""
        self._inner.zero_grad(set_to_none=set_to_none)

    def close(self) -> None:
        """Leaves the servers. The model keeps its parameters, also those of steps that were not exchanged."""
        if self._local_steps > 0 and not self._client.closed:
            print(f"thinwire: {self._local_steps} local steps are not exchanged (expected sync() before close())",
                  file=sys.stderr)
        super().close()

    def _take_parameters(self) -> None:
        """Sets the model's parameters to those of the servers."""
        with torch.no_grad():
            for p, replica in zip(self._parameters, self._replica):
                p.copy_(replica)
        self._local_steps = 0
        self._weight = 0


def _check_optimizer(optimizer: torch.optim.Optimizer, parameters: dict[str, torch.nn.Parameter]) -> None:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise Error(f"optimizer: wrong type (expected torch.optim.Optimizer, got {type(optimizer).__name__})")
    own = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    for name, p in parameters.items():
        if id(p) not in own:
            raise Error(f"parameter {name}: not in the optimizer (expected all trainable parameters of the model)")
    if len(own) != len(parameters):
        raise Error(
            f"optimizer: has other parameters (expected the {len(parameters)} trainable ones of the model, got {len(own)})"
        )
