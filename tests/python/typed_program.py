"""Uses the whole public interface of the package, for types_test.py alone, which never runs it.

In a line with `type: ignore`, mypy must report that error.
"""

import numpy
import torch

import thinwire
import thinwire.torch as tw


def train(model: torch.nn.Module, data: list[int]) -> dict[str, torch.Tensor]:
    tw.init(worker=0, addresses="127.0.0.1:7000", config="", credentials="", insecure=False, state_dir="", processes=1)
    steps: int = 100 // tw.world_size() + tw.rank()
    sampler = tw.ElasticSampler(data, batch_size=8, seed=1)
    with tw.DistributedOptimizer(model, "momentum", 0.1, steps=steps, examples=8, overlap=True, sampler=sampler,
                                 push="fp8_e5m2", parameter_group=[{"match": "*.bias", "weight_decay": 0}]) as optimizer:
        for epoch in sampler.epochs(2):
            for batch in sampler:
                with optimizer.no_sync():
                    optimizer.zero_grad()
                loss: object = optimizer.step(lambda: sum(batch) + epoch)
                optimizer.report(loss=0.5)
                print(loss, optimizer.step_number + 1, optimizer.live[0], optimizer.counters["push_bytes_encoded"])
        optimizer.report(test_accuracy=0.9, test_loss=None)
        optimizer.average_parameters()
        return optimizer.exact_parameters()


def train_otherwise(model: torch.nn.Module, inner: torch.optim.Optimizer) -> None:
    optimizer = tw.LocalSteps(model, inner, every=4, outer="nesterov", outer_lr=0.7)
    optimizer.step()
    scaler = torch.cuda.amp.GradScaler()
    other = tw.DistributedOptimizer(model, "sgd", overlap="forward", grad_scaler=scaler)
    other.wait()
    other.load_state_dict(other.state_dict())
    tw.DistributedOptimizer(model, "sgd", overlap=False, local_group=tw.local_group())
    if optimizer.local_steps > 2:
        optimizer.sync()
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    ddp.register_comm_hook(tw.GradientAverage(ddp, examples=2, push="topk"), tw.average_hook)


def train_arrays() -> float:
    optimizer = thinwire.ArrayOptimizer({"w": numpy.ones(3), "b": 1.0}, "sgd", lr=0.1)
    try:
        optimizer.step({"w": [1, 2, 3], "b": 2})
    except (thinwire.RefusedError, thinwire.ServerLostError, thinwire.DivergedError, thinwire.RolledBack) as error:
        failure: thinwire.Error = error
        raise failure
    optimizer.close()
    return float(optimizer.parameters["w"][0])


def mistakes(model: torch.nn.Module) -> None:
    tw.init(worker=0.5)  # type: ignore[arg-type]
    tw.ElasticSampler(3, batch_size=8)  # type: ignore[arg-type]
    tw.DistributedOptimizer(model, learning_rate=0.1, steps="100")  # type: ignore[arg-type]
    tw.DistributedOptimizer(model, overlap="layers")  # type: ignore[arg-type]
    thinwire.ArrayOptimizer({}).steps_number  # type: ignore[attr-defined]
    tw.LocalSteps(model)  # type: ignore[call-arg]
    name: str = tw.rank()  # type: ignore[assignment]
    print(name)
