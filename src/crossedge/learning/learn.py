"""One run from data to quality, in a folder that can be resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from crossedge.distances import lp_distances
from crossedge.interrupts import checkpoint, interruptible
from crossedge.learning.configuration import Configuration
from crossedge.learning.datasets import Dataset, load
from crossedge.learning.pictures import draw_metrics, draw_samples
from crossedge.learning.quality import measure_quality
from crossedge.learning.runs import RunFolder
from crossedge.learning.trainer import Trainer, rank
from crossedge.verbs import two_sample

PICTURES = 20  # in a run
RESAMPLES = 1000  # for the exact p-value of an epoch, as in the paper
LAWS = {  # of the p-values of an epoch
    "log_pvalue_permutation": "permutation",
    "log_pvalue": "pearson3",
    "log_pvalue_normal": "normal",
}
Watch = Callable[[dict[str, Any]], None]


class Run:
    """A configuration at work in its folder."""

    def __init__(
        self,
        folder: RunFolder,
        configuration: Configuration,
        data: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.folder, self.configuration = folder, configuration
        self.leads = rank() == 0  # of several processes, one writes
        self.dataset: Dataset = load(configuration.data, data)
        self.trainer = Trainer.configured(configuration, self.dataset, device)
        self.saved = 0  # the last epoch that is in the folder

    @classmethod
    def begin(
        cls,
        path: str | Path,
        configuration: Configuration,
        data: str | None = None,
        device: str = "cpu",
    ) -> Run:
        run = cls(RunFolder(path), configuration, data, device)
        if run.leads:
            run.folder.create(configuration)
        return run

    @classmethod
    def resume(cls, path: str | Path, data: str | None = None, device: str = "cpu") -> Run:
        folder = RunFolder(path)
        run = cls(folder, folder.configuration(), data, device)
        state = folder.load(tidy=run.leads)
        if state:
            run.trainer.restore(state)
            run.saved = run.trainer.epoch
        return run

    @interruptible
    def train(self, watch: Watch) -> None:
        """Train to the last epoch; an interrupt leaves the folder as the last whole epoch did."""
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
        """What `finish` found, once it has been there."""
        return self.folder.read_json("quality.json")

    def finish(self) -> dict[str, Any]:
        """Draw pictures, and measure the quality on held-out data."""
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
        return self.trainer.sample(count, seed).cpu()

    def draw(self, epoch: int) -> None:
        path = self.folder.path / "samples" / f"epoch-{epoch:05d}.png"
        draw_samples(self.dataset, self.sample(1000), path, f"epoch {epoch}")

    def _pvalues(self) -> dict[str, float]:
        """Of a batch of held-out points against as many generated ones, exact and by two laws."""
        epoch, held_out = self.trainer.epoch, self.dataset.held_out
        count = min(self.configuration.batch, len(held_out))
        chosen = torch.randperm(len(held_out), generator=torch.Generator().manual_seed(epoch))
        real, fake = held_out[chosen[:count]], self.sample(count, seed=epoch)
        distances = lp_distances(real.double(), 2.0, fake.double())
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
