"""ModelWorker: a worker whose tensors are the trainable parameters of a PyTorch model."""

from collections.abc import Callable
from typing import Any, cast

import torch

from thinwire._client import Client, Error
from thinwire.local_group import GroupClient
from thinwire.members import MemberClient, divide
from thinwire.sampler import ElasticSampler
from thinwire.worker import Floats, JobWorker

# The types of parameters whose values the servers hold without loss.
_TYPES = (torch.float32, torch.bfloat16, torch.float16)


def trainable_parameters(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
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


def fits_the_replica(parameter: torch.Tensor) -> bool:
    """Returns whether PARAMETER can have the client's memory: contiguous fp32 values of the host."""
    return parameter.dtype == torch.float32 and parameter.device.type == "cpu" and parameter.is_contiguous()


def host_values(tensor: torch.Tensor) -> Floats:
    """Returns the values of TENSOR as a contiguous fp32 array of the host, which is the tensor's memory if that has this form."""
    tensor = tensor.detach()
    values: Floats = (tensor if fits_the_replica(tensor) else tensor.to("cpu", torch.float32).contiguous()).numpy()
    return values


class ModelWorker(JobWorker):
    """A JobWorker for the trainable parameters of a model."""

    def __init__(self, model: torch.nn.Module, optimizer: str | None, learning_rate: float | None, steps: int,
                 examples: int, settings: dict[str, Any], sampler: ElasticSampler | None = None, batch_count: int = 1,
                 local_group: Any = None, streaming: dict[str, Any] | None = None, members: Any = None):
        """MODEL has trainable parameters of fp32, bf16 or fp16. LOCAL_GROUP and MEMBERS: the processes of the worker.

        The other arguments are those of JobWorker.
        """
        parameters = trainable_parameters(model)
        shapes = {name: list(p.shape) for name, p in parameters.items()}
        self._group_client: GroupClient | MemberClient | None = None
        division: dict[str, Any] | None = None
        if members is not None:
            division = divide(members, shapes)
            settings["members"] = torch.distributed.get_world_size(members)

        def wrap_client(make: Callable[[], Client]) -> Client:
            if members is not None:
                self._group_client = MemberClient(members, make)
            else:
                self._group_client = GroupClient(local_group, list(shapes.values()), make)
            return cast(Client, self._group_client)

        super().__init__(shapes, optimizer, learning_rate, steps, examples, settings, sampler, batch_count,
                         None if local_group is None and members is None else wrap_client, streaming, division)
        self._model = model
        self._names = list(parameters)
        self._parameters = list(parameters.values())

    def exact_parameters(self) -> dict[str, torch.Tensor]:
        """Returns the servers' exact fp32 parameters by name, for load_state_dict(..., strict=False) of another model.

        In mode sync they are those of the present step. In the other modes, they may be of several steps.
        """
        return self._by_name(self._client.read_masters())

    def average_parameters(self) -> dict[str, torch.Tensor]:
        """Like exact_parameters, but returns the moving averages (setting parameter_average)."""
        return self._by_name(self._client.read_averages())

    # --- the rest is for subclasses ---

    def _stop_requested(self) -> bool:
        # The processes of a group leave together: those that have not received the signal, too.
        return super()._stop_requested() if self._group_client is None else bool(self._group_client.stop_requested)

    def _by_name(self, arrays: list[Floats]) -> dict[str, torch.Tensor]:
        return {name: torch.from_numpy(array) for name, array in zip(self._names, arrays)}

    def _replica_tensors(self) -> list[torch.Tensor]:
        """Returns _replicas() as tensors in the same memory."""
        return [torch.from_numpy(array) for array in self._replicas()]

    def _check_known_parameters(self) -> None:
        known = {id(p) for p in self._parameters}
        for name, p in self._model.named_parameters():
            if p.requires_grad and id(p) not in known:
                raise Error(
                    f"parameter {name}: new (expected the parameters that the model had when {type(self).__name__} was made)"
                )
