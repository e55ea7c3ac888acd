"""A process that works for a job of thinwire's servers: its settings, and the base class of all ways to train a model."""

import json
import os
import signal
import sys
import threading
import time
import weakref

import torch

from thinwire import _client, hosting
from thinwire._client import DivergedError, Error, RefusedError, RolledBack
from thinwire.sampler import ElasticSampler

# Steps in sequence with a gradient that is not finite, after which training has diverged. The servers ignore such
# gradients, so the parameters no longer change.
_LOST_STEPS = 100

# The types of parameters whose values the servers hold without loss.
_TYPES = (torch.float32, torch.bfloat16, torch.float16)

# The exit code of a worker that was asked to stop, and the longest wait for the other workers' stop (docs/failures.md).
_STOPPED = 75
_COMMON_STOP_SECONDS = 2

_process = None  # the arguments of init(); None before its call
_stop_requested = False


def init(worker=None, addresses=None, config=None, credentials=None, insecure=None, state_dir=None):
    """Sets the settings of this process. An argument that is None has the value of its environment variable.

    In the main thread, also handles SIGTERM unless the program does: the worker leaves after its step (docs/python.md).

    Args:
      worker: the number of this worker, from 0. THINWIRE_WORKER, else RANK, which torchrun sets, else 0.
      addresses: host:port of every server, in the order of their numbers, separated by commas. THINWIRE_ADDRESSES. Without
        both, worker 0 starts the servers under torchrun (docs/python_launch.md).
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
    # A program with a handler of its own keeps it.
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _request_stop)


def _request_stop(number, frame):
    global _stop_requested
    _stop_requested = True
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second signal ends the process at once


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
    return settings + settings_of(arguments)


def settings_of(arguments):
    """Returns the settings {name: value} as _client.Client and _client.job_text take them."""
    settings = []
    for name, value in arguments.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        word = _group_text if name == "parameter_group" else _word
        settings.append((name, [word(v) for v in values], name))
    return settings


def _word(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def _group_text(group):
    if not isinstance(group, dict):
        raise Error(f"parameter_group: wrong value (expected a dict such as {{'match': '*.bias', 'weight_decay': 0}}, got {group!r})")
    return " ".join(f"{name}: {json.dumps(value) if name == 'match' else _word(value)}" for name, value in group.items())


def _write_job(path, text):
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def _leave(client, servers):
    """Leaves the servers and ends the client, also at the end of the process. SERVERS: a HostedServers or None."""
    if client.closed:
        return
    left = False
    try:
        if client.in_step:
            print("thinwire: the process ends within a step, so other workers wait for its lease", file=sys.stderr)
        elif client.joined:
            client.save_state()
            client.leave()
            left = True
    except Error as error:
        print(f"thinwire: {error}", file=sys.stderr)
    finally:
        client.close()
        if servers is not None:
            failed = hasattr(sys, "last_type")  # the program ends with an exception
            servers.end(left and not failed, lambda: _stop_requested)


def trainable_parameters(model):
    """Returns the trainable parameters of MODEL by name. A parameter with several names has its first one."""
    if not isinstance(model, torch.nn.Module):
        raise Error(f"model: wrong type (expected torch.nn.Module, got {type(model).__name__})")
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise Error("model: no trainable parameter (expected at least one with requires_grad)")
    for name, p in parameters.items():
        if p.dtype not in _TYPES:
            raise Error(f"parameter {name}: wrong type (expected one of {', '.join(map(str, _TYPES))}, got {p.dtype})")
    return parameters


def host_values(tensor):
    """Returns the values of TENSOR as a contiguous fp32 array of the host, which is the tensor's memory if that has this form."""
    return tensor.detach().to("cpu", torch.float32).contiguous().numpy()


