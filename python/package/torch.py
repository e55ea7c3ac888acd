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
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch

from thinwire._client import Client, DivergedError, Error, RefusedError, RolledBack, ServerLostError
from thinwire.gradient_average import GradientAverage, average_hook
from thinwire.job import init, rank, world_size
from thinwire.local_group import local_group
from thinwire.local_steps import LocalSteps
from thinwire.models import ModelWorker, host_values
from thinwire.parameters import ParameterValues
from thinwire.sampler import ElasticSampler

__all__ = ["DistributedOptimizer", "DivergedError", "ElasticSampler", "Error", "GradientAverage", "LocalSteps", "RefusedError",
           "RolledBack", "ServerLostError", "average_hook", "init", "local_group", "rank", "world_size"]


class DistributedOptimizer(ModelWorker, torch.optim.Optimizer):
    """Replaces the optimizer of a model: the servers apply the updates.

    An Optimizer of PyTorch with the parameter groups of the job that have parameters, usually one. Their rates,
    `param_groups[i]["lr"]`, may change between two steps by a common factor, so schedulers of torch.optim work. The servers
    multiply the rate of the update by that factor; if the workers' factors differ, by their mean, weighted by their examples.
    The state of the optimizer is at the servers: state_dict() has the rates alone.

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
      overlap: True sends gradients while the backward pass runs. "forward" also lets step() return before the parameters have
        arrived: their first use waits for each (docs/python.md has the limits). False sends gradients in step(), so that they
        may be changed before it.
      grad_scaler: the GradScaler that scales the loss, needed unless overlap is False.
      sampler: the ElasticSampler of the training data, which then sets `examples` to the size of each batch.
      local_group: the result of local_group(): the processes that are one worker together, such as those of a machine. Each computes
        the gradient of its own part of the batch, with its own `examples`, and calls step(). The first process speaks with the
        servers.
      members: the result of local_group(): the processes that are one worker together, each with a MODEL that is a part of the whole
        one, such as a stage of a pipeline. Each pushes the gradients of its own parameters (docs/model_parallel.md).
      settings: any setting of docs/configuration.md, such as push="fp8_e5m2" or mode="async". The servers' job file must
        have the same settings.

    Errors: RefusedError if the servers do not admit the worker; ServerLostError if a server cannot be reached; Error for
    wrong settings and parameters.
    """

    def __init__(self, model: torch.nn.Module, optimizer: str | None = None, lr: float | None = None, *, steps: int = 0,
                 examples: int = 1, overlap: bool | Literal["forward"] = True, grad_scaler: Any = None,
                 sampler: ElasticSampler | None = None, local_group: Any = None, members: Any = None, **settings: Any):
        if overlap not in (True, False, "forward"):
            raise Error(f"overlap: wrong value (expected True, False or 'forward', got {overlap!r})")
        if overlap == "forward":
            _check_runs_in_python(model)
        if local_group is not None and (overlap == "forward" or sampler is not None):
            raise Error("local_group: not available with overlap='forward' and with a sampler (expected neither; each process "
                        "takes its own part of the worker's batch)")
        if members is not None and (overlap == "forward" or local_group is not None):
            raise Error("members: not available with overlap='forward' and with local_group (expected neither; members wait for "
                        "their parameters together)")
        ModelWorker.__init__(self, model, optimizer, lr, steps, examples, settings, sampler, local_group=local_group,
                             members=members)
        self._overlap = overlap
        self._grad_scaler = grad_scaler
        self._is_lost = False  # the batch on which the program computes: the servers went back during its forward pass
        self._sync = True  # False within no_sync()
        # Of this step: the index of a parameter, and its gradient with the gradient's version.
        self._given: dict[int, tuple[torch.Tensor | None, int | None]] = {}
        self._backward_ran = False
        self._rates: list[float] | None = None  # of the step, once it has begun
        self._error: Error | None = None  # of the backward pass
        self._hooks: list[Any] = []
        self._join([host_values(p) for p in self._parameters])
        this = weakref.ref(self)
        self._values = ParameterValues(self._client, self._names, self._parameters, self._replica_tensors(),
                                       lambda: _rejoin(this))
        # Runs before the finalizer of JobWorker, which ends the client.
        self._values_finalizer = weakref.finalize(self, _complete, self._client, self._values)
        self._take_parameters()
        self._add_hooks()
        torch.optim.Optimizer.__init__(self, self._torch_groups(), {"lr": self._client.learning_rate})
        self._follow_deals()

    # --- the training loop ---

    # A GradScaler then calls step() also after gradients that are not finite, and does not change them before.
    _step_supports_amp_scaling = True

    def step(self, closure: Callable[[], Any] | None = None, **from_scaler: Any) -> Any:
        """Completes the step: blocks until the model has the parameters of the next one. Returns the loss of CLOSURE.

        Args:
          closure: calls zero_grad() and backward(), and returns the loss. None: backward() was called before.
          from_scaler: given by GradScaler.step(optimizer) alone.

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
        scale = self._scale_of_step(**from_scaler)
        self._values.wait()  # for parameters that the step did not use
        if not self._batch_counts(ends=True):
            self._backward_ran = False
            if self._is_lost:
                self._is_lost = False
                self._take_parameters()
                self._follow_deals()
            return loss
        self._check_unchanged(ignore_versions=scale is not None)
        for index in range(len(self._parameters)):
            if index not in self._given:
                self._give(index, scale)
        self._end_step()
        self._follow_deals()
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Sets the rates to those of STATE_DICT. Errors: Error for the state of a local optimizer."""
        if state_dict["state"]:
            raise Error(
                f"state_dict: not of DistributedOptimizer (expected no state of parameters, which the servers keep in their "
                f"checkpoints, see `thinwire checkpoint`; got that of {len(state_dict['state'])} parameters)"
            )
        super().load_state_dict(state_dict)

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds a group of the job, in the constructor of Optimizer. Errors: Error later."""
        if len(self.param_groups) == len(self._job_rates):
            raise Error("add_param_group: not available (expected groups as the argument parameter_group of DistributedOptimizer)")
        super().add_param_group(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients, or sets them to zero."""
        with torch._C.DisableTorchFunction():  # so that it does not ask for the values of parameters that arrive
            super().zero_grad(set_to_none=set_to_none)

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

    def wait(self) -> None:
        """Blocks until the values of all parameters have arrived (overlap="forward"). Errors: ServerLostError."""
        self._values.wait()

    def close(self) -> None:
        """Leaves the servers. The model keeps its parameters, which no longer change. The end of the process does it, too."""
        self._values_finalizer()
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

    def _batch_counts(self, ends: bool = False) -> bool:
        return super()._batch_counts(ends) and not self._is_lost

    def _give(self, index: int, scale: float | None = None) -> None:
        """Passes the gradient of a parameter to the client; zeros if the step did not use the parameter.

        SCALE: the factor of the gradients; None: that of the GradScaler.
        """
        name, p = self._names[index], self._parameters[index]
        gradient = p.grad
        if gradient is not None and gradient.layout != torch.strided:
            raise Error(f"gradient of {name}: sparse (expected a dense gradient, as of Embedding(sparse=False))")
        if not self._client.in_step:
            if scale is None:
                scale = 1.0 if self._grad_scaler is None else self._grad_scaler.get_scale()
            self._client.begin_step(self.examples, scale, self._rate_factor())
            self._rates = self._present_rates()
        if gradient is None:
            self._give_zeros(index)
        else:
            self._client.ready(index, host_values(gradient))
        self._given[index] = (gradient, None if gradient is None else gradient._version)

    def _scale_of_step(self, grad_scaler: Any = None) -> float | None:
        """Returns the factor of the gradients if a GradScaler calls step(), else None.

        GRAD_SCALER is an argument in PyTorch 1.13. Newer ones set the attributes grad_scale and found_inf meanwhile.
        """
        if grad_scaler is not None:
            is_scaled = grad_scaler._per_optimizer_states[id(self)]["stage"].name == "READY"
            if is_scaled:
                grad_scaler._check_inf_per_device(self)
            scale = grad_scaler.get_scale() if is_scaled else 1.0
        elif hasattr(self, "found_inf"):
            is_scaled = self.grad_scale is not None
            scale = float(self.grad_scale) if is_scaled else 1.0
        else:
            return None
        if self._overlap and self._grad_scaler is None:
            raise Error("grad_scaler: missing (expected the GradScaler as an argument of DistributedOptimizer, because backward() "
                        "has sent scaled gradients, or overlap=False; got none)")
        if self._overlap and not is_scaled:
            raise Error("grad_scaler: unscale_() called between backward() and step() (expected no call, because backward() has "
                        "sent the gradients; clip with the setting clip_norm, or use overlap=False)")
        return scale

    def _torch_groups(self) -> list[dict[str, Any]]:
        """Returns the job's parameter groups that have parameters, with their rates."""
        rate, groups = self._client.learning_rate, self._client.groups
        torch_groups: list[dict[str, Any]] = []
        for number, factor in enumerate(self._client.group_rate_factors):
            own = [p for p, group in zip(self._parameters, groups) if group == number]
            if own:
                torch_groups.append({"params": own, "lr": rate * factor})
        self._job_rates: list[float] = [group["lr"] for group in torch_groups]
        return torch_groups

    def _present_rates(self) -> list[float]:
        return [float(group["lr"]) for group in self.param_groups]

    def _rate_factor(self) -> float:
        """Returns the quotient of the present rates and those of the job."""
        factor: float | None = None
        for index, (rate, job_rate) in enumerate(zip(self._present_rates(), self._job_rates)):
            place = "lr" if len(self._job_rates) == 1 else f"lr of param_groups[{index}]"
            if not 0 <= rate < math.inf:
                raise Error(f"{place}: out of range (expected a finite number of at least 0, got {rate})")
            if job_rate == 0:
                if rate != 0:
                    raise Error(f"{place}: not available with the job's rate 0 (expected 0, got {rate})")
            elif factor is None:
                factor = rate / job_rate
            elif not math.isclose(rate, factor * job_rate, rel_tol=1e-6, abs_tol=1e-30):
                raise Error(f"{place}: another factor than that of the group before (expected {factor * job_rate:g}, since all "
                            f"rates change by a common factor, got {rate:g}; set learning_rate_factor of the parameter_group)")
        return 1.0 if factor is None else factor

    def _check_unchanged(self, ignore_versions: bool) -> None:
        """Raises Error for changed rates, gradients or parameters.

        IGNORE_VERSIONS: a GradScaler has multiplied gradients by 1.
        """
        if self._rates not in (None, self._present_rates()):
            raise Error(
                f"lr: changed between backward() and step() (expected {_text(self._rates)}, with which backward() has sent "
                f"gradients, got {_text(self._present_rates())}; change it before backward(), or use overlap=False)"
            )
        for index, (gradient, version) in self._given.items():
            is_same = self._parameters[index].grad is gradient
            if not is_same or not (gradient is None or ignore_versions or gradient._version == version):
                raise Error(
                    f"gradient of {self._names[index]}: changed between backward() and step() (expected no change, because "
                    "backward() has sent it; clip with the setting clip_norm, or use overlap=False)"
                )
        self._check_known_parameters()
        self._values.check_unchanged()

    def _wait_parameters(self) -> None:
        if self._overlap != "forward":
            super()._wait_parameters()

    def _take_parameters(self) -> None:
        self._given.clear()
        self._backward_ran = False
        self._rates = None
        self._values.begin_step(wait=self._overlap != "forward")


def _text(rates: list[float] | None) -> str:
    return ", ".join(map(str, rates or []))


def _check_runs_in_python(model: torch.nn.Module) -> None:
    for module in model.modules() if isinstance(model, torch.nn.Module) else []:
        is_compiled = getattr(module, "_compiled_call_impl", None) is not None or hasattr(module, "_orig_mod")
        if isinstance(module, torch.jit.ScriptModule) or is_compiled:
            raise Error(f"overlap: 'forward' is not available with TorchScript and torch.compile (expected a model that runs in "
                        f"Python, got {type(module).__name__})")


def _rejoin(reference: "weakref.ref[DistributedOptimizer]") -> None:
    """Follows servers that have gone back to an earlier step while parameters were arriving."""
    optimizer = reference()
    if optimizer is None:
        raise RolledBack("the servers continue from an earlier step")
    optimizer._enter()
    optimizer._is_lost = True


def _complete(client: Client, values: ParameterValues) -> None:
    """Waits for the parameters that are arriving, so that the model keeps those of one step."""
    try:
        if not client.closed:
            values.wait()
    except Error as error:
        print(f"thinwire: parameters of the model are of several steps: {error}", file=sys.stderr)
    finally:
        values.release()
