"""Training of a generator: each step draws data, generates as many points and lowers the loss."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from crossedge.learning.configuration import Configuration, Phase
from crossedge.learning.datasets import Dataset
from crossedge.learning.generators import initialise, make_generator, own_randomness
from crossedge.learning.layout import Layout
from crossedge.learning.sampling import Noise, generate, seed_from
from crossedge.learning.states import read_state, write_state
from crossedge.losses import gather
from crossedge.runtime.interrupts import checkpoint

WARM_UP = 10  # steps over which the average of parameters becomes slow
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
        Function from (n, noise) standard normal numbers to (n, d) points. With `signs` and `given`
        it takes these as further columns after the noise.
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
    average : float
        Decay of the average of the parameters over the steps, by which `sample` draws: at 0.998
        about the last 500 steps count. At 0 it draws by the last parameters.
    signs : int
        Number of random signs, -1 or 1, beside the noise.
    given : int
        Number of the last columns of the data that the generator is told, such as labels. It makes
        the others.

    Attributes
    ----------
    epoch : int
        Number of epochs done.
    averaged : torch.nn.Module
        The generator with averaged parameters; the generator itself without an average.

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
        average: float = 0.0,
        signs: int = 0,
        given: int = 0,
    ) -> None:
        if not 0 <= average < 1:
            raise ValueError(f"average={average} is no decay: give a number from 0 to below 1")
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
        self.batch, self.noise = batch, Noise(noise, signs, given)
        self.steps = [phase.step for phase in phases for _ in range(phase.epochs)]
        self.losses = [
            one for one, phase in zip(losses, phases, strict=True) for _ in range(phase.epochs)
        ]
        if not all(0 < step < math.inf for step in self.steps):
            raise ValueError(f"a step size is {min(self.steps)}: give positive numbers")
        self.optimizer = torch.optim.Adam(generator.parameters(), lr=self.steps[0])
        self.random = torch.Generator().manual_seed(seed)
        self.epoch, self.steps_done = 0, 0
        if _processes() > 1:  # all processes start with the parameters of the first
            with torch.no_grad():
                for value in generator.state_dict().values():
                    dist.broadcast(value, 0)
        self.decay = average
        self.averaged = copy.deepcopy(generator) if average else generator

    @classmethod
    def configured(
        cls, configuration: Configuration, dataset: Dataset, device: str = "cpu"
    ) -> Trainer:
        """Make a trainer with the generator and the losses of a configuration.

        Parameters
        ----------
        configuration : Configuration
            Settings of the run.
        dataset : Dataset
            Data to learn; its layout says what the generator makes.
        device : str
            Torch device that holds the generator and the data.
        """
        generator = configured_generator(configuration, dataset.layout)
        return cls(
            generator.to(device),
            dataset.train.to(device),
            configuration.make_losses(),
            batch=configuration.batch,
            phases=configuration.phases,
            noise=configuration.noise,
            seed=configuration.seed,
            average=configuration.average,
            signs=configuration.signs,
            given=dataset.layout.given,
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

    def sample(self, count: int, seed: int = 0, given: torch.Tensor | None = None) -> torch.Tensor:
        """Generate points in evaluation mode, without effect on later training.

        Parameters
        ----------
        count : int
            Number of points.
        seed : int
            Seed of the noise and of random layers.
        given : (count, given) tensor, optional
            What the generator is told; by default that of rows of the data, drawn at random.

        Returns
        -------
        (count, d) tensor
            Points on the device of the generator, with what it was told in the last columns.
        """
        if self.noise.given and given is None:
            source = torch.Generator().manual_seed(seed)
            rows = torch.randint(len(self.data), (count,), generator=source)
            given = self._told(self.data[rows.to(self._device)])
        return generate(self.averaged, self.noise, count, seed, given)

    def save(self, path: str | Path) -> None:
        """Save the state after this epoch, as an archive of arrays and JSON without any code.

        Parameters
        ----------
        path : path
            File to write, as checkpoint.npz. One that is there is replaced at once.
        """
        write_state(path, self.state())

    def load(self, path: str | Path) -> None:
        """Continue from a state that `save` wrote, of a trainer with the same settings.

        Parameters
        ----------
        path : path
            File to read.

        Raises
        ------
        ValueError
            If the file is damaged, or is no state of a training run.
        """
        self.restore(read_state(path))

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
        if self.decay:
            now |= {"averaged": self.averaged.state_dict(), "steps": self.steps_done}
        return copy.deepcopy(now)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state` returned."""
        self.epoch = int(state["epoch"])
        self.generator.load_state_dict(state["generator"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.random.set_state(state["random"])
        if self.decay:
            self.averaged.load_state_dict(state["averaged"])
            self.steps_done = int(state["steps"])

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
        return seed_from(ahead) + rank()

    def _step(self, real: torch.Tensor) -> float:
        """Take one step of Adam, and return the loss before it."""
        inputs = self.noise.draw(self.batch, self.random).to(real.device)
        told = self._told(real)
        inputs = torch.cat([inputs, told.to(inputs.dtype)], 1) if self.noise.given else inputs
        shares = inputs.chunk(_processes())
        fake = gather(self.generator(shares[rank()]))
        fake = torch.cat([fake, told], 1) if self.noise.given else fake
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
        self.steps_done += 1
        if self.decay:
            self._average()
        return float(value.detach())

    def _told(self, points: torch.Tensor) -> torch.Tensor:
        """Return what the generator is told of points: their last columns."""
        return points[:, points.shape[1] - self.noise.given :]

    def _average(self) -> None:
        """Move the averaged parameters towards those of the generator; at first by more."""
        decay = min(self.decay, self.steps_done / (self.steps_done + WARM_UP))
        now = self.generator.state_dict()
        with torch.no_grad():
            for name, value in self.averaged.state_dict().items():
                if value.is_floating_point():
                    value.lerp_(now[name].to(value.dtype), 1 - decay)
                else:
                    value.copy_(now[name])


def configured_generator(configuration: Configuration, layout: Layout) -> nn.Module:
    """Return the generator of a configuration with its first parameters."""
    inputs = configuration.noise + configuration.signs + layout.given
    with own_randomness(configuration.seed):
        generator = make_generator(configuration.generator, inputs, layout)
    initialise(generator, configuration.seed)
    return generator


def _processes() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process under torchrun, or 0."""
    return dist.get_rank() if _processes() > 1 else 0
