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
import os
import sys
import weakref

import torch

from thinwire import _client
from thinwire._client import DivergedError, Error, RefusedError, RolledBack, ServerLostError

__all__ = ["DistributedOptimizer", "DivergedError", "Error", "RefusedError", "RolledBack", "ServerLostError", "init"]

# Steps in sequence with a gradient that is not finite, after which training has diverged. The servers ignore such
# gradients, so the parameters no longer change.
_LOST_STEPS = 100

_process = None  # the arguments of init(); None before its call


def init(worker=None, addresses=None, config=None, credentials=None, insecure=None, state_dir=None):
    """Sets the settings of this process. An argument that is None has the value of its environment variable.

    Args:
      worker: the number of this worker, from 0. THINWIRE_WORKER, else RANK, which torchrun sets, else 0.
      addresses: host:port of every server, in the order of their numbers, separated by commas. THINWIRE_ADDRESSES.
      config: the path of the job file, which the servers read too. THINWIRE_CONFIG. Without it, the job consists of the
        settings of DistributedOptimizer and of the environment.
      credentials: the folder with ca.pem, cert.pem and key.pem. THINWIRE_CREDENTIALS; none: plaintext.
      insecure: allows plaintext to servers on other machines. THINWIRE_INSECURE.
      state_dir: the folder in which the worker keeps its residuals. THINWIRE_STATE_DIR.
    """
    global _process
    if worker is None:
        worker = _number("THINWIRE_WORKER" if "THINWIRE_WORKER" in os.environ else "RANK")
    if not isinstance(worker, int) or worker < 0:
        raise Error(f"worker: wrong value (expected a whole number from 0, got {worker!r})")
    if insecure is None:
        insecure = os.environ.get("THINWIRE_INSECURE", "").lower() in ("1", "true", "yes", "on")
    _process = {
        "worker": worker,
        "addresses": _given(addresses, "THINWIRE_ADDRESSES"),
        "config": _given(config, "THINWIRE_CONFIG"),
        "credentials": _given(credentials, "THINWIRE_CREDENTIALS"),
        "insecure": insecure,
        "state_dir": _given(state_dir, "THINWIRE_STATE_DIR"),
    }


def _given(value, variable):
    return os.environ.get(variable, "") if value is None else str(value)


def _number(variable):
    text = os.environ.get(variable, "0")
    if not text.isdecimal():
        raise Error(f"{variable}: wrong value (expected a whole number from 0, got {text!r})")
    return int(text)


def _settings(process, arguments):
    """Returns the settings of the job for _client.Client: defaults, then the environment, then ARGUMENTS.

    Each is a tuple of the name, the list of values, and the place for messages.
    """
    settings = []
    if not process["config"]:
        # Without a job file, the addresses and torchrun tell the sizes of the job.
        if process["addresses"]:
            settings.append(("servers", [str(process["addresses"].count(",") + 1)], "addresses"))
        if "WORLD_SIZE" in os.environ:
            settings.append(("workers", [os.environ["WORLD_SIZE"]], "WORLD_SIZE"))
    for name in _client.setting_names():
        variable = "THINWIRE_" + name.upper()
        if variable in os.environ:
            settings.append((name, [os.environ[variable]], variable))
    for name, value in arguments.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        settings.append((name, [_word(v) for v in values], name))
    return settings


