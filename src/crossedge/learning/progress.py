"""Progress of a training run: the loss, the p-value and the time left."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from crossedge.learning.learn import Run

MAX_LINES = 100  # printed in a run where there is no terminal to show a bar


def train_with_bar(
    run: Run, title: str = "", also: Callable[[dict[str, Any]], None] | None = None
) -> None:
    """Train to the last epoch, with a progress bar or, without a terminal, printed lines.

    `also` is called with the metrics of each epoch.
    """
    console = Console(stderr=True)  # keeps the bar out of piped results
    columns = (
        TextColumn(title or run.configuration.data),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    # Estimate the speed over an hour: an epoch can outlast rich's default window of 30 s.
    with Progress(
        *columns,
        console=console,
        disable=not (run.leads and console.is_terminal),
        speed_estimate_period=3600,
    ) as bar:
        epochs = run.configuration.epochs
        every = max(1, epochs // MAX_LINES)
        task = bar.add_task("", total=run.configuration.epochs, completed=run.trainer.epoch)

        def watch(line: dict[str, Any]) -> None:
            p = math.exp(max(line["log_pvalue"], -300.0))
            text = f"loss {line['loss']:.3f}  p {p:.2g}"
            bar.update(task, completed=line["epoch"], description=text)
            if run.leads and not console.is_terminal and line["epoch"] % every == 0:
                print(f"epoch {line['epoch']} of {epochs}  {text}", flush=True)
            if also is not None:
                also(line)

        run.train(watch)
