"""Losses of others and ours on images: same generator, data and steps, several seeds.

`python benchmarks/comparison.py --data FOLDER --keep comparison` trains what `comparison` does not
have yet, and prints a table of all that it has. A model takes one to two minutes on two cores.
Smaller is better for Frechet and kernel distances; a linear classifier that is right for half of
the images sees no difference.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import crossedge as ce
from crossedge.learning import Phase, Trainer, initialise, load, paper_generator
from crossedge.learning.quality import measure_quality
from losses_of_others import (
    Loss,
    drifting,
    sinkhorn_divergence,
    sinkhorn_drifting,
    sliced_energy,
    with_stopped_gradient,
)

NOISE, BATCH = 10, 256
PHASES = (Phase(8, 1e-3), Phase(2, 1e-4))  # 2,340 steps of 60,000 images
TEMPERATURES = (3.0, 6.0, 12.0)
SHOWN = 20  # samples of each model in the picture
COLUMNS = (
    "frechet_distance",
    "kernel_distance",
    "precision",
    "recall",
    "classifier_accuracy",
    "energy_distance",
    "density",
    "coverage",
)


def neighbours(temperatures: tuple[float, ...] = TEMPERATURES, **options: object) -> Loss:
    return ce.TwoSampleLoss(ce.NearestNeighbours(1, temperatures), **options)


LOSSES: dict[str, Callable[[], Loss]] = {
    "drifting": drifting,
    "drifting, Sinkhorn": sinkhorn_drifting,
    "Sinkhorn divergence": sinkhorn_divergence,
    "sliced energy": sliced_energy,
    "MMD, Laplacian": lambda: ce.TwoSampleLoss(ce.LaplaceKernel([2.5, 5.0, 10.0, 20.0, 40.0])),
    "energy": lambda: ce.TwoSampleLoss(ce.EnergyKernel(), standardize=False),
    "T, three temperatures": lambda: neighbours(standardize=False),
    "t, three temperatures": lambda: neighbours(standardize=True),
    "T, stopped gradient": lambda: with_stopped_gradient(neighbours(standardize=False)),
}


def train(name: str, seed: int, folder: Path, data: str | None) -> None:
    dataset = load("mnist", data)
    generator = paper_generator(NOISE, dataset.dimension, bounded=True)
    initialise(generator, seed)
    torch.manual_seed(seed)  # for losses that draw random lines
    trainer = Trainer(
        generator,
        dataset.train,
        LOSSES[name](),
        batch=BATCH,
        phases=PHASES,
        noise=NOISE,
        seed=seed,
    )
    start = time.process_time()
    for _ in trainer.run():
        pass
    seconds = time.process_time() - start
    found = measure_quality(dataset, trainer.sample(1000, seed=1)) | {"seconds": seconds}
    pixels = ((trainer.sample(SHOWN) + 1) * 127.5).round().byte().numpy()
    np.save(folder / f"{name}-{seed}.npy", pixels)
    (folder / f"{name}-{seed}.json").write_text(json.dumps(found))


def table(folder: Path, seeds: int) -> None:
    print("| loss |", " | ".join(COLUMNS), "| CPU seconds |")
    print("|---" * (2 + len(COLUMNS)) + "|")
    data = {}
    for name in LOSSES:
        files = [folder / f"{name}-{seed}.json" for seed in range(seeds)]
        found = [json.loads(file.read_text()) for file in files if file.is_file()]
        if not found:
            continue
        data = found[0]["training_data"]
        cells = [spread([one[key] for one in found]) for key in (*COLUMNS, "seconds")]
        print(f"| {name} |", " | ".join(cells), "|")
    print("| training data |", " | ".join(f"{data[key]:.3g}" for key in COLUMNS if data), "| |")


def spread(values: list[float]) -> str:
    """Return mean and standard deviation over seeds."""
    more = f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
    return f"{np.mean(values):.3g}{more}"


def picture(folder: Path, path: Path) -> None:
    from matplotlib.figure import Figure

    names = [name for name in LOSSES if (folder / f"{name}-0.npy").is_file()]
    figure = Figure(figsize=(11, 0.62 * len(names)), layout="constrained")
    for ax, name in zip(np.ravel(figure.subplots(len(names), 1)), names, strict=True):
        pixels = np.load(folder / f"{name}-0.npy").reshape(-1, 28, 28)
        ax.imshow(np.concatenate(pixels, axis=1), cmap="gray_r")
        ax.set_yticks([14], [name])
        ax.set_xticks([])
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the MNIST files")
    parser.add_argument("--keep", type=Path, default=Path("comparison"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="losses whose name has this text")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    options.keep.mkdir(exist_ok=True)
    for seed in range(options.seeds):
        for name in LOSSES:
            wanted = options.only is None or options.only in name
            if wanted and not (options.keep / f"{name}-{seed}.json").is_file():
                train(name, seed, options.keep, options.data)
    table(options.keep, options.seeds)
    if options.plot:
        picture(options.keep, options.plot)


if __name__ == "__main__":
    main()
