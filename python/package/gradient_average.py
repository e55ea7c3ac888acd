"""GradientAverage: DistributedDataParallel averages its gradients through the servers."""

from typing import Any, TypeAlias

import torch
import torch.distributed

from thinwire._client import Error
from thinwire.models import ModelWorker, host_values

Bucket: TypeAlias = torch.distributed.GradBucket
BufferFuture: TypeAlias = torch.futures.Future[torch.Tensor]


class GradientAverage(ModelWorker):
    """Averages the gradients of DistributedDataParallel (DDP) through the servers, in place of all-reduce.

        ddp = torch.nn.parallel.DistributedDataParallel(model)
        state = tw.GradientAverage(ddp, push="fp8_e5m2", pull="bf16")
        ddp.register_comm_hook(state, tw.average_hook)

    The rest of the program, with any optimizer of torch.optim, stays as it is. Gradients are pushed while the backward pass
    computes them, and what a push loses is added to the next one (error feedback). The servers hold the mean gradient of the
    last step (optimizer "average"), so their job needs no learning rate. If no worker pushes a gradient of a tensor that is
    finite, its mean is 0.

    Workers update their parameters themselves, and keep equal ones only if each of them has every mean. Therefore the mode is
    sync, and a worker that misses a mean, or whose servers continue from an earlier step, raises an error: start all workers
    again from a checkpoint of the program, as after any failure with DDP.

    Args:
      ddp: a torch.nn.parallel.DistributedDataParallel with trainable parameters of fp32, bf16 or fp16.
      examples: the weight of this worker's gradient relative to the others'. DDP divides by the number of workers, so 1 is its
        mean. The attribute of the same name may be changed before a backward pass.
      settings: other settings of docs/configuration.md, such as push="topk".

    Errors: as DistributedOptimizer. PyTorch raises an error within a backward pass as a RuntimeError with the same text.
    """

    _takes_average = True

    def __init__(self, ddp: torch.nn.parallel.DistributedDataParallel, *, examples: int = 1, **settings: Any):
        if not isinstance(ddp, torch.nn.parallel.DistributedDataParallel):
            raise Error(f"ddp: wrong type (expected DistributedDataParallel, got {type(ddp).__name__})")
        if "optimizer" in settings:
            raise Error(f"optimizer: not a setting of GradientAverage (expected none, got {settings['optimizer']!r})")
        super().__init__(ddp.module, "average", None, 0, examples, settings)
        self._indices = {id(p): index for index, p in enumerate(self._parameters)}
        # Of this step: a future, the bucket's buffer, and its gradients by the index of their parameter.
        self._pending: list[tuple[BufferFuture, torch.Tensor, dict[int, torch.Tensor]]] = []
        self._join([torch.zeros(p.shape).numpy() for p in self._parameters])
        self._means = self._replica_tensors()
        self._hook = ddp.register_forward_pre_hook(lambda *_: self._leave_between_steps())

    def close(self) -> None:
        """Leaves the servers. Later backward passes raise an error. The end of the process does it, too."""
        self._hook.remove()
        super().close()

    def _leave_between_steps(self) -> None:
        # A backward pass is no place for SystemExit: PyTorch makes a RuntimeError of it.
        if not self._pending:
            self._leave_if_asked()

    def _push(self, bucket: Bucket) -> BufferFuture:
        """Pushes the gradients of BUCKET, and returns the future of the bucket's buffer with their means."""
        buffer = bucket.buffer()
        if buffer.layout != torch.strided:
            raise Error(f"bucket {bucket.index()}: sparse gradients (expected dense ones, as of Embedding(sparse=False))")
        if not self._client.in_step:
            self._check_known_parameters()
            self._client.begin_step(self.examples)
        gradients = {self._indices[id(p)]: g for p, g in zip(bucket.parameters(), bucket.gradients())}
        for index, gradient in gradients.items():
            self._client.ready(index, host_values(gradient))
        future: BufferFuture = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        self._pending.append((future, buffer, gradients))
        if bucket.is_last():
            self._complete()
        return future

    def _complete(self) -> None:
        """Waits for the means, puts them into the buffers of all buckets, and completes the futures."""
        step = self._step
        self._finish_step()
        if self._drains:
            self._client.wait_all()  # the program applies the means of the last step, too
        if self._step != step + 1:
            raise Error(
                f"step {step}: the mean gradient is lost (expected step {step + 1} next, got {self._step}); start all workers "
                "again from a checkpoint, since their parameters may differ"
            )
        pending, self._pending = self._pending, []
        for future, buffer, gradients in pending:
            for index, gradient in gradients.items():
                gradient.copy_(self._means[index].view(gradient.shape))
            future.set_result(buffer)
        self._watch_divergence()


def average_hook(state: GradientAverage, bucket: Bucket) -> BufferFuture:
    """The hook for ddp.register_comm_hook(state, average_hook). STATE is a GradientAverage, BUCKET a GradBucket of DDP."""
    return state._push(bucket)
