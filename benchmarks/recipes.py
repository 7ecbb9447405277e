"""Which loss learns the better model? One generator, one number of steps, many recipes.

`python benchmarks/recipes.py moons` takes ten minutes, `mnist --data FOLDER` half an hour.
Smaller evidence (of the adaptive test, held-out against generated points) is better, and so is a
smaller energy or Frechet distance; density and coverage are 1 at best.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import torch

from crossedge.learning import Configuration, Phase, Trainer, load
from crossedge.learning.quality import measure_quality


def recipes_for(data: str) -> dict[str, Configuration]:
    if data == "moons":
        temperatures, best, several = (1.0, 0.3, 0.1), 0.1, (0.05, 0.2, 1.0)
        widths = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
        phases = (Phase(40, 1e-3), Phase(20, 1e-4))
        falling = (Phase(10, 1e-3, 1.0), Phase(15, 1e-3, 0.3), Phase(15, 1e-3, 0.1))
        falling += (Phase(20, 1e-4, 0.05),)
    else:
        temperatures, best, several = (10.0, 5.0, 2.0), 5.0, (3.0, 6.0, 12.0)
        widths = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0)
        phases = (Phase(8, 1e-3), Phase(2, 1e-4))
        falling = (Phase(4, 1e-3, 10.0), Phase(4, 1e-3, 5.0), Phase(2, 1e-4, 2.0))
    base = Configuration(data, temperature=best, phases=phases)
    mmd = replace(base, weights="gaussian", bandwidth=widths, standardize=False)
    return {
        **{f"t, temperature {one:g}": replace(base, temperature=one) for one in temperatures},
        f"t, mean of {several}": replace(base, temperature=several),
        f"T itself, temperature {best:g}": replace(base, standardize=False),
        f"T itself, temperature {0.7 * best:g}": replace(
            base, temperature=0.7 * best, standardize=False
        ),
        f"T itself, mean of {several}": replace(base, temperature=several, standardize=False),
        "t, falling temperature": replace(base, phases=falling),
        f"generalized, temperature {best:g}": replace(base, statistic="generalized"),
        f"log p, temperature {best:g}": replace(base, standardize="pearson3"),
        f"t of the tree, temperature {best:g}": replace(base, weights="tree"),
        "MMD, six bandwidths": mmd,
        "energy distance": replace(base, weights="energy", standardize=False),
    }


def learn(recipe: Configuration, folder: str | None) -> tuple[dict, float]:
    dataset = load(recipe.data, folder)
    trainer = Trainer.configured(recipe, dataset)
    start = time.process_time()
    for _ in trainer.run():
        pass
    return measure_quality(dataset, trainer.sample(2000, seed=1)), time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=["moons", "digits", "mnist"])
    parser.add_argument("--data", help="folder of the MNIST files")
    parser.add_argument("--only", help="recipes whose name has this text")
    options = parser.parse_args()
    torch.set_num_threads(1)
    columns = ("evidence", "pvalue", "energy_distance", "density", "coverage", "frechet_distance")
    print("| loss |", " | ".join(columns), "| CPU seconds |")
    print("|---" * (2 + len(columns)) + "|")
    for name, recipe in recipes_for(options.dataset).items():
        if options.only and options.only not in name:
            continue
        found, seconds = learn(recipe, options.data)
        cells = (f"{found[key]:.3g}" if key in found else "" for key in columns)
        print(f"| {name} |", " | ".join(cells), f"| {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
