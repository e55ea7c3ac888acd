"""The worker processes of the tests: worker.py SCENARIO SETTINGS ARGUMENTS, with the last two as JSON."""

import collections
import contextlib
import json
import os
import sys
import time

import torch

import thinwire
import thinwire.torch as tw

STEPS = 30
RATE = 0.05
WORKER = int(os.environ.get("THINWIRE_WORKER") or os.environ["RANK"])  # the second: under torchrun


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))


def batch(worker, step, count=32):
    """Returns the examples of a worker and step: the class is the largest of the first four inputs."""
    x = torch.randn(count, 16, generator=torch.Generator().manual_seed(1000 * worker + step))
    return x, x[:, :4].argmax(1)


def loss_of(model, worker, step):
    x, y = batch(worker, step)
    return torch.nn.functional.cross_entropy(model(x), y)


def values_of(model):
    return [p.detach().flatten().tolist() for p in model.parameters()]


def plain_parameters(workers, steps):
    """Returns the parameters after STEPS of plain PyTorch with whole batches of WORKERS workers."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    for step in range(steps):
        optimizer.zero_grad()
        sum(loss_of(model, w, step) / workers for w in range(workers)).backward()
        optimizer.step()
    return values_of(model)


def train(settings, steps=STEPS, pause_at=None, step_seconds=0, state_dir=None, overlap=True, planned=0):
    """Trains the model and prints its parameters, the last loss and the counters.

    Reads a line of input at step PAUSE_AT. Every step takes at least STEP_SECONDS; if that is not 0, prints a line before the
    first step. PLANNED: the argument `steps` of the optimizer.
    """
    model = make_model()
    tw.init(state_dir=state_dir)
    settings = dict(settings)
    optimizer = tw.DistributedOptimizer(model, settings.pop("optimizer", "sgd"), settings.pop("learning_rate"), overlap=overlap,
                                        steps=planned, **settings)
    if step_seconds:
        print("training", flush=True)
    while optimizer.step_number < steps:
        if optimizer.step_number == pause_at:
            pause_at = None
            print("paused", flush=True)
            sys.stdin.readline()
        time.sleep(step_seconds)
        optimizer.zero_grad()
        loss = loss_of(model, WORKER, optimizer.step_number)
        loss.backward()
        optimizer.step()
    counters = optimizer.counters
    optimizer.close()
    print(json.dumps({"parameters": values_of(model), "loss": loss.item(), "step": optimizer.step_number,
                      "counters": counters}))


def train_locally(settings, exchanges, every, seconds=0, streaming=None):
    """Trains with LocalSteps. Every exchange takes at least SECONDS; if that is not 0, prints a line before the first.

    STREAMING: fragments, overlap_steps and mixing. With an overlap, one more exchange follows.
    """
    model = make_model()
    tw.init()
    settings = dict(settings)
    inner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    optimizer = tw.LocalSteps(model, inner, every, settings.pop("optimizer"), settings.pop("learning_rate"), **(streaming or {}),
                              **settings)
    if seconds:
        print("training", flush=True)
    while optimizer.step_number < exchanges:
        time.sleep(seconds)
        first = optimizer.step_number * every
        for step in range(first, first + every):
            optimizer.zero_grad()
            loss_of(model, WORKER, step).backward()
            optimizer.step()
    if streaming and streaming.get("overlap_steps"):
        optimizer.sync()
    counters = optimizer.counters
    optimizer.close()
    print(json.dumps({"parameters": values_of(model), "step": optimizer.step_number, "counters": counters}))


def train_in_group(settings, steps, store, seconds=0, ends_at=None):
    """Two processes train as one worker. Process 1 computes the first 8 examples of each batch, process 0 the others.

    Every step takes at least SECONDS; if that is not 0, prints a line before the first one. Process 1 ends before step ENDS_AT.
    STORE is a new file for torch.distributed; None: torchrun has started the processes.
    """
    arguments = {} if store is None else {"init_method": f"file://{store}", "rank": WORKER, "world_size": 2}
    torch.distributed.init_process_group("gloo", **arguments)
    tw.init(processes=2)
    first, last = ((8, 32), (0, 8))[WORKER % 2]
    model, settings = make_model(), dict(settings)
    if WORKER % 2 == 1:
        torch.nn.init.zeros_(model[0].weight)  # the parameters of process 0 count
    optimizer = tw.DistributedOptimizer(model, settings.pop("optimizer"), settings.pop("learning_rate"), local_group=tw.local_group(),
                                        examples=last - first, **settings)
    if seconds:
        print("training", flush=True)
    while optimizer.step_number < steps:
        if optimizer.step_number == ends_at and WORKER == 1:
            os._exit(9)
        time.sleep(seconds)
        optimizer.zero_grad()
        x, y = batch(tw.rank(), optimizer.step_number)
        torch.nn.functional.cross_entropy(model(x[first:last]), y[first:last]).backward()
        optimizer.step()
    optimizer.close()
    torch.distributed.destroy_process_group()
    print(json.dumps({"parameters": values_of(model), "step": optimizer.step_number, "worker": tw.rank(),
                      "workers": tw.world_size()}))


def train_pipeline(settings, steps, store, replica=0, seconds=0, pause_at=None, ends_at=None, state_dir=None, names=("0", "2")):
    """Two processes train as one worker. Each has one of the two layers, and a batch passes in two parts (GPipe).

    Every step takes at least SECONDS; if that is not 0, prints a line before the first one. Process 0 reads a line of input at step
    PAUSE_AT, process 1 ends before step ENDS_AT. NAMES are those of the layers. STORE is a new file for torch.distributed, of REPLICA
    alone; None: torchrun has started the processes of all workers.
    """
    arguments = {} if store is None else {"init_method": f"file://{store}", "rank": WORKER % 2, "world_size": 2}
    torch.distributed.init_process_group("gloo", **arguments)
    tw.init(processes=2, worker=None if store is None else replica, state_dir=state_dir)
    group = tw.local_group()
    stage, first = WORKER % 2, torch.distributed.get_rank() - WORKER % 2
    whole, settings = make_model(), dict(settings)
    settings.pop("members", None)
    layers = {0: [(names[0], whole[0]), ("1", whole[1])], 1: [(names[1], whole[2])]}[stage]
    model = torch.nn.Sequential(collections.OrderedDict(layers))
    optimizer = tw.DistributedOptimizer(model, settings.pop("optimizer"), settings.pop("learning_rate"), members=group, **settings)
    if seconds or pause_at is not None:
        print("training", flush=True)
    while optimizer.step_number < steps:
        if optimizer.step_number == ends_at and stage == 1:
            os._exit(9)
        if optimizer.step_number == pause_at and stage == 0:
            pause_at = None
            sys.stdin.readline()
        time.sleep(seconds)
        optimizer.zero_grad()
        x, y = batch(tw.rank(), optimizer.step_number)
        passed = []  # the inputs and the results of the stage
        for i in (0, 1):
            given = x[16 * i : 16 * i + 16]
            if stage == 1:
                given = torch.empty(16, 64)
                torch.distributed.recv(given, first)
                given.requires_grad_()
            result = model(given)
            if stage == 0:
                torch.distributed.send(result.detach(), first + 1)
            else:
                result = torch.nn.functional.cross_entropy(result, y[16 * i : 16 * i + 16]) / 2
            passed.append((given, result))
        for i, (given, result) in enumerate(passed):
            gradient = None
            if stage == 0:
                gradient = torch.empty(16, 64)
                torch.distributed.recv(gradient, first + 1)
            with optimizer.no_sync() if i == 0 else contextlib.nullcontext():
                result.backward(gradient)
            if stage == 1:
                torch.distributed.send(given.grad, first)
        optimizer.step()
    exact = [values.flatten().tolist() for values in optimizer.exact_parameters().values()]
    counters = optimizer.counters
    optimizer.close()
    torch.distributed.destroy_process_group()
    print(json.dumps({"parameters": values_of(model), "exact": exact, "step": optimizer.step_number, "worker": tw.rank(),
                      "stage": stage, "counters": counters}))


def train_ddp(settings, steps, store, hook=True, nan_at=None, seconds=0):
    """Trains with DistributedDataParallel and a local optimizer. HOOK: thinwire averages the gradients, else gloo does.

    Worker 1 has a NaN in its batch of step NAN_AT. Every step takes at least SECONDS; if that is not 0, prints a line when the
    workers no longer agree on the buckets of DDP. STORE is a new file for torch.distributed.
    """
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=WORKER, world_size=2)
    tw.init()
    model = make_model()
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    state = None
    if hook:
        state = tw.GradientAverage(ddp, **{k: v for k, v in settings.items() if k != "optimizer"})
        ddp.register_comm_hook(state, tw.average_hook)
    for step in range(steps):
        if seconds and step == 3:
            print("training", flush=True)
        time.sleep(seconds)
        optimizer.zero_grad()
        x, y = batch(WORKER, step)
        if WORKER == 1 and step == nan_at:
            x[0, 0] = float("nan")
        torch.nn.functional.cross_entropy(ddp(x), y).backward()
        optimizer.step()
    counters = state.counters if hook else {}
    if hook:
        state.close()
    print(json.dumps({"parameters": values_of(model), "step": state.step_number if hook else steps, "counters": counters}))


class Numbered(torch.utils.data.Dataset):
    """Examples with their numbers."""

    def __init__(self, count):
        self.x, self.y = batch(count, 0, count)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index], index


def train_on_data(settings, record, example_count, epochs, batch_size=4, num_workers=0, every=0, pause_at=None, seconds=0):
    """Trains with an ElasticSampler, with LocalSteps if EVERY is not 0. Appends the examples of every step to the file RECORD.

    A line is a list of the step and its examples. Prints the parameters and the step at the end. PAUSE_AT and SECONDS: as
    PAUSE_AT and STEP_SECONDS of train.
    """
    model, data, settings = make_model(), Numbered(example_count), dict(settings)
    tw.init()
    sampler = tw.ElasticSampler(data, batch_size)
    if every:
        inner = torch.optim.SGD(model.parameters(), lr=RATE)
        optimizer = tw.LocalSteps(model, inner, every, settings.pop("optimizer"), settings.pop("learning_rate"),
                                  sampler=sampler, **settings)
    else:
        optimizer = tw.DistributedOptimizer(model, settings.pop("optimizer"), settings.pop("learning_rate"), sampler=sampler,
                                            **settings)
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler, num_workers=num_workers)
    if seconds:
        print("training", flush=True)
    used = []  # in the present step
    with open(record, "a", encoding="utf-8") as file:
        for _ in sampler.epochs(epochs):
            for x, y, numbers in loader:
                step, local_step = optimizer.step_number, optimizer.local_steps if every else 0
                if step == pause_at:
                    pause_at = None
                    print("paused", flush=True)
                    sys.stdin.readline()
                time.sleep(seconds)
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                try:
                    optimizer.step()
                finally:  # also if the worker leaves
                    if optimizer.step_number > step or (every and optimizer.local_steps > local_step):
                        used += numbers.tolist()
                    if optimizer.step_number > step:
                        file.write(json.dumps([step, used]) + "\n")
                        file.flush()
                    if optimizer.step_number != step:
                        used = []
    counters = optimizer.counters
    optimizer.close()
    print(json.dumps({"parameters": values_of(model), "step": optimizer.step_number, "counters": counters}))


def wait_for_interrupt(settings, overlap):
    """Reads a line and begins steps that cannot end before Ctrl-C. Prints whether KeyboardInterrupt was raised."""
    model = make_model()
    tw.init()
    optimizer = tw.DistributedOptimizer(model, "sgd", RATE, overlap=overlap,
                                        **{k: v for k, v in settings.items() if k != "learning_rate"})
    print("waiting", flush=True)
    sys.stdin.readline()
    try:
        for step in range(2):
            loss_of(model, WORKER, step).backward()  # with overlap="forward", that of step 1 waits
            optimizer.step()
        print(json.dumps("no interrupt"))
    except KeyboardInterrupt:
        print(json.dumps("interrupted"))


def join_only(settings):
    """Joins, and leaves when its input ends."""
    tw.init()
    optimizer = tw.DistributedOptimizer(make_model(), "sgd", RATE,
                                        **{k: v for k, v in settings.items() if k != "learning_rate"})
    print("joined", flush=True)
    sys.stdin.readline()
    optimizer.close()
    print(json.dumps("left"))


def fork(settings):
    """Forks after joining: the child's step fails and the child ends; the parent goes on, with a DataLoader's processes."""
    model = make_model()
    tw.init()
    optimizer = tw.DistributedOptimizer(model, "sgd", RATE, **{k: v for k, v in settings.items() if k != "learning_rate"})
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            loss_of(model, 0, 0).backward()
            optimizer.step()
        except thinwire.Error as error:
            os.write(write, str(error).encode())
        sys.exit(3)  # ends as a program does, with all destructors
    os.close(write)
    refused = os.read(read, 1000).decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    data = torch.utils.data.TensorDataset(*batch(0, 0))
    for x, y in torch.utils.data.DataLoader(data, batch_size=16, num_workers=2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(json.dumps({"refused": refused, "code": code, "step": optimizer.step_number}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    scenarios = (train, train_locally, train_in_group, train_pipeline, train_ddp, train_on_data, wait_for_interrupt, join_only, fork)
    {f.__name__: f for f in scenarios}[sys.argv[1]](
        json.loads(sys.argv[2]), **json.loads(sys.argv[3]))
