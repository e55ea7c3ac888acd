"""LocalSteps: a worker trains alone for several steps between two exchanges with the servers."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thinwire._client import Error, RolledBack, StreamingSteps
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

    With FRAGMENTS above 1, each exchange is divided into as many, one after the other during the EVERY steps; with OVERLAP_STEPS
    above 0, the worker takes further steps while a fragment is under way (Streaming DiLoCo, Douillard et al. 2025, sections 2.2
    and 2.3; docs/streaming.md). The bytes of an exchange are then FRAGMENTS times fewer, and a round trip is hidden.

    Args:
      model: a torch.nn.Module. Its trainable parameters have fp32, bf16 or fp16 values and stay where they are; the worker
        exchanges fp32 values in the host's memory.
      optimizer: a torch.optim.Optimizer of all trainable parameters of MODEL.
      every: the number of local steps between two exchanges.
      fragments: the number of parts of the model that are exchanged one after the other, at most EVERY. The parameters must have
        fp32 values.
      overlap_steps: the local steps between the push of a fragment and the use of the answer, below EVERY / FRAGMENTS.
      mixing: the weight of the worker's own parameters when the answer is used, 0 to 1, with OVERLAP_STEPS above 0.
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
                 sampler: ElasticSampler | None = None, fragments: int = 1, overlap_steps: int = 0, mixing: float = 0.5,
                 **settings: Any):
        if not isinstance(every, int) or every < 1:
            raise Error(f"every: wrong value (expected a whole number from 1, got {every!r})")
        parameters = trainable_parameters(model)
        _check_optimizer(optimizer, parameters)
        streaming = None
        if (fragments, overlap_steps) != (1, 0):
            streaming = _streaming_fields(fragments, overlap_steps, mixing, parameters)
        super().__init__(model, outer, outer_lr, steps, examples, settings, sampler, every, streaming=streaming)
        self._inner = optimizer
        self._every = every
        self._local_steps = 0  # since the last exchange
        self._weight = 0  # the examples of these steps
        # Copies, since the inner optimizer changes the parameters in place.
        self._join([host_values(p).copy() for p in self._parameters])
        self._overlaps = overlap_steps > 0
        self._streaming: StreamingSteps | None = None
        if streaming is not None:
            self._streaming = StreamingSteps(self._client)
            self._own = [torch.from_numpy(self._streaming.parameters(i)) for i in range(len(self._parameters))]
        else:
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
        first = None if self._sampler is None else self._sampler.first()
        if not self._batch_counts(ends=True):
            return None
        if self._streaming is not None:
            return self._streaming_step(self._streaming, closure, [self.examples] * self._every if first is None
                                        else [len(batch) for batch in first.batches])
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
        if self._streaming is not None and (self._local_steps > 0 or self._overlaps):
            return self._sync_fragments(self._streaming)
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
        elif self._streaming is not None and self._streaming.unpushed_norm > 0 and not self._client.closed:
            print("thinwire: the local steps during the last exchanges are not pushed (expected sync() before close())",
                  file=sys.stderr)
        super().close()

    def _streaming_step(self, streaming: StreamingSteps, closure: Callable[[], Any] | None, batches: list[int]) -> Any:
        """Makes a step of the inner optimizer, and exchanges the fragments that are due. BATCHES: the examples of the local steps."""
        if not self._exchanging:
            self._check_known_parameters()
            self._begin_fragments(streaming, sum(batches), len(batches), self._ends_epoch())
        loss = self._inner.step(closure)
        self._local_steps += 1
        self._move(streaming, self._local_steps)
        if self._local_steps == len(batches):
            self._end_fragments()
        return loss

    def _sync_fragments(self, streaming: StreamingSteps) -> None:
        if self._local_steps > 0:
            self._move(streaming, self._every)
            self._end_fragments()
        if self._overlaps:
            # Pushes the local steps that were taken during exchanges.
            self._begin_fragments(streaming, self.examples * self._every, 0, whole=True)
            self._move(streaming, 0)
            self._end_fragments()

    def _ends_epoch(self) -> bool:
        # A worker that leaves pushes everything in its last step, too.
        return self._stop_step is not None or (self._sampler is not None and self._sampler.ends_epoch)

    def _begin_fragments(self, streaming: StreamingSteps, examples: int, local_steps: int, whole: bool) -> None:
        streaming.begin(examples, local_steps, whole)
        self._exchanging = True
        self._local_steps = 0
        self._move(streaming, 0)

    def _move(self, streaming: StreamingSteps, done: int) -> None:
        """Exchanges the fragments that are due after DONE local steps. Begins anew if the servers have gone back."""
        if not self._exchanging or done < streaming.due:
            return
        self._copy(self._parameters, self._own)
        try:
            if streaming.move(done):
                self._copy(self._own, self._parameters)
        except RolledBack:
            self._enter()
            self._take_parameters()
            self._follow_deals()

    def _end_fragments(self) -> None:
        if self._exchanging:
            self._end_step()
            self._follow_deals()

    @staticmethod
    def _copy(sources: Sequence[torch.Tensor], targets: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            for source, target in zip(sources, targets):
                target.copy_(source)

    def _start_drain(self) -> bool:
        has_unpushed = self._streaming is not None and self._streaming.unpushed_norm > 0
        return self._client.start_drain(self._step_seconds, has_unpushed)

    def _take_parameters(self) -> None:
        """Sets the model's parameters to those of the servers or, with fragments, makes them follow those."""
        if self._streaming is not None:
            if not self._drains:  # or else the worker leaves
                self._streaming.follow()
            self._copy(self._own, self._parameters)
            self._exchanging = False
        else:
            self._copy(self._replica, self._parameters)
        self._local_steps = 0
        self._weight = 0


def _streaming_fields(fragments: int, overlap_steps: int, mixing: float,
                      parameters: dict[str, torch.nn.Parameter]) -> dict[str, Any]:
    for name, value in (("fragments", fragments), ("overlap_steps", overlap_steps)):
        if not isinstance(value, int) or not 0 <= value < 2**32:
            raise Error(f"{name}: wrong value (expected a whole number, got {value!r})")
    for name, p in parameters.items():
        if p.dtype != torch.float32:
            raise Error(f"parameter {name}: wrong type for fragments and overlap_steps (expected torch.float32, got {p.dtype})")
    fields: dict[str, Any] = {"fragments": fragments}
    return fields | ({"overlap_steps": overlap_steps, "mixing": float(mixing)} if overlap_steps else {})


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
