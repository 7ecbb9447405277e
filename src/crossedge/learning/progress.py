"""A run to watch: its loss, its p-value and the time that is left."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from crossedge.learning.learn import Run

LINES = 100  # at most, where there is no terminal for a bar


def train_with_bar(run: Run, title: str = "") -> None:
    """Train to the last epoch and show how far it is."""
    console = Console(stderr=True)  # what a pipe takes are the results
    columns = (
        TextColumn(title or run.configuration.data),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    # speed over an hour: epochs may last longer than the half minute that rich looks back
    with Progress(
        *columns,
        console=console,
        disable=not (run.leads and console.is_terminal),
        speed_estimate_period=3600,
    ) as bar:
        epochs = run.configuration.epochs
        every = max(1, epochs // LINES)
        task = bar.add_task("", total=run.configuration.epochs, completed=run.trainer.epoch)

        def watch(line: dict[str, Any]) -> None:
            p = math.exp(max(line["log_pvalue"], -300.0))
            text = f"loss {line['loss']:.3f}  p {p:.2g}"
            bar.update(task, completed=line["epoch"], description=text)
            if run.leads and not console.is_terminal and line["epoch"] % every == 0:
                print(f"epoch {line['epoch']} of {epochs}  {text}", flush=True)

        run.train(watch)
