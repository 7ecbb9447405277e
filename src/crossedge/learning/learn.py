"""A training run, from the data to measures of quality, in a folder from which it can resume."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crossedge.autograd.distances import lp_distances
from crossedge.learning.configuration import GENERATORS, Configuration
from crossedge.learning.datasets import Dataset
from crossedge.learning.layout import Layout
from crossedge.learning.pictures import draw_metrics, draw_samples
from crossedge.learning.quality import measure_quality
from crossedge.learning.runs import LAYOUT, RunFolder
from crossedge.learning.sampling import Noise, generate
from crossedge.learning.sources import dataset_of, fingerprint, is_alike
from crossedge.learning.trainer import Trainer, configured_generator, rank
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
    """A training run in a folder. Its data are read when they are first needed.

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

    Attributes
    ----------
    dataset : Dataset
        Training and held-out points.
    trainer : Trainer
        What trains the generator, after the last saved epoch.
    saved : int
        Last epoch saved in the folder.

    See Also
    --------
    Run.begin, Run.load : How to make one.

    Examples
    --------
    >>> import tempfile
    >>> from crossedge.learning import RECIPES, Run, with_epochs
    >>> short = with_epochs(RECIPES["moons"], 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = Run.begin(folder + "/run", short)
    ...     _ = next(run.trainer.run())
    ...     run.save()
    ...     again = Run.load(folder + "/run")
    ...     points = again.sample(1000, seed=1)
    >>> points.shape, bool((points == run.sample(1000, seed=1)).all())
    (torch.Size([1000, 2]), True)
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
        self.saved = 0
        self._data, self._device = data, device
        self._loaded: torch.nn.Module | None = None  # to sample from, likewise
        self._state: dict[str, Any] | None = None  # to go on from, as long as there is no trainer

    @classmethod
    def begin(
        cls,
        path: str | Path,
        configuration: Configuration,
        data: str | None = None,
        device: str = "cpu",
        dataset: Dataset | None = None,
    ) -> Run:
        """Start a run in a folder that holds none.

        Parameters
        ----------
        path : path
            Folder to make.
        configuration : Configuration
            Settings of the run.
        data, device : str, optional
            As in the class.
        dataset : Dataset, optional
            The data, if they have been read already.

        Raises
        ------
        FileExistsError
            If the folder holds a run.
        """
        run = cls(RunFolder(path), configuration, data, device)
        if dataset is not None:
            run.dataset = dataset
        _ = run.trainer  # what is wrong with the data or the settings shows before a file is made
        if run.leads:
            run.folder.create(configuration)
            own = {"layout": run.dataset.layout.to_dict(), "data": fingerprint(run.dataset)}
            run.folder.write_json(LAYOUT, own)
        return run

    @classmethod
    def load(
        cls,
        path: str | Path,
        data: str | None = None,
        device: str = "cpu",
        generator: str | None = None,
    ) -> Run:
        """Return a run as it was after its last saved epoch, to sample from it or to go on.

        Parameters
        ----------
        path : path
            Folder of the run. Its files are data, and never code.
        data, device : str, optional
            As in the class.
        generator : str, optional
            The package.module:factory of a run that was begun with one. It is imported only if it
            is named here, too.

        Raises
        ------
        FileNotFoundError
            If the folder holds no run.
        ValueError
            If a file of the run is damaged, or its generator is code that is not named here.
        """
        folder = RunFolder(path)
        run = cls(folder, folder.configuration(), data, device)
        own = run.configuration.generator
        if own not in (*GENERATORS, generator):
            raise ValueError(
                f"the generator of {path} is code, {own}: to run it, name it (--generator {own})"
            )
        run._state = folder.load()
        if run._state:
            run.saved = int(run._state["epoch"])
        return run

    @cached_property
    def dataset(self) -> Dataset:
        """Training and held-out points."""
        dataset = dataset_of(self.configuration, self._data)
        saved = self.folder.read_json(LAYOUT)
        if saved and not is_alike(saved["data"], fingerprint(dataset)):
            raise ValueError(
                f"{self.configuration.data} has changed since {self.folder.path} was begun: "
                "begin another run"
            )
        return dataset

    @cached_property
    def layout(self) -> Layout:
        """What the coordinates of points mean."""
        saved = self.folder.read_json(LAYOUT)
        return Layout.from_dict(saved["layout"]) if saved else self.dataset.layout

    @cached_property
    def trainer(self) -> Trainer:
        """What trains the generator, after the last saved epoch."""
        trainer = Trainer.configured(self.configuration, self.dataset, self._device)
        if self._state:
            trainer.restore(self._state)
            self._state = None
        return trainer

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        return self.trainer.epoch if "trainer" in self.__dict__ else self.saved

    def save(self, metrics: dict[str, Any] | None = None) -> None:
        """Save the state of the trainer in the folder, after which `load` can go on from it.

        `train` does so after every epoch.

        Parameters
        ----------
        metrics : dict, optional
            Numbers of the epoch, for metrics.jsonl.
        """
        self.folder.save(self.trainer.state(), metrics or {"epoch": self.trainer.epoch})
        self.saved = self.trainer.epoch

    @interruptible
    def train(self, watch: Watch) -> None:
        """Train to the last epoch, and call `watch` with the metrics of each.

        After an interrupt the folder holds the last complete epoch.
        """
        if self.leads:
            self.folder.tidy(self.epoch)
        every = max(1, self.configuration.epochs // PICTURES)
        for epoch in self.trainer.run():
            if self.leads:
                line = {**epoch._asdict(), **self._pvalues()}
                if epoch.epoch % every == 0:
                    self.draw(epoch.epoch)
                checkpoint()
                self.save(line)
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

    def sample(self, count: int, seed: int = 0, given: str | None = None) -> torch.Tensor:
        """Generate points, on the CPU. The data are not needed.

        Parameters
        ----------
        count : int
            Number of points.
        seed : int
            Seed of the noise, and of the labels.
        given : str, optional
            The label of all points, for runs with a condition; by default labels are as frequent
            as in the data.

        Returns
        -------
        (count, d) tensor
            Points in the coordinates of `layout`, with those of the labels at the end.

        Raises
        ------
        ValueError
            If there is no such label, or no epoch has been saved.
        """
        layout, told = self.layout, None
        if given is not None:
            told = layout.told(np.full(count, layout.place_of(given)))
        elif layout.given:
            told = layout.told(layout.draw_places(count, seed))
        labels = None if told is None else torch.from_numpy(told.astype(np.float32))
        noise = Noise(self.configuration.noise, self.configuration.signs, layout.given)
        return generate(self._generator(), noise, count, seed, labels).cpu()

    def rows(self, count: int, seed: int = 0, given: str | None = None) -> Any:
        """Generate rows like those of the data, as `sample` does.

        Returns
        -------
        frame or array
            A pandas frame with the columns of the data, or an array if they have no names. Images
            have the values of the data, in the order height, width, channels.
        """
        return self.layout.decode(self.sample(count, seed, given).double().numpy())

    def _generator(self) -> torch.nn.Module:
        """Return the generator that samples are drawn from."""
        if "trainer" in self.__dict__:
            return self.trainer.averaged
        if self._loaded is None:
            if self._state is None:
                raise ValueError(f"{self.folder.path} has no finished epoch: train it first")
            generator = configured_generator(self.configuration, self.layout)
            generator.load_state_dict(self._state.get("averaged", self._state["generator"]))
            self._loaded = generator.to(self._device)
        return self._loaded

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