def _word(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_parameters(model):
    """Returns the trainable parameters of MODEL by name. A parameter with several names has its first one."""
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: wrong type (expected torch.nn.Module, got {type(model).__name__})")
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise Error("model: no trainable parameter (expected at least one with requires_grad)")
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


def _write_job(path, text):
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def _leave(client):
    """Leaves the servers and ends the client, also at the end of the process."""
    if client.closed:
        return
    try:
        if client.in_step:
            print("thinwire: the process ends within a step, so other workers wait for its lease", file=sys.stderr)
        elif client.joined:
            client.save_state()
            client.leave()
    except Error as error:
        print(f"thinwire: {error}", file=sys.stderr)
    finally:
        client.close()


class DistributedOptimizer:
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
      settings: any setting of docs/configuration.md, such as push="fp8_e5m2" or mode="async". The servers' job file must
        have the same settings.

    Errors: RefusedError if the servers do not admit the worker; ServerLostError if a server cannot be reached; Error for
    wrong settings and parameters.
    """

    def __init__(self, model, optimizer=None, lr=None, *, steps=0, examples=1, overlap=True, **settings):
        if _process is None:
            raise Error("init: not called (expected thinwire.torch.init() before DistributedOptimizer)")
        if optimizer is not None:
            settings["optimizer"] = optimizer
        if lr is not None:
            settings["learning_rate"] = lr
        self.examples = examples
        self._model = model
        self._overlap = overlap
        parameters = _check_parameters(model)
        self._names = list(parameters)
        self._parameters = list(parameters.values())
        self._index = {id(p): i for i, p in enumerate(self._parameters)}
        job = _settings(_process, settings)
        if "THINWIRE_WRITE_JOB" in os.environ:
            _write_job(os.environ["THINWIRE_WRITE_JOB"], _client.job_text(_process["config"], job))
        self._client = _client.Client(
            settings=job,
            tensors=[(name, list(p.shape)) for name, p in parameters.items()],
            planned_steps=steps,
            examples=examples,
            **_process,
        )
        self._sync = True  # False within no_sync()
        self._given = {}  # index of a parameter -> its gradient and the gradient's version, in this step
        self._backward_ran = False
        self._error = None  # of the backward pass
        self._lost_steps = 0
        self._nonfinite = 0
        self._zeros = None  # the gradient of parameters that a step did not use
        self._hooks = []
        self._finalizer = weakref.finalize(self, _leave, self._client)
        self._join()

    # --- the training loop ---

    def step(self):
        """Completes the step: blocks until the model has the parameters of the next one.

        Follows servers that continue from an earlier step: `step_number` is then smaller than before.

        Errors: Error for a missing backward pass, and for changed gradients or parameters; ServerLostError; DivergedError.
        """
        if self._error is not None:
            raise self._error
        if not self._backward_ran:
            raise Error(
                "step: no gradient since the last step (expected loss.backward() before each step(), got none)"
            )
        self._check_unchanged()
        for index in range(len(self._parameters)):
            if index not in self._given:
                self._give(index)
        try:
            self._step = self._client.finish_step()
            self._save_state_if_due()
        except RolledBack:
            self._enter()
        self._given.clear()
        self._backward_ran = False
        self._mark_changed()
        self._watch_divergence()

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
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    # --- the job ---

    @property
    def step_number(self):
        """The number of the next step, from 0. It grows by more than 1 if the servers went on without this worker."""
        return self._step

    @property
    def live(self):
        """The numbers of the live workers."""
        return self._client.live

    @property
    def counters(self):
        """Counters since the start, by name: bytes, late pushes, times (docs/metrics.md)."""
        return self._client.counters

    def exact_parameters(self):
        """Returns the servers' exact fp32 parameters by name, for load_state_dict(..., strict=False) of another model.

        In mode sync they are those of the model's present step. In the other modes, they may be of several steps.
        """
        return self._by_name(self._client.read_masters())

    def average_parameters(self):
        """Like exact_parameters, but returns the moving averages (setting parameter_average)."""
        return self._by_name(self._client.read_averages())

    # --- the rest is private ---

    def _by_name(self, arrays):
        return {name: torch.from_numpy(array) for name, array in zip(self._names, arrays)}

    def _join(self):
        self._initial = [p.detach().numpy() for p in self._parameters]
        try:
            self._enter()
        except RefusedError as error:
            if "first values" not in str(error):
                raise
            raise RefusedError(
                f"{error}; all workers need the same model and seed, for example torch.manual_seed(0)"
            ) from None
        if not self._client.durable:
            self._initial = None  # no rollback will need them
        for index, p in enumerate(self._parameters):
            p.data = torch.from_numpy(self._client.replica(index))
        self._mark_changed()
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

    def _enter(self):
        """Joins, and joins again as long as the servers go back to an earlier step meanwhile."""
        while True:
            try:
                self._step = self._client.join(self._initial)
                self._client.wait_all()
                return
            except RolledBack:
                continue

    def _save_state_if_due(self):
        if not self._client.state_is_due:
            return
        try:
            self._client.save_state()
        except RolledBack:
            raise
        except Error as error:  # such as a full disk: the states of earlier steps remain
            print(f"thinwire: state not saved: {error}", file=sys.stderr)

    def _on_gradient(self, index):
        self._backward_ran = True
        if not self._sync or not self._overlap or self._error is not None:
            return
        # step() raises the error: after an exception in a backward pass, PyTorch 1.13 hangs at the end of the process.
        try:
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
        if gradient is None:
            if self._zeros is None:
                self._zeros = torch.zeros(max(q.numel() for q in self._parameters))
            values = self._zeros[: p.numel()].view(p.shape)
        elif gradient.layout != torch.strided:
            raise Error(f"gradient of {name}: sparse (expected a dense gradient, as of Embedding(sparse=False))")
        else:
            values = gradient.detach().contiguous()
        if not self._client.in_step:
            self._client.begin_step(self.examples)
        self._client.ready(index, values.numpy())
        self._given[index] = (gradient, None if gradient is None else gradient._version)

    def _check_unchanged(self):
        for index, (gradient, version) in self._given.items():
            if self._parameters[index].grad is not gradient or gradient._version != version:
                raise Error(
                    f"gradient of {self._names[index]}: changed between backward() and step() (expected no change, because "
                    "backward() has sent it; clip with the setting clip_norm, or use overlap=False)"
                )
        for name, p in self._model.named_parameters():
            if p.requires_grad and id(p) not in self._index:
                raise Error(
                    f"parameter {name}: new (expected the parameters that the model had when DistributedOptimizer was made)"
                )
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

    def _mark_changed(self):
        """Tells autograd that the client has changed the parameters, so that it refuses to use an old graph."""
        with torch.no_grad():
            for p in self._parameters:
                p.view(-1)[:0].zero_()  # counts as a change and writes nothing
        self._addresses = [p.data_ptr() for p in self._parameters]
        self._versions = [p._version for p in self._parameters]

    def _watch_divergence(self):
        nonfinite = self._client.counters["nonfinite_gradients"]
        self._lost_steps = self._lost_steps + 1 if nonfinite > self._nonfinite else 0
        self._nonfinite = nonfinite
        if self._lost_steps >= _LOST_STEPS:
            raise DivergedError(
                f"step {self._step}: a gradient of each of the last {_LOST_STEPS} steps is infinite or NaN (expected finite "
                "gradients; a smaller learning rate may help)"
            )
