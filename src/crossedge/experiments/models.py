"""Training of several models, each in a folder of its own, and a table of their quality."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossedge.learning.configuration import Configuration
from crossedge.learning.learn import Run
from crossedge.learning.progress import train_with_bar

# Columns of quality.csv, as far as a model has them
MEASURES = (
    "pvalue",
    "energy_distance",
    "density",
    "coverage",
    "frechet_distance",
    "kernel_distance",
    "precision",
    "recall",
    "classifier_accuracy",
)


def learn_models(
    folder: Path, configurations: Mapping[str, Configuration], data: str | None = None
) -> dict[str, Run]:
    """Train and measure all models, or take finished ones from the folder.

    After an interruption, the next call continues from the last saved epoch.
    """
    runs = {}
    for name, configuration in configurations.items():
        path = folder / name
        if (path / "config.json").is_file():
            run = Run.load(path, data)
            if run.configuration != configuration:
                raise ValueError(f"{path} holds a run with other settings: give another folder")
        else:
            run = Run.begin(path, configuration, data)
        train_with_bar(run, name)
        if run.quality() is None:
            run.finish()
        runs[name] = run
    return runs


def write_quality(runs: Mapping[str, Run], path: Path) -> list[dict[str, Any]]:
    """Write a table with one row for each model, and return its rows."""
    rows = []
    for name, run in runs.items():
        found = run.quality() or {}
        kept = {key: found[key] for key in MEASURES if key in found}
        steps = run.trainer.epoch * (len(run.dataset.train) // run.configuration.batch)
        rows.append({"model": name, "epochs": run.trainer.epoch, "steps": steps, **kept})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows
