"""ElasticSampler: every example of every epoch is used once over all workers, also if workers come and go."""

import collections
from collections.abc import Callable, Iterator, Sized

from thinwire import _client
from thinwire._client import Error


def _check(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or not least <= value <= most:
        raise Error(f"{name}: wrong value (expected a whole number from {least} to {most}, got {value!r})")


class _Batch:
    """A batch that was given to the DataLoader."""

    def __init__(self, step: int, batches: list[list[int]], index: int):
        self.step = step
        self.batches = batches  # those of the step
        self.index = index  # of this one
        self.void = False  # other workers have its examples now, or the servers went back

    @property
    def examples(self) -> list[int]:
        return self.batches[self.index]


class ElasticSampler:
    """Deals the examples of a data set among the workers of a job: a batch_sampler of torch.utils.data.DataLoader.

        sampler = tw.ElasticSampler(data, batch_size=32)
        optimizer = tw.DistributedOptimizer(model, "momentum", lr=0.1, sampler=sampler)
        loader = torch.utils.data.DataLoader(data, batch_sampler=sampler, num_workers=2)
        for epoch in sampler.epochs(10):
            for x, y in loader:
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()

    A pass over the DataLoader begins at the optimizer's step and ends with the epoch. So a worker that joins a running job, or
    is started again, begins in the middle of the job's epoch. Each batch needs one call of optimizer.step(), in the order of
    the DataLoader.

    The DataLoader may load batches ahead. If the examples are then dealt anew, or the servers go back to an earlier step, these
    batches come in vain: the optimizer's step() ignores them, and `step_number` stays.

    All workers need the same data, batch_size and seed; the servers refuse a worker with others. Each site deals its part of
    the examples among its own workers (docs/sites.md).

    Args:
      data: the data set, or another object with len().
      batch_size: the number of examples in a batch. Only the last batch of a worker in an epoch may have fewer.
      seed: decides the order of the examples, another one in each epoch.
    """

    def __init__(self, data: Sized, batch_size: int, seed: int = 1):
        try:
            self._example_count = len(data)
        except TypeError:
            raise Error(f"data: no length (expected a data set with len(), got {type(data).__name__})") from None
        _check("len(data)", self._example_count, 1, 2**32 - 1)
        _check("batch_size", batch_size, 1, 2**32 - 1)
        _check("seed", seed, 0, 2**64 - 1)
        self.batch_size = batch_size
        self._seed = seed
        self._plan: _client.Sampler | None = None  # set by attach()
        self._step = 0  # that of the optimizer
        self._ended = 0  # batches that the optimizer has used or ignored
        self._ended_of_step = 0  # those of the present step
        self.step_is_over = False  # the last ended batch was the last one of its step
        self._given: collections.deque[_Batch] = collections.deque()  # batches that the DataLoader has and that are not ended, in order
        self._waiting: collections.deque[_Batch] = collections.deque()  # the batches of one step that follow them

    @property
    def epoch(self) -> int:
        """The epoch of the optimizer's step, from 0."""
        return self._dealt.epoch(self._step)

    def epochs(self, count: int) -> Iterator[int]:
        """Yields the numbers of the epochs up to COUNT, from that of the optimizer's step on, before a pass over each one.

        A number comes again if its epoch is not complete after a pass: the servers have gone back, or examples of a lost worker
        were dealt anew in the meantime.

        Errors: Error after a pass without a step of the optimizer.
        """
        while self.epoch < count:
            ended = self._ended
            yield self.epoch
            if self._ended == ended:
                raise Error(f"epochs: no step in epoch {self.epoch} (expected optimizer.step() for each batch, got none)")

    def __len__(self) -> int:
        """The number of this worker's batches that are left in the epoch."""
        epoch = self.epoch
        first, end = self._step, self._dealt.epoch_begin(epoch + 1)
        batches = len(self._dealt.batches(first))
        return (end - 1 - first) * batches + len(self._dealt.batches(end - 1)) - self._ended_of_step

    def __iter__(self) -> Iterator[list[int]]:
        """Yields the examples of the batches that are left in the epoch of the optimizer's step."""
        epoch = self.epoch
        self._given.clear()
        self._waiting.clear()
        while self._plan_batches(epoch):
            batch = self._waiting.popleft()
            self._given.append(batch)
            yield batch.examples

    # --- the rest is for optimizers ---

    def task(self, fields: dict[str, object]) -> str:
        """Returns the fields of Task (proto/job.proto) that the workers must have in common: those of the sampler and FIELDS."""
        fields = {"train_examples": self._example_count, "batch_size": self.batch_size, "seed": self._seed} | fields
        return " ".join(f"{name}: {value}" for name, value in fields.items())

    def attach(self, worker: int, workers: int, batch_count: int, site: int = 0, sites: int = 1) -> None:
        """Begins the work for an optimizer, which uses BATCH_COUNT batches in a step. WORKER and WORKERS are those of SITE."""
        if self._plan is not None:
            raise Error("sampler: has an optimizer already (expected an ElasticSampler of its own for each optimizer)")
        self._plan = _client.Sampler(self._example_count, worker, workers, self.batch_size, batch_count, self._seed, site, sites)

    def restart(self) -> None:
        """Forgets all deals and batches: the servers may have gone back to an earlier step."""
        self._dealt.forget_deals()
        self._void(lambda batch: True)
        self._ended_of_step = 0

    def begin(self, step: int, client: _client.Client) -> bool:
        """Waits until STEP, the next one of CLIENT, is dealt. Returns whether this worker has examples in it."""
        deals = client.await_deals(step, self._dealt.deal_count)
        for deal in deals:
            self._dealt.add(deal)
        if deals:
            self._void(lambda batch: self._dealt.batches(batch.step) != batch.batches)
        epoch = self._dealt.epoch(step)
        begin = self._dealt.epoch_begin(epoch)
        if begin <= step:
            client.begin_epoch(epoch, begin)
        if step != self._step:
            self._step, self._ended_of_step = step, 0
        return bool(self._dealt.batches(step))

    def first(self) -> _Batch:
        """Returns the first given batch that is not ended: the one on which the program computes."""
        if not self._given:
            raise Error(
                f"sampler: no batch for step {self._step} (expected a batch of its DataLoader before each step(), got none)")
        return self._given[0]

    @property
    def ends_epoch(self) -> bool:
        """Whether the optimizer's step is the last one of its epoch."""
        return self._dealt.epoch(self._step + 1) > self._dealt.epoch(self._step)

    def end_first(self) -> _Batch:
        """Ends the batch first() and returns it."""
        batch = self.first()
        self._given.popleft()
        self._ended += 1
        self._ended_of_step += batch.step == self._step and not batch.void
        self.step_is_over = batch.index + 1 == len(batch.batches)
        return batch

    # --- the rest is private ---

    @property
    def _dealt(self) -> _client.Sampler:
        """The plan of the batches. Errors: Error before attach()."""
        if self._plan is None:
            raise Error("sampler: no optimizer (expected DistributedOptimizer(..., sampler=sampler) before its use, got none)")
        return self._plan

    def _void(self, is_void: Callable[[_Batch], bool]) -> None:
        """Marks the batches for which IS_VOID returns True."""
        for batch in self._given:
            batch.void = batch.void or is_void(batch)
        if self._waiting and is_void(self._waiting[0]):
            self._waiting.clear()

    def _plan_batches(self, epoch: int) -> bool:
        """Makes batches of the next step wait, unless some do. Returns False if this worker has no further ones in EPOCH.

        Never waits for a deal, because the optimizer must first make the steps of the given batches. Later deals may void the
        new batches.
        """
        if self._waiting:
            return True
        steps = {batch.step for batch in self._given if not batch.void}
        # Each of these steps is one of the job's. A late worker (mode backup) is behind, and omits batches here.
        step = max([self._step + len(steps), *(s + 1 for s in steps)])
        while self._dealt.epoch(step) == epoch:
            batches = self._dealt.batches(step)
            first = self._ended_of_step if step == self._step else 0
            self._waiting.extend(_Batch(step, batches, index) for index in range(first, len(batches)))
            if self._waiting:
                return True
            step += 1
        return False