class JobWorker:
    """A worker of a job whose tensors are trainable parameters. A context manager, which leaves the servers at its end."""

    _takes_average = False  # the servers hold mean gradients in place of parameters

    def __init__(self, model, parameters, optimizer, learning_rate, steps, examples, settings, sampler=None, batch_count=1):
        """Makes the client of PARAMETERS, the trainable ones of MODEL by name.

        BATCH_COUNT is the number of batches in a step of the servers. The other arguments are those of DistributedOptimizer.
        The caller calls _join() next, and _follow_deals() at the end.
        """
        if _process is None:
            raise Error(f"init: not called (expected thinwire.torch.init() before {type(self).__name__})")
        if sampler is not None and not isinstance(sampler, ElasticSampler):
            raise Error(f"sampler: wrong type (expected ElasticSampler, got {type(sampler).__name__})")
        if optimizer is not None:
            settings["optimizer"] = optimizer
        if learning_rate is not None:
            settings["learning_rate"] = learning_rate
        self.examples = examples if sampler is None else sampler.batch_size
        self._sampler = sampler
        self._model = model
        self._names = list(parameters)
        self._parameters = list(parameters.values())
        job = _settings(_process, settings)
        if "THINWIRE_WRITE_JOB" in os.environ:
            _write_job(os.environ["THINWIRE_WRITE_JOB"], _client.job_text(_process["config"], job))
        process, servers = _process, None
        if not process["addresses"] and hosting.is_available():
            servers = hosting.HostedServers(_client.job_text(process["config"], job), process)
            process = dict(process, addresses=servers.addresses)
        self._client = _client.Client(
            settings=job,
            tensors=[(name, list(p.shape)) for name, p in parameters.items()],
            planned_steps=steps,
            examples=self.examples * batch_count,
            task="" if sampler is None else sampler.task(batch_count),
            **process,
        )
        if self._client.holds_average != self._takes_average:
            raise Error(f"optimizer: average is only valid with GradientAverage (expected an optimizer that updates "
                        f"parameters, got average with {type(self).__name__})")
        if sampler is not None:
            sampler.attach(_process["worker"], self._client.workers, batch_count)
        self._zeros = None  # the gradient of parameters that a step does not use
        self._lost_steps = 0
        self._nonfinite = 0
        self._step_end = time.monotonic()
        self._step_seconds = 0.0  # of the last step
        self._stop_step = None  # the step before which this worker leaves; None: it was not asked to stop
        self._drains = False  # the step after which this worker leaves empties the residual
        self._keeps_residual = False  # for the next run: all workers stop
        self._finalizer = weakref.finalize(self, _leave, self._client, servers)

    @property
    def step_number(self):
        """The number of the servers' next step, from 0. It grows by more than 1 if they went on without this worker."""
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

        In mode sync they are those of the present step. In the other modes, they may be of several steps.
        """
        return self._by_name(self._client.read_masters())

    def average_parameters(self):
        """Like exact_parameters, but returns the moving averages (setting parameter_average)."""
        return self._by_name(self._client.read_averages())

    def close(self):
        """Leaves the servers. The model keeps its parameters, which no longer change. The end of the process does it, too."""
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close()

    # --- the rest is for subclasses ---

    def _by_name(self, arrays):
        return {name: torch.from_numpy(array) for name, array in zip(self._names, arrays)}

    def _replicas(self):
        """Returns the client's replica of the parameters: tensors in its memory, which change while it receives parameters."""
        return [torch.from_numpy(self._client.replica(index)) for index in range(len(self._names))]

    def _join(self, initial):
        """Joins with INITIAL, contiguous fp32 arrays, as the first parameters, and waits for those of the next step."""
        self._initial = initial
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

    def _enter(self):
        """Joins, and joins again as long as the servers go back to an earlier step meanwhile."""
        while True:
            try:
                self._step = self._client.join(self._initial)
                if self._sampler is not None:
                    self._sampler.restart()
                self._client.wait_all()
                return
            except RolledBack:
                continue

    def _end_step(self):
        """Completes the step: all gradients have been given. Afterwards the model has the parameters of the next step."""
        self._finish_step()
        self._take_parameters()
        self._watch_divergence()
        self._leave_if_asked()

    def _take_parameters(self):
        """Makes the replica's new parameters those of the model."""
        raise NotImplementedError

    def _follow_deals(self):
        """Waits until the next step is dealt. Makes the steps in which the sampler has no examples for this worker."""
        while self._sampler is not None:
            try:
                if self._sampler.begin(self._step, self._client):
                    return
            except RolledBack:
                self._enter()
                self._take_parameters()
                continue
            self._client.begin_step(0)
            for index in reversed(range(len(self._parameters))):
                self._give_zeros(index)
            self._end_step()

    def _give_zeros(self, index):
        """Passes a gradient of zeros for a parameter to the client."""
        p = self._parameters[index]
        if self._zeros is None:
            self._zeros = torch.zeros(max(q.numel() for q in self._parameters))
        self._client.ready(index, self._zeros[: p.numel()].view(p.shape).numpy())

    def _batch_counts(self, ends=False):
        """Returns whether the step uses the batch on which the program computes. Sets `examples` to its size.

        ENDS: the program goes on to the next batch.
        """
        if self._sampler is None:
            return True
        batch = self._sampler.end_first() if ends else self._sampler.first()
        self.examples = len(batch.examples)
        return not batch.void

    def _finish_step(self):
        """Ends the step at the client, which then has the next parameters in the replica."""
        try:
            if self._drains:
                self._client.end_step()
                self._step = self._client.next_step()
            else:
                self._step = self._client.finish_step()
                self._save_state_if_due()
        except RolledBack:
            self._enter()
        now = time.monotonic()
        self._step_seconds, self._step_end = now - self._step_end, now

    def _leave_if_asked(self):
        """Leaves and ends the process after SIGTERM, or if an operator has removed this worker. Called between two steps.

        Before it leaves, the worker makes one more step, which empties its residual, or, if all workers of a job with a state
        folder were asked to stop, the steps up to their common one.

        Errors: SystemExit, with the exit codes of docs/failures.md.
        """
        if not _stop_requested and not self._client.retired:
            return
        try:
            if self._stop_step is None:
                self._stop_step = self._step
                self._client.stop()
                self._choose_stop_step()
            # After stop(), no call waits until the step is dealt.
            if self._step < self._stop_step and (self._sampler is None or self._client.is_dealt(self._step)):
                return
            lost = 0 if self._keeps_residual else self._client.residual_norm()
            if lost > 0:
                print(f"thinwire: leaves with a residual of L1 norm {lost:.6g} that no server has", file=sys.stderr)
        except Error as error:
            print(f"thinwire: leaves with an unknown residual: {error}", file=sys.stderr)
        cause = "SIGTERM" if _stop_requested else "an operator removed this worker"
        print(f"thinwire: {cause}: worker {_process['worker']} leaves before step {self._step}", file=sys.stderr)
        self.close()
        raise SystemExit(_STOPPED if _stop_requested else 0)

    def _choose_stop_step(self):
        if _stop_requested and _process["state_dir"]:
            common = self._client.await_common_stop(_COMMON_STOP_SECONDS + self._step_seconds)
            if common is not None:
                self._stop_step, self._keeps_residual = common, True
                return
        self._drains = self._client.start_drain(self._step_seconds)
        self._stop_step += self._drains

    def _check_known_parameters(self):
        known = {id(p) for p in self._parameters}
        for name, p in self._model.named_parameters():
            if p.requires_grad and id(p) not in known:
                raise Error(
                    f"parameter {name}: new (expected the parameters that the model had when {type(self).__name__} was made)"
                )

    def _save_state_if_due(self):
        if not self._client.state_is_due:
            return
        try:
            self._client.save_state()
        except RolledBack:
            raise
        except Error as error:  # such as a full disk: the states of earlier steps remain
            print(f"thinwire: state not saved: {error}", file=sys.stderr)

    def _watch_divergence(self):
        nonfinite = self._client.counters["nonfinite_gradients"]
        self._lost_steps = self._lost_steps + 1 if nonfinite > self._nonfinite else 0
        self._nonfinite = nonfinite
        if self._lost_steps >= _LOST_STEPS:
            raise DivergedError(
                f"step {self._step}: a gradient of each of the last {_LOST_STEPS} steps is infinite or NaN (expected finite "
                "gradients; a smaller learning rate may help)"
            )
