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
import weakref

import torch

from thinwire._client import DivergedError, Error, RefusedError, RolledBack, ServerLostError
from thinwire.local_steps import LocalSteps
from thinwire.sampler import ElasticSampler
from thinwire.worker import JobWorker, init, trainable_parameters

__all__ = ["DistributedOptimizer", "DivergedError", "ElasticSampler", "Error", "LocalSteps", "RefusedError", "RolledBack",
           "ServerLostError", "init"]


def _check_parameters(model):
    """Returns the trainable parameters of MODEL by name, all of which can move into the client's memory."""
    parameters = trainable_parameters(model)
    for name, p in parameters.items():
        if p.dtype != torch.float32:
            raise Error(f"parameter {name}: wrong type (expected torch.float32, got {p.dtype})")
        if p.device.type != "cpu":
            raise Error(f"parameter {name}: wrong device (expected cpu, got {p.device})")
        if not p.is_contiguous():
            raise Error(
                f"parameter {name}: not contiguous (expected row-major values, got shape {tuple(p.shape)} with strides "
                f"{p.stride()}; a channels_last model needs model.to(memory_format=torch.contiguous_format))"
            )
    return parameters


class DistributedOptimizer(JobWorker):
    """Replaces the optimizer of a model: the servers apply the updates.

    The trainable parameters of MODEL move into the client's memory. Frozen parameters and buffers, such as those of batch
    normalization, stay local. All workers must begin with the same values: seed them equally.

    Joining blocks until all workers have joined, or until `start_timeout_seconds` have passed.

    Args:
      model: a torch.nn.Module on the CPU with contiguous fp32 parameters.
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

    def __init__(self, model, optimizer=None, lr=None, *, steps=0, examples=1, overlap=True, sampler=None, **settings):
        parameters = _check_parameters(model)
        super().__init__(model, parameters, optimizer, lr, steps, examples, settings, sampler)
        self._overlap = overlap
        self._sync = True  # False within no_sync()
        self._given = {}  # index of a parameter -> its gradient and the gradient's version, in this step
        self._backward_ran = False
        self._error = None  # of the backward pass
        self._hooks = []
        self._join([p.detach().numpy() for p in self._parameters])
        for p, replica in zip(self._parameters, self._replicas()):
            p.data = replica
        self._take_parameters()
        self._add_hooks()
        self._follow_deals()

    # --- the training loop ---

    def step(self):
        """Completes the step: blocks until the model has the parameters of the next one.

        Follows servers that continue from an earlier step: `step_number` is then smaller than before.

        Errors: Error for a missing backward pass, and for changed gradients or parameters; ServerLostError; DivergedError;
        SystemExit after SIGTERM and after the removal of this worker.
        """
        if self._error is not None:
            raise self._error
        if not self._backward_ran:
            raise Error(
                "step: no gradient since the last step (expected loss.backward() before each step(), got none)"
            )
        if not self._batch_counts(ends=True):
            self._backward_ran = False
            return
        self._check_unchanged()
        for index in range(len(self._parameters)):
            if index not in self._given:
                self._give(index)
        self._end_step()
        self._follow_deals()

    def zero_grad(self, set_to_none=True):
        """Removes the gradients, or sets them to zero."""
        for p in self._parameters:
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad.detach_().zero_()

    @contextlib.contextmanager
    def no_sync(self):
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

    def close(self):
        """Leaves the servers. The model keeps its parameters, which no longer change. The end of the process does it, too."""
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        super().close()

    # --- the rest is private ---

    def _add_hooks(self):
        this = weakref.ref(self)
        self._accumulators = []  # autograd keeps the node of a parameter only as long as it is referenced
        for index, p in enumerate(self._parameters):

            def on_gradient(*_, index=index):
                if this() is not None:
                    this()._on_gradient(index)

            if hasattr(p, "register_post_accumulate_grad_hook"):
                self._hooks.append(p.register_post_accumulate_grad_hook(on_gradient))
            else:
                accumulator = p.expand_as(p).grad_fn.next_functions[0][0]
                self._accumulators.append(accumulator)
                self._hooks.append(accumulator.register_hook(on_gradient))

    def _on_gradient(self, index):
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

    def _give(self, index):
        """Passes the gradient of a parameter to the client; zeros if the step did not use the parameter."""
        name, p = self._names[index], self._parameters[index]
        gradient = p.grad
        if gradient is not None and gradient.layout != torch.strided:
            raise Error(f"gradient of {name}: sparse (expected a dense gradient, as of Embedding(sparse=False))")
        if not self._client.in_step:
            self._client.begin_step(self.examples)
        if gradient is None:
            self._give_zeros(index)
        else:
            self._client.ready(index, gradient.detach().contiguous().numpy())
        self._given[index] = (gradient, None if gradient is None else gradient._version)

    def _check_unchanged(self):
        for index, (gradient, version) in self._given.items():
            if self._parameters[index].grad is not gradient or gradient._version != version:
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

    def _take_parameters(self):
        """Tells autograd that the client has changed the parameters, so that it refuses to use an old graph."""
        self._given.clear()
        self._backward_ran = False
        with torch.no_grad():
            for p in self._parameters:
                p.view(-1)[:0].zero_()  # counts as a change and writes nothing
        self._addresses = [p.data_ptr() for p in self._parameters]
        self._versions = [p._version for p in self._parameters]
