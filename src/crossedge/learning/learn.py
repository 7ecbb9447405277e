"""A training run, from the data to measures of quality, in a folder from which it can resume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from crossedge.autograd.distances import lp_distances
from crossedge.learning.configuration import Configuration
from crossedge.learning.datasets import Dataset, load
from crossedge.learning.pictures import draw_metrics, draw_samples
from crossedge.learning.quality import measure_quality
from crossedge.learning.runs import RunFolder
from crossedge.learning.trainer import Trainer, rank
from crossedge.runtime.interrupts import checkpoint, interruptible
from crossedge.verbs import two_sample

PICTURES = 20  # about as many pictures of samples are drawn in a run
RESAMPLES = 1000  # random labellings for the permutation p-value of an epoch, as in the paper
LAWS = {  # metric of an epoch -> the null of its p-value
    "log_pvalue_permutation": "permutation",
    "log_pvalue": "pearson3",
    "log_pvalue_normal": "normal",
}
Watch = Callable[[dict[str, Any]], None]


class Run:
    """A training run with its configuration, its data, its trainer and its folder.

    Parameters
    ----------
    folder : RunFolder
        Where the run is saved.
    configuration : Configuration
        Settings of the run.
    data : str, optional
        Folder of the data set, for MNIST.
    device : str
        Torch device to train on.
    """

    def __init__(
        self,
        folder: RunFolder,
        configuration: Configuration,
        data: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.folder, self.configuration = folder, configuration
        self.leads = rank() == 0  # only the first of several processes writes files
        self.dataset: Dataset = load(configuration.data, data)
        self.trainer = Trainer.configured(configuration, self.dataset, device)
        self.saved = 0  # last epoch saved in the folder

    @classmethod
    def begin(
        cls,
        path: str | Path,
        configuration: Configuration,
        data: str | None = None,
        device: str = "cpu",
    ) -> Run:
        """Start a run in a folder that holds none, or raise FileExistsError."""
        run = cls(RunFolder(path), configuration, data, device)
        if run.leads:
            run.folder.create(configuration)
        return run

    @classmethod
    def resume(cls, path: str | Path, data: str | None = None, device: str = "cpu") -> Run:
        """Continue a run after its last saved epoch, or raise FileNotFoundError."""
        folder = RunFolder(path)
        run = cls(folder, folder.configuration(), data, device)
        state = folder.load(tidy=run.leads)
        if state:
            run.trainer.restore(state)
            run.saved = run.trainer.epoch
        return run

    @interruptible
    def train(self, watch: Watch) -> None:
        """Train to the last epoch, and call `watch` with the metrics of each.

        After an interrupt the folder holds the last complete epoch.
        """
        every = max(1, self.configuration.epochs // PICTURES)
        for epoch in self.trainer.run():
            if self.leads:
                line = {**epoch._asdict(), **self._pvalues()}
                if epoch.epoch % every == 0:
                    self.draw(epoch.epoch)
                checkpoint()
                self.folder.save(self.trainer.state(), line)
                self.saved = epoch.epoch
                watch(line)

    def quality(self) -> dict[str, Any] | None:
        """Return the measures that `finish` saved, or None."""
        return self.folder.read_json("quality.json")

    def finish(self) -> dict[str, Any]:
        """Draw the last pictures; measure quality on held-out data, save and return it."""
        self.draw(self.trainer.epoch)
        metrics = self.folder.metrics()
        if metrics:
            draw_metrics(metrics, self.folder.path / "loss.png")
        checkpoint()
        found = measure_quality(self.dataset, self.sample(2000, seed=1))
        found = {"epochs": self.trainer.epoch, **found}
        checkpoint()
        self.folder.write_json("quality.json", found)
        return found

    def sample(self, count: int, seed: int = 0) -> torch.Tensor:
        """Generate points from a seed, on the CPU."""
        return self.trainer.sample(count, seed).cpu()

    def draw(self, epoch: int) -> None:
        """Draw a picture of generated samples into the folder."""
        path = self.folder.path / "samples" / f"epoch-{epoch:05d}.png"
        draw_samples(self.dataset, self.sample(1000), path, f"epoch {epoch}")

    def _pvalues(self) -> dict[str, float]:
        """Return log p-values of a batch of held-out points against as many generated ones.

        There is one for each of `LAWS`. The batch is drawn by the number of the epoch.
        """
        epoch, held_out = self.trainer.epoch, self.dataset.held_out
        count = min(self.configuration.batch, len(held_out))
        chosen = torch.randperm(len(held_out), generator=torch.Generator().manual_seed(epoch))
        real, fake = held_out[chosen[:count]], self.sample(count, seed=epoch)
        distances = lp_distances(torch.cat([real, fake]).double(), 2.0)
        weights = self.configuration.make_weights(self.configuration.phase_of(epoch))
        found = {}
        for name, null in LAWS.items():
            checkpoint()
            found[name] = two_sample(
                distances,
                count,
                weights,
                statistic="weighted",
                null=null,
                n_resamples=RESAMPLES,
                distance="precomputed",
                rng=epoch,
            ).log_pvalue
        return found
