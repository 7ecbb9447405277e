"""Training of a generator: each step draws data, generates as many points and lowers the loss."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from crossedge.learning.configuration import Configuration, Phase
from crossedge.learning.datasets import Dataset
from crossedge.learning.generators import initialise, own_randomness, paper_generator
from crossedge.losses import gather
from crossedge.runtime.interrupts import checkpoint

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Epoch(NamedTuple):
    """Summary of one pass over the data."""

    epoch: int  # counted from 1
    loss: float  # mean over the steps
    step: float  # step size of Adam
    seconds: float


class NotFiniteError(FloatingPointError):
    """Raised where generated points, the loss or its gradient are not finite."""


class Trainer:
    """Train any generator on any data with any loss, by Adam.

    Under `torchrun`, every process holds the generator and generates its share of each batch. A
    two-sample statistic is not a sum over points, so the shares are gathered. Every process
    computes the loss of the whole batch, and the gradient flows back into its own share. Up to
    rounding, the parameters equal those of a single process with the same batch.

    Parameters
    ----------
    generator : torch.nn.Module
        Function from (n, noise) standard normal numbers to (n, d) points.
    data : (n, d) tensor
        Training points, on the device of the generator.
    loss : callable, or a list of callables
        Function of a batch of data and a batch of generated points, such as `TwoSampleLoss`. A list
        has one loss for each phase.
    batch : int
        Number of data points, and of generated points, in a step. A last batch that is not full is
        left out.
    phases : sequence of Phase
        Numbers of epochs and step sizes of Adam, in order. The trainer ignores their temperatures,
        which belong to the losses.
    noise : int
        Dimension of the noise.
    seed : int
        Seed of the order of the data, of the noise, and of random layers such as dropout. Torch's
        global generators are restored after every epoch.

    Attributes
    ----------
    epoch : int
        Number of epochs done.

    Raises
    ------
    ValueError
        If the batch is larger than the data or not a multiple of the number of processes, if the
        losses are not as many as the phases, or if a step size is not positive.

    See Also
    --------
    Trainer.configured : Make a trainer from a `Configuration`.

    Examples
    --------
    >>> import torch
    >>> import crossedge as ce
    >>> from crossedge.learning import Phase, Trainer
    >>> data = torch.randn(512, 1, generator=torch.Generator().manual_seed(0)) + 3
    >>> generator = torch.nn.Linear(1, 1)
    >>> loss = ce.TwoSampleLoss(ce.NearestNeighbours(1, temperature=1.0))
    >>> trainer = Trainer(generator, data, loss, batch=64, phases=[Phase(20, 0.1)], noise=1)
    >>> epochs = list(trainer.run())
    >>> f"{trainer.sample(1000).mean():.0f}"
    '3'
    """

    def __init__(
        self,
        generator: nn.Module,
        data: torch.Tensor,
        loss: Loss | Sequence[Loss],
        *,
        batch: int,
        phases: Sequence[Phase],
        noise: int,
        seed: int = 0,
    ) -> None:
        if batch > len(data):
            raise ValueError(
                f"batch={batch} is larger than the data: give at most {len(data)} points"
            )
        if batch % _processes():
            raise ValueError(
                f"batch={batch} cannot be shared by {_processes()} processes: give a multiple"
            )
        self.generator, self.data = generator, data
        losses = [loss] * len(phases) if callable(loss) else list(loss)
        if len(losses) != len(phases):
            raise ValueError(f"{len(losses)} losses for {len(phases)} phases: give one for each")
        self.batch, self.noise = batch, noise
        self.steps = [phase.step for phase in phases for _ in range(phase.epochs)]
        self.losses = [
            one for one, phase in zip(losses, phases, strict=True) for _ in range(phase.epochs)
        ]
        if not all(0 < step < math.inf for step in self.steps):
            raise ValueError(f"a step size is {min(self.steps)}: give positive numbers")
        self.optimizer = torch.optim.Adam(generator.parameters(), lr=self.steps[0])
        self.random = torch.Generator().manual_seed(seed)
        self.epoch = 0
        if _processes() > 1:  # all processes start with the parameters of the first
            with torch.no_grad():
                for value in generator.state_dict().values():
                    dist.broadcast(value, 0)

    @classmethod
    def configured(
        cls, configuration: Configuration, dataset: Dataset, device: str = "cpu"
    ) -> Trainer:
        """Make a trainer of the paper's generator with the losses of a configuration.

        Parameters
        ----------
        configuration : Configuration
            Settings of the run.
        dataset : Dataset
            Data to learn; values of generated images are bounded to (-1, 1).
        device : str
            Torch device that holds the generator and the data.
        """
        with own_randomness(configuration.seed):
            generator = paper_generator(
                configuration.noise, dataset.dimension, bounded=dataset.is_images
            )
        initialise(generator, configuration.seed)
        return cls(
            generator.to(device),
            dataset.train.to(device),
            configuration.make_losses(),
            batch=configuration.batch,
            phases=configuration.phases,
            noise=configuration.noise,
            seed=configuration.seed,
        )

    def run(self) -> Iterator[Epoch]:
        """Train from the current epoch to the last, and yield a summary of each.

        Yields
        ------
        Epoch
            Named tuple of `epoch`, `loss`, `step` and `seconds`.

        Raises
        ------
        NotFiniteError
            If generated points, the loss or its gradient are not finite. The parameters are then
            those before the failed step.
        """
        while self.epoch < len(self.steps):
            yield self._next_epoch()

    def sample(self, count: int, seed: int = 0) -> torch.Tensor:
        """Generate points in evaluation mode, without effect on later training.

        Parameters
        ----------
        count : int
            Number of points.
        seed : int
            Seed of the noise and of random layers.

        Returns
        -------
        (count, d) tensor
            Points on the device of the generator.
        """
        source = torch.Generator().manual_seed(seed)
        noise = torch.randn(count, self.noise, generator=source).to(self._device)
        training = self.generator.training
        self.generator.eval()
        try:
            with torch.no_grad(), own_randomness(_seed_from(source), self._device):
                return torch.cat([self.generator(part) for part in torch.split(noise, 4096)])
        finally:
            self.generator.train(training)

    def state(self) -> dict[str, Any]:
        """Return a copy of everything needed to continue after this epoch bit for bit.

        It holds tensors and numbers only. Random layers need no entry, because every epoch seeds
        them anew from the saved generator of random numbers.
        """
        now = {
            "epoch": self.epoch,
            "generator": self.generator.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": self.random.get_state(),
        }
        return copy.deepcopy(now)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state` returned."""
        self.epoch = int(state["epoch"])
        self.generator.load_state_dict(state["generator"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.random.set_state(state["random"])

    @property
    def _device(self) -> torch.device:
        return next(self.generator.parameters()).device

    def _next_epoch(self) -> Epoch:
        """Train for one pass over the data, in random order."""
        start = time.perf_counter()
        step = self.steps[self.epoch]
        for group in self.optimizer.param_groups:
            group["lr"] = step
        losses: list[float] = []
        with own_randomness(self._seed_of_layers(), self._device):
            order = torch.randperm(len(self.data), generator=self.random)
            for first in range(0, len(self.data) - self.batch + 1, self.batch):
                checkpoint()
                try:
                    losses.append(self._step(self.data[order[first : first + self.batch]]))
                except NotFiniteError as error:
                    raise NotFiniteError(
                        f"{error} in step {len(losses) + 1} of epoch {self.epoch + 1}: "
                        "try a smaller step size, a higher temperature, or another seed"
                    ) from None
        self.epoch += 1
        seconds = time.perf_counter() - start
        return Epoch(self.epoch, sum(losses) / len(losses), step, seconds)

    def _seed_of_layers(self) -> int:
        """Return a seed for the random layers of the next epoch.

        It is read from a copy of `random`, so that `random` alone determines the run. It differs
        between processes, because they generate different points.
        """
        ahead = torch.Generator()
        ahead.set_state(self.random.get_state())
        return _seed_from(ahead) + rank()

    def _step(self, real: torch.Tensor) -> float:
        """Take one step of Adam, and return the loss before it."""
        noise = torch.randn(self.batch, self.noise, generator=self.random).to(real.device)
        shares = noise.chunk(_processes())
        fake = gather(self.generator(shares[rank()]))
        if not bool(torch.isfinite(fake.detach()).all()):
            raise NotFiniteError("generated points are not finite")
        value = self.losses[self.epoch](real, fake)
        if not bool(torch.isfinite(value.detach())):
            raise NotFiniteError(f"the loss is {float(value.detach())}")
        self.optimizer.zero_grad(set_to_none=True)
        value.backward()  # type: ignore[no-untyped-call]
        gradients = [one.grad for one in self.generator.parameters() if one.grad is not None]
        if _processes() > 1:
            for gradient in gradients:  # the mean over processes, as in `gather`
                dist.all_reduce(gradient)
                gradient /= _processes()
        if not all(bool(torch.isfinite(gradient.sum())) for gradient in gradients):
            raise NotFiniteError("the gradient is not finite")
        self.optimizer.step()  # after all checks: a failed step changes no parameter
        return float(value.detach())


def _seed_from(source: torch.Generator) -> int:
    return int(torch.randint(2**62, (), generator=source))


def _processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process under torchrun, or 0."""
    return dist.get_rank() if _processes() > 1 else 0
