"""The metrics of a run for TensorBoard, which is an extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crossedge.learning.learn import Run

FOLDER = "tensorboard"  # in that of the run


def writer_of(run: Run) -> Callable[[dict[str, Any]], None]:
    """Return a function that writes the metrics of an epoch for TensorBoard."""
    from torch.utils.tensorboard import SummaryWriter

    # epochs that a killed run had no checkpoint of are left out by `purge_step`
    board = SummaryWriter(run.folder.path / FOLDER, purge_step=run.epoch + 1)

    def write(line: dict[str, Any]) -> None:
        for name, value in line.items():
            if name != "epoch":
                board.add_scalar(name, value, line["epoch"])
        board.flush()

    return write
